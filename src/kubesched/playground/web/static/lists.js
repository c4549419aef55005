// The queue by place, and pods by state: chips to choose with, and a list of what was chosen.

import { find, make, refill } from "./dom.js";
import { age, count, since, splitKey } from "./format.js";
import { BY_URGENCY, STATES } from "./store.js";

const PLACES = [["active", "active"], ["inFlight", "being scheduled"], ["backoff", "backoff"], ["unschedulable", "unschedulable"], ["gated", "gated"]];
const MOST_ROWS = 100;

export function podRow(key, { state, aside = "", below = "", isCurrent = false }) {
  const [namespace, name] = splitKey(key);
  return make("li", { data: { key } }, make("button", { class: "row", type: "button", data: { pod: key }, "aria-current": isCurrent && "true", title: `${key}: ${state}` },
    make("span", { class: `state ${state}`, role: "img", "aria-label": state }),
    make("span", { class: "name" }, name, make("small", {}, `  ${namespace}`)),
    make("span", { class: "aside" }, aside), below && make("span", { class: "below" }, below)));
}

function chip(label, n, isPressed, choose, mark = null) {
  return make("button", { class: "chip", type: "button", "aria-pressed": String(isPressed), data: { key: label }, on: { click: choose } }, mark, label, make("b", {}, count(n)));
}

export class Queue {
  constructor(store) {
    this.store = store;
    this.chosen = null;
  }

  draw() {
    const { counts, pods } = this.store.queue;
    const shown = this.chosen ?? (PLACES.find(([place]) => counts[place] > 0 && place !== "inFlight") ?? PLACES[0])[0];
    refill(find("places"), PLACES.map(([place, label]) =>
      chip(label, counts[place] ?? 0, place === shown, () => { this.chosen = place; this.draw(); })));
    const rows = pods[shown] ?? [];
    const drawn = rows.slice(0, MOST_ROWS).map((row) => podRow(row.pod, { state: "pending", aside: asideOf(row, shown), below: belowOf(row) }));
    const missing = (counts[shown] ?? 0) - drawn.length;
    if (missing > 0) drawn.push(make("li", { class: "more", data: { key: "more" } }, `and ${count(missing)} more`));
    if (!drawn.length) drawn.push(make("li", { class: "empty", data: { key: "empty" } }, "No pod waits here."));
    refill(find("queued"), drawn);
  }
}

// Only in the backoff queue time alone brings a pod back.
function asideOf(row, place) {
  const left = place === "backoff" && row.until ? row.until - Date.now() / 1000 : 0;
  const tries = row.attempts === 1 ? "1 attempt" : `${row.attempts} attempts`;
  return left > 0 ? `again in ${age(left)} · ${tries}` : `${row.since ? since(row.since) : ""} · ${tries}`;
}

function belowOf(row) {
  if (row.gatingPlugin) return `held by ${row.gatingPlugin}`;
  const rejectors = [...(row.unschedulablePlugins ?? []), ...(row.pendingPlugins ?? [])];
  if (row.nominatedNodeName) return `makes room on ${row.nominatedNodeName}`;
  return rejectors.length ? `rejected by ${rejectors.join(", ")}` : "";
}

export class Pods {
  constructor(store) {
    this.store = store;
    this.chosen = null;
    this.search = find("search");
    this.search.addEventListener("input", () => this.draw());
  }

  draw() {
    const sizes = Object.fromEntries(STATES.map((state) => [state, this.store.byState[state].size]));
    refill(find("states"), STATES.filter((state) => sizes[state] || state === this.chosen || state === "running" || state === "pending").map((state) =>
      chip(state, sizes[state], state === this.chosen, () => { this.chosen = this.chosen === state ? null : state; this.draw(); },
        make("span", { class: `state ${state}` }))));
    refill(find("share"), STATES.filter((state) => sizes[state]).map((state) => make("i", { class: state, style: { "--part": sizes[state] }, data: { key: state } })));
    const { keys, total } = this.found(sizes);
    const drawn = keys.map((key) => {
      const row = this.store.pods.get(key);
      return podRow(key, { state: row.shown, aside: row.node ?? (row.nominated ? `→ ${row.nominated}` : row.shown) });
    });
    if (total > keys.length) drawn.push(make("li", { class: "more", data: { key: "more" } }, `and ${count(total - keys.length)} more: search to find them`));
    if (!drawn.length) drawn.push(make("li", { class: "empty", data: { key: "empty" } }, this.store.pods.size ? "No pod is like that." : "There are no pods yet."));
    refill(find("pods"), drawn);
  }

  // The first that fit, what is not as it should be before the rest, and how many there are in all.
  found(sizes) {
    const words = this.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const states = this.chosen ? [this.chosen] : BY_URGENCY;
    const keys = [];
    let total = 0;
    for (const state of states) {
      const all = this.store.byState[state].keys;
      if (!words.length) {
        keys.push(...all.slice(0, MOST_ROWS - keys.length));
        total += sizes[state];
        continue;
      }
      for (const key of all) {
        const row = this.store.pods.get(key);
        if (!words.every((word) => key.includes(word) || row.owner?.toLowerCase().includes(word) || row.node?.includes(word))) continue;
        total += 1;
        if (keys.length < MOST_ROWS) keys.push(key);
      }
    }
    return { keys, total };
  }
}
