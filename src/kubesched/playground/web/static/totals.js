// The cluster in four numbers.

import { make } from "./dom.js";
import { count, cpu, memory, part, percent } from "./format.js";

export function drawTotals(root, store) {
  const whole = { cpu: 0, memory: 0, pods: 0, ready: 0 };
  const used = { cpu: 0, memory: 0, pods: 0 };
  for (const [name, node] of store.nodes) {
    const here = store.usage(name);
    for (const resource of ["cpu", "memory", "pods"]) {
      whole[resource] += node[resource];
      used[resource] += here[resource];
    }
    if (!node.notReady) whole.ready += 1;
  }
  const nodes = store.nodes.size;
  root.replaceChildren(
    total("Nodes", count(nodes), whole.ready === nodes ? "all ready" : `${count(whole.ready)} ready`),
    total("CPU requested", percent(used.cpu, whole.cpu), `${cpu(used.cpu)} of ${cpu(whole.cpu)}`, "cpu", part(used.cpu, whole.cpu)),
    total("Memory requested", percent(used.memory, whole.memory), `${memory(used.memory)} of ${memory(whole.memory)}`, "memory", part(used.memory, whole.memory)),
    total("Pods on nodes", count(used.pods), `of ${count(whole.pods)}`, "pods", part(used.pods, whole.pods)),
  );
}

function total(name, value, beside, kind = "", filled = 0) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, `${value} `, make("small", {}, beside),
    kind && make("div", { class: `meter ${kind}` }, make("i", { style: { "--part": filled } }))));
}
