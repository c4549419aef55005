// About one node: how much of what it has is requested, what keeps pods from it, and its pods.

import { ask } from "./connection.js";
import { make, refill } from "./dom.js";
import { inOrder, percent } from "./format.js";
import { podRow } from "./lists.js";
import { button, carefulButton } from "./panel.js";
import { amount, asksFor } from "./resources.js";

export class NodePanel {
  constructor(panel, name, { store, about }) {
    Object.assign(this, { panel, name, store });
    const edit = { kind: "edit", name: `v1|Node||${name}` };
    this.cordoning = button("Cordon", () => this.cordon());
    const buttons = about.canWrite ? [this.cordoning, button("Edit", () => panel.choose(edit)), carefulButton("Delete", () => this.remove())] : [];
    panel.build("node", name, ...buttons);
    this.pods = make("ul", { class: "list" });
    this.empty = make("p", { class: "note" }, "No pod is on this node.");
    this.problem = make("p", { class: "problem", role: "alert" });
    panel.content.replaceChildren(this.problem, make("h3", {}, "Pods"), this.pods, this.empty);
  }

  draw() {
    const node = this.store.nodes.get(this.name);
    if (!node) return this.panel.setFacts([["State", "no longer there"]]);
    this.cordoning.textContent = node.unschedulable ? "Uncordon" : "Cordon";
    const used = this.store.usage(this.name);
    const amounts = Object.keys({ ...node.amounts, ...used }).filter((one) => one !== "pods" && (node.amounts[one] || used[one]));
    const devices = Object.entries(this.store.devices.get(this.name) ?? {});
    const marks = this.store.marks(this.name);
    this.panel.setFacts([
      ["State", marks.length ? marks.map(([word, , meaning]) => `${word}: ${meaning}`).join("; ") : "ready"],
      ...amounts.map((one) => [`${one} requested`, `${amount(one, used[one] ?? 0)} of ${amount(one, node.amounts[one] ?? 0)} (${percent(used[one] ?? 0, node.amounts[one] ?? 0)})`]),
      ...devices.map(([driver, [taken, offered]]) => [`Devices of ${driver}`, `${taken} of ${offered} allocated`]),
      ["Pods", `${used.pods} of ${node.amounts.pods ?? 0}`],
      ["Taints", node.taints?.join(", ")],
      ["Labels", make("ul", { class: "labels" }, ...Object.entries(node.labels).map(([key, value]) => make("li", {}, `${key}=${value}`)))],
    ]);
    const pods = this.store.podsOn(this.name).sort((one, other) => inOrder(one[0], other[0]));
    this.empty.hidden = pods.length > 0;
    refill(this.pods, pods.map(([key, pod]) => podRow(key, { state: pod.shown, aside: asksFor(pod, this.store) })));
  }

  remove() {
    return this.change("delete", { apiVersion: "v1", kind: "Node", name: this.name });
  }

  // Closes the node to new pods, or opens it again.
  cordon() {
    return this.change("cordon", { node: this.name, cordoned: !this.store.nodes.get(this.name)?.unschedulable });
  }

  async change(path, body) {
    this.problem.textContent = "";
    try {
      await ask(path, body);
    } catch (problem) {
      this.problem.textContent = problem.message;
    }
  }
}
