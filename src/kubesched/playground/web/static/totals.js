// The cluster in a few numbers: how much of each resource is requested.

import { make, refill } from "./dom.js";
import { count, part, percent } from "./format.js";
import { amount, shareOf } from "./resources.js";

export function drawTotals(root, store, bars) {
  const sums = bars.map(() => [0, 0]);
  let [ready, pods, room] = [0, 0, 0];
  for (const [name, node] of store.nodes) {
    bars.forEach((bar, index) => {
      const [used, whole] = shareOf(store, name, bar) ?? [0, 0];
      sums[index][0] += used;
      sums[index][1] += whole;
    });
    if (!node.notReady) ready += 1;
    pods += store.usage(name).pods;
    room += node.amounts.pods ?? 0;
  }
  const nodes = store.nodes.size;
  refill(root, [
    total("Nodes", count(nodes), ready === nodes ? "all ready" : `${count(ready)} ready`),
    ...bars.map((bar, index) => total(titleOf(bar), percent(...sums[index]),
      sums[index].map((value) => (bar.isDriver ? count(value) : amount(bar.name, value))).join(" of "), bar.colour, part(...sums[index]))),
    total("Pods on nodes", count(pods), `of ${count(room)}`, "pods", part(pods, room)),
  ]);
}

function titleOf(bar) {
  if (bar.isDriver) return `${bar.name} devices`;
  return { cpu: "CPU requested", memory: "Memory requested", "ephemeral-storage": "Storage requested" }[bar.name] ?? bar.name;
}

function total(name, value, beside, kind = "", filled = 0) {
  return make("div", { data: { key: name } }, make("dt", {}, name), make("dd", {}, `${value} `, make("small", {}, beside),
    kind && make("div", { class: `meter ${kind}` }, make("i", { style: { "--part": filled } }))));
}
