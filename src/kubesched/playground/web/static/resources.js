// Which resources the cluster counts, what they are called, in which unit and colour.

import { cpu, count, memory } from "./format.js";

const COLOURS = 6;
const IN_BYTES = ["memory", "ephemeral-storage"];

// Those that get a bar: cpu and memory always, what only few nodes have (devices among them) if a node has it, and
// ephemeral storage once a pod asks for it.
export function barsOf(store) {
  const extended = new Set();
  const drivers = new Set();
  for (const node of store.nodes.values()) {
    for (const name in node.amounts) if (name.includes("/") || (name.startsWith("hugepages-") && store.asked.get(name))) extended.add(name);
  }
  for (const [node, byDriver] of store.devices) if (node) for (const driver in byDriver) drivers.add(driver);
  const others = [...extended].sort().map((name) => ({ name }));
  const devices = [...drivers].sort().map((name) => ({ name, isDriver: true }));
  const storage = store.asked.get("ephemeral-storage") ? [{ name: "ephemeral-storage" }] : [];
  const rest = [...storage, ...others, ...devices].map((bar, index) => ({ ...bar, colour: `other-${index % COLOURS}` }));
  return [{ name: "cpu", colour: "cpu" }, { name: "memory", colour: "memory" }, ...rest];
}

// [used, whole] of one bar on one node; null if the node has nothing of it.
export function shareOf(store, node, bar) {
  if (bar.isDriver) return store.devices.get(node)?.[bar.name] ?? null;
  const whole = store.nodes.get(node).amounts[bar.name] ?? 0;
  const used = store.usage(node)[bar.name] ?? 0;
  return whole || used || bar.name === "cpu" || bar.name === "memory" ? [used, whole] : null;
}

export function amount(name, value) {
  if (name === "cpu") return cpu(value);
  return IN_BYTES.includes(name) || name.startsWith("hugepages-") ? memory(value) : count(value);
}

// What is left of a name where there is little room: nvidia.com/gpu is gpu.
export const shortName = (name) => (name === "ephemeral-storage" ? "storage" : name.includes("/") ? name.slice(name.indexOf("/") + 1) : name);

export function asksFor(pod, store) {
  const amounts = Object.entries(pod.asks).map(([name, value]) => `${name} ${amount(name, value)}`);
  const claims = (pod.claims ?? []).map((key) => {
    const claim = store.claims.get(key);
    const devices = claim?.devices ? ` (${claim.devices.join(", ")})` : "";
    return `${claim ? claim.asks.join(", ") : "devices"} by claim ${key.slice(key.indexOf("/") + 1)}${devices}`;
  });
  return [...amounts, ...claims].join(", ") || "nothing";
}
