// Pod groups: the list of them, and the panel about one: its members, its state, and why it waits.

import { ask } from "./connection.js";
import { find, make, refill } from "./dom.js";
import { count, inOrder, since, splitKey } from "./format.js";
import { podRow } from "./lists.js";
import { changesOf, table } from "./why.js";

// Which dot stands for a group: as for the pods that it has.
const DOTS = { scheduled: "running", unschedulable: "failed", waiting: "pending" };
// What a condition begins with whatever the reason is.
const ABOUT_ONE_PLACEMENT = /^0\/\d+ placements are available, first placement status: /;
const NOT_AS_A_WHOLE = /^(pod group is unschedulable(, )?)+/;
const BY_URGENCY = ["unschedulable", "waiting", "scheduled"];

export function drawGroups(store) {
  find("groups-tab").hidden = store.groups.size === 0;
  const keys = [...store.groups.keys()].sort((one, other) =>
    BY_URGENCY.indexOf(store.groups.get(one).state) - BY_URGENCY.indexOf(store.groups.get(other).state) || inOrder(one, other));
  refill(find("groups"), keys.map((key) => groupRow(key, store.groups.get(key), store.membersOf(key))));
}

function groupRow(key, group, members) {
  const [namespace, name] = splitKey(key);
  return make("li", { data: { key } }, make("button", { class: "row", type: "button", data: { group: key }, title: [`${key}: ${group.state}`, group.message].filter(Boolean).join("\n") },
    make("span", { class: `state ${DOTS[group.state]}`, role: "img", "aria-label": group.state }),
    make("span", { class: "name" }, name, make("small", {}, `  ${namespace}`)),
    make("span", { class: "aside" }, `${placedOf(members)} placed`),
    group.state !== "scheduled" && make("span", { class: "below" }, waitOf(group, members))));
}

const placedOf = (members) => `${count(members.filter(([, pod]) => pod.node).length)} of ${count(members.length)}`;

// Empty if nobody leaves for it.
function nominatedOf(members) {
  const n = members.filter(([, pod]) => pod.nominated && !pod.node).length;
  return n ? `${count(n)} of ${count(members.length)}` : "";
}

// What can be said without asking the scheduler.
function waitOf(group, members) {
  const missing = (group.needs ?? 0) - members.length;
  if (missing > 0) return `${count(missing)} of the ${count(group.needs)} pods that it needs ${missing === 1 ? "does" : "do"} not exist`;
  if (nominatedOf(members)) return `waits for evicted pods to leave: ${nominatedOf(members)} are nominated`;
  if (!group.message) return "not tried yet";
  const said = group.message.replace(ABOUT_ONE_PLACEMENT, "").replace(NOT_AS_A_WHOLE, "");
  return said === group.message ? said : `does not fit as a whole${said && `: ${said}`}`;
}

export class GroupPanel {
  constructor(panel, key, { store }) {
    Object.assign(this, { panel, key, store });
    const [namespace, name] = splitKey(key);
    panel.build(`pod group in ${namespace}`, name);
    this.explanation = make("div", { class: "why", "aria-live": "polite" });
    this.pods = make("ul", { class: "list" });
    this.empty = make("p", { class: "note" }, "No pod names this group.");
    const command = make("p", { class: "note" }, "The same in a terminal: ", make("code", {}, `kubesched explain ${namespace}/podgroup/${name}`));
    panel.content.replaceChildren(make("h3", {}, "Why"), this.explanation, command, make("h3", {}, "Pods"), this.pods, this.empty);
  }

  draw() {
    const group = this.store.groups.get(this.key);
    if (!group) return this.panel.setFacts([["State", "no longer there"]]);
    const members = this.store.membersOf(this.key).sort((one, other) => inOrder(one[0], other[0]));
    this.panel.setFacts([
      ["State", make("span", { class: "badge" }, make("span", { class: `state ${DOTS[group.state]}` }), group.state)],
      ["Pods", `${placedOf(members)} have a node`],
      ["Needs", group.needs ? `${count(group.needs)} together, or none` : "nothing: takes what it gets"],
      ["Part of", group.parent], ["Within one", group.topology], ["Priority", group.priority && String(group.priority)],
      ["Nominated", nominatedOf(members)], ["Evicted", group.whole && "as a whole"], ["Age", group.created && since(group.created)],
    ]);
    this.empty.hidden = members.length > 0;
    refill(this.pods, members.map(([key, pod]) => podRow(key, { state: pod.shown, aside: pod.node ?? (pod.nominated ? `→ ${pod.nominated}` : pod.shown) })));
    const seen = JSON.stringify([group, members.map(([key, pod]) => [key, pod.node])]);
    if (seen === this.seen) return;
    this.seen = seen;
    this.explain();
  }

  async explain() {
    try {
      const why = await ask(`group/${this.key}`);
      if (this.panel.isAbout("group", this.key)) this.explanation.replaceChildren(...drawn(why, this.store.groups.get(this.key)?.topology));
    } catch (problem) {
      if (this.panel.isAbout("group", this.key)) this.explanation.replaceChildren(make("p", { class: "note" }, problem.message));
    }
  }
}

// An answer of /api/group: the cause first, then placements, the nearest first.
function drawn(why, topology) {
  const [, cause] = /^PodGroup \S+?:? (.*)$/.exec(why.headline) ?? [null, why.headline];
  const isGood = why.fits || why.tried === 0 && why.scheduled >= why.minCount && why.scheduled > 0;
  const rows = why.placements.slice(0, 12).map((one) => make("tr", { class: why.fits && one.placement === why.placement ? "best" : "" },
    make("th", { scope: "row" }, one.placement ? `${topology}=${one.placement}` : "all nodes"), make("td", {}, count(one.nodes)), make("td", {}, `${count(one.fitting)} of ${count(why.tried)}`),
    make("td", { class: "words" }, one.reason && `${one.firstMissing}: ${one.reason}`)));
  return [
    make("p", { class: `cause ${isGood ? "good" : "bad"}` }, `${cause[0].toUpperCase()}${cause.slice(1)}`),
    rows.length > 0 && make("h4", {}, "Placements, the nearest first"),
    rows.length > 0 && table(["placement", "nodes", "pods that fit", make("th", { scope: "col", class: "words" }, "what the next one lacks")], rows, why.placements.length > 12 ? `and ${count(why.placements.length - 12)} more` : ""),
    why.victims.length > 0 && make("h4", {}, "Who is evicted for it"),
    why.victims.length > 0 && table(["pod", "node", "priority"], why.victims.map((one) => make("tr", {}, make("th", { scope: "row" }, one.pod), make("td", {}, one.node), make("td", {}, count(one.priority))))),
    why.changes.length > 0 && changesOf(why.changes.map((one) => one.placement ? { ...one, description: `${one.description}, then it fits in ${topology}=${one.placement}` } : one)),
  ].filter(Boolean);
}
