// The decision log: the scheduler's last decisions, the newest first. Asked for while it is shown.

import { ask } from "./connection.js";
import { find, make, refill } from "./dom.js";
import { clock, splitKey } from "./format.js";

const MOST = 100;
const EVERY_MS = 1000;

export class Decisions {
  constructor() {
    this.rows = [];
    this.last = 0;
    this.isShown = false;
    setInterval(() => { if (this.isShown && !document.hidden) this.fetch(); }, EVERY_MS);
  }

  show(isShown) {
    this.isShown = isShown;
    if (isShown) this.fetch();
  }

  async fetch() {
    const { decisions, made } = await ask(`decisions?after=${this.last}`).catch(() => ({ decisions: [], made: this.last }));
    if (made < this.last) this.rows = [];
    if (decisions.length) this.rows = [...decisions, ...this.rows].slice(0, MOST);
    this.last = made;
    this.draw();
  }

  draw() {
    const drawn = this.rows.map(rowOf);
    if (!drawn.length) drawn.push(make("li", { class: "empty", data: { key: "empty" } }, "No decision yet."));
    refill(find("decided"), drawn);
  }
}

function rowOf(one) {
  const [namespace, name] = splitKey(one.pod);
  const best = one.scores?.[0];
  const below = one.node ? `${one.feasible} of ${one.evaluated} fit${best ? ` · score ${best.total}` : ""}${one.wasNominated ? " · was nominated" : ""}`
    : one.preemption ? `preempts ${one.preemption.victims.join(", ")} on ${one.preemption.node}` : one.message;
  return make("li", { data: { key: String(one.number) } }, make("button", { class: "row", type: "button", data: { pod: one.pod } },
    make("span", { class: `state ${one.node ? "running" : "pending"}`, role: "img", "aria-label": one.node ? "scheduled" : "not scheduled" }),
    make("span", { class: "name" }, name, make("small", {}, `  ${namespace}`)),
    make("span", { class: "aside" }, `${one.node ? `→ ${one.node} · ` : ""}${clock(one.at)}`),
    make("span", { class: one.node ? "below soft" : "below" }, below)));
}
