// The panel about what was chosen: a node with its pods, or a pod with its timeline and its explanation.

import { ask } from "./connection.js";
import { make, refill } from "./dom.js";
import { clock, inOrder, moment, percent, since, splitKey } from "./format.js";
import { podRow } from "./lists.js";
import { amount, asksFor } from "./resources.js";

export class Detail {
  constructor(root, store, choose) {
    this.root = root;
    this.store = store;
    this.choose = choose;
    this.selection = null;
    this.opener = null;
    root.addEventListener("click", (event) => {
      const pod = event.target.closest("[data-pod]");
      const node = event.target.closest("[data-goto]");
      if (pod) choose({ kind: "pod", name: pod.dataset.pod });
      if (node) choose({ kind: "node", name: node.dataset.goto });
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && this.selection) choose(null); });
  }

  show(selection) {
    const isSame = selection?.kind === this.selection?.kind && selection?.name === this.selection?.name;
    if (isSame) return;
    if (!this.selection) this.opener = document.activeElement;
    this.selection = selection;
    this.root.hidden = !selection;
    this.root.parentElement.classList.toggle("has-detail", Boolean(selection));
    if (!selection) {
      this.root.replaceChildren();
      this.giveFocusBack();
      return;
    }
    this.seen = undefined;
    if (selection.kind === "pod") this.buildPod();
    else this.buildNode();
    this.draw();
    this.title.focus({ preventScroll: true });
    this.root.scrollTop = 0;
  }

  // To where one came from; a row that has been drawn anew meanwhile is found by its pod.
  giveFocusBack() {
    const pod = this.opener?.dataset?.pod;
    const again = this.opener?.isConnected ? this.opener : pod && document.querySelector(`.row[data-pod="${CSS.escape(pod)}"]`);
    again?.focus({ preventScroll: true });
  }

  build(kind, name) {
    this.title = make("h2", { id: "detail-title", tabindex: "-1" }, make("small", {}, kind), name);
    this.facts = make("dl", { class: "facts" });
    this.content = make("div");
    this.root.replaceChildren(
      make("header", {}, this.title, make("button", { class: "plain", type: "button", on: { click: () => this.choose(null) } }, "Close")),
      this.facts, this.content);
  }

  // What the store knows; what the server must be asked for is asked for when that has changed.
  draw() {
    if (!this.selection) return;
    if (this.selection.kind === "node") this.drawNode(this.selection.name);
    else this.drawPod(this.selection.name);
  }

  setFacts(facts) {
    refill(this.facts, facts.filter(([, value]) => value).map(([name, value]) =>
      make("div", { data: { key: name } }, make("dt", {}, name), make("dd", {}, value))));
  }

  buildNode() {
    this.build("node", this.selection.name);
    this.pods = make("ul", { class: "list" });
    this.empty = make("p", { class: "note" }, "No pod is on this node.");
    this.content.replaceChildren(make("h3", {}, "Pods"), this.pods, this.empty);
  }

  drawNode(name) {
    const node = this.store.nodes.get(name);
    if (!node) {
      this.setFacts([["State", "no longer there"]]);
      return;
    }
    const used = this.store.usage(name);
    const amounts = Object.keys({ ...node.amounts, ...used }).filter((one) => one !== "pods" && (node.amounts[one] || used[one]));
    const devices = Object.entries(this.store.devices.get(name) ?? {});
    const marks = this.store.marks(name);
    this.setFacts([
      ["State", marks.length ? marks.map(([word, , meaning]) => `${word}: ${meaning}`).join("; ") : "ready"],
      ...amounts.map((one) => [`${one} requested`, `${amount(one, used[one] ?? 0)} of ${amount(one, node.amounts[one] ?? 0)} (${percent(used[one] ?? 0, node.amounts[one] ?? 0)})`]),
      ...devices.map(([driver, [taken, offered]]) => [`Devices of ${driver}`, `${taken} of ${offered} allocated`]),
      ["Pods", `${used.pods} of ${node.amounts.pods ?? 0}`],
      ["Taints", node.taints?.join(", ")],
      ["Labels", Object.entries(node.labels).map(([key, value]) => `${key}=${value}`).join(", ")],
    ]);
    const pods = this.store.podsOn(name).sort((one, other) => inOrder(one[0], other[0]));
    this.empty.hidden = pods.length > 0;
    refill(this.pods, pods.map(([key, pod]) => podRow(key, { state: pod.shown, aside: asksFor(pod, this.store) })));
  }

  buildPod() {
    const [namespace, name] = splitKey(this.selection.name);
    this.build(`pod in ${namespace}`, name);
    this.timeline = make("ol", { class: "timeline" });
    this.explanation = make("div", { id: "explanation", "aria-live": "polite" });
    const again = make("button", { class: "plain", type: "button", on: { click: () => this.explain() } }, "Explain again");
    this.content.replaceChildren(make("h3", {}, "Why", again), this.explanation, make("h3", {}, "Timeline"), this.timeline);
  }

  drawPod(key) {
    const pod = this.store.pods.get(key);
    const queued = this.store.queued(key);
    const toNode = pod?.node && make("button", { class: "link-like", type: "button", data: { goto: pod.node } }, pod.node);
    this.setFacts(!pod ? [["State", "no longer there"]] : [
      ["State", make("span", { class: "badge" }, make("span", { class: `state ${pod.shown}` }), pod.shown)],
      ["Node", toNode], ["Nominated to", pod.nominated],
      ["Asks for", asksFor(pod, this.store)],
      ["Owner", pod.owner], ["Priority", pod.priority && String(pod.priority)], ["Age", pod.created && since(pod.created)],
      ["In the queue", queued && `${queued.place}, ${queued.attempts} ${queued.attempts === 1 ? "attempt" : "attempts"}`],
    ]);
    const seen = JSON.stringify([pod?.state, pod?.node, queued?.attempts]);
    if (seen === this.seen) return;
    const isNewState = this.seen === undefined || JSON.parse(this.seen)[0] !== pod?.state;
    this.seen = seen;
    this.fetchTimeline();
    if (isNewState) this.explain();
  }

  async fetchTimeline() {
    const key = this.selection.name;
    const shown = await ask(`/api/timeline/${key}`).then(({ timeline }) => timeline.map(entryOf), (problem) => [make("li", { class: "warning" }, problem.message)]);
    if (this.selection?.name === key) this.timeline.replaceChildren(...shown);
  }

  async explain() {
    const key = this.selection.name;
    if (["succeeded", "failed"].includes(this.store.pods.get(key)?.state)) {
      this.explanation.replaceChildren(make("p", { class: "note" }, "It has ended: there is nothing left to decide."));
      return;
    }
    if (!this.explanation.hasChildNodes()) this.explanation.replaceChildren(make("p", { class: "note" }, "asking the scheduler …"));
    const shown = await ask(`/api/explain/${key}`).then(({ explanation }) => make("pre", { class: "explanation", tabindex: "0" }, explanation),
      (problem) => make("p", { class: "note" }, problem.message));
    if (this.selection?.name === key) this.explanation.replaceChildren(shown);
  }
}

function entryOf(entry) {
  const often = entry.count ? ` ×${entry.count} since ${clock(entry.since)}` : "";
  return make("li", { class: entry.isWarning ? "warning" : "" }, make("b", {}, entry.what),
    make("time", { datetime: moment(entry.at) }, `${clock(entry.at)}${often}`), entry.message && make("p", {}, entry.message));
}
