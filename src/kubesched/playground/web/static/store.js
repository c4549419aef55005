// The state as the server tells it, with what the page needs to know by node and by state, kept up to date row by row:
// a change costs what it changes, not what the cluster holds. No drawing here.

import { SortedKeys } from "./sorted_keys.js";

export const STATES = ["running", "starting", "unknown", "pending", "terminating", "succeeded", "failed"];
export const BY_URGENCY = ["pending", "failed", "unknown", "terminating", "starting", "running", "succeeded"];
const ENDED = new Set(["succeeded", "failed"]);
const ALIVE = new Set(["running", "starting"]);
const DRAIN_TAINTS = ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"];

export class Store {
  constructor() {
    this.replace({ nodes: {}, pods: {}, groups: {}, claims: {}, devices: {}, queue: { counts: {}, pods: {} } });
  }

  // The whole state anew.
  replace(state) {
    this.nodes = new Map(Object.entries(state.nodes));
    this.groups = new Map(Object.entries(state.groups));
    this.members = new Map();
    this.claims = new Map(Object.entries(state.claims));
    this.devices = new Map(Object.entries(state.devices));
    this.queue = state.queue;
    this.pods = new Map();
    this.byNode = new Map();
    this.used = new Map();
    this.asked = new Map();
    this.changedNodes = new Set(this.nodes.keys());
    this.isNewLayout = true;
    this.version = (this.version ?? 0) + 1;
    const keys = Object.fromEntries(STATES.map((name) => [name, []]));
    for (const [key, row] of Object.entries(state.pods)) {
      this.enter(key, row);
      keys[row.shown].push(key);
    }
    this.byState = Object.fromEntries(STATES.map((name) => [name, new SortedKeys(keys[name])]));
  }

  // What has changed; `change` is a message of /api/stream.
  apply(change) {
    for (const [name, row] of Object.entries(change.nodes?.put ?? {})) this.putNode(name, row);
    for (const name of change.nodes?.gone ?? []) {
      this.nodes.delete(name);
      this.isNewLayout = true;
    }
    for (const [key, row] of Object.entries(change.pods?.put ?? {})) this.putPod(key, row);
    for (const key of change.pods?.gone ?? []) this.removePod(key);
    for (const [key, row] of Object.entries(change.groups?.put ?? {})) this.groups.set(key, row);
    for (const key of change.groups?.gone ?? []) this.groups.delete(key);
    for (const [key, row] of Object.entries(change.claims?.put ?? {})) this.claims.set(key, row);
    for (const key of change.claims?.gone ?? []) this.claims.delete(key);
    for (const [name, row] of Object.entries(change.devices?.put ?? {})) { this.devices.set(name, row); this.changedNodes.add(name); }
    for (const name of change.devices?.gone ?? []) { this.devices.delete(name); this.changedNodes.add(name); }
    if (change.queue) this.queue = change.queue;
    this.version += 1;
  }

  putNode(name, row) {
    const before = this.nodes.get(name);
    if (!before || JSON.stringify(before.labels) !== JSON.stringify(row.labels)) this.isNewLayout = true;
    this.nodes.set(name, row);
    this.changedNodes.add(name);
    if (Boolean(before?.silent) !== Boolean(row.silent)) {
      for (const key of [...(this.byNode.get(name) ?? [])]) this.putPod(key, this.pods.get(key));
    }
  }

  putPod(key, row) {
    this.removePod(key);
    this.enter(key, row);
    this.byState[row.shown].add(key);
  }

  // Nobody knows what became of the pods of a node that fell silent.
  enter(key, row) {
    row.shown = ALIVE.has(row.state) && this.nodes.get(row.node)?.silent ? "unknown" : row.state;
    this.pods.set(key, row);
    if (row.group) {
      if (!this.members.has(row.group)) this.members.set(row.group, new Set());
      this.members.get(row.group).add(key);
    }
    if (!ENDED.has(row.state)) this.count(row, 1);
    if (!row.node) return;
    if (!this.byNode.has(row.node)) this.byNode.set(row.node, new Set());
    this.byNode.get(row.node).add(key);
    this.changedNodes.add(row.node);
  }

  removePod(key) {
    const row = this.pods.get(key);
    if (!row) return;
    this.pods.delete(key);
    this.members.get(row.group)?.delete(key);
    this.byState[row.shown].remove(key);
    if (!ENDED.has(row.state)) this.count(row, -1);
    if (!row.node) return;
    this.byNode.get(row.node)?.delete(key);
    this.changedNodes.add(row.node);
  }

  count(row, sign) {
    for (const name in row.asks) this.asked.set(name, (this.asked.get(name) ?? 0) + sign);
    if (!row.node) return;
    if (!this.used.has(row.node)) this.used.set(row.node, { pods: 0 });
    const used = this.used.get(row.node);
    used.pods += sign;
    for (const [name, amount] of Object.entries(row.asks)) used[name] = (used[name] ?? 0) + sign * amount;
  }

  // What the pods of a node ask for; those that have ended take nothing.
  usage(name) {
    return this.used.get(name) ?? { pods: 0 };
  }

  podsOn(name) {
    return [...(this.byNode.get(name) ?? [])].map((key) => [key, this.pods.get(key)]);
  }

  // The pods of a group that have not ended.
  membersOf(group) {
    return [...(this.members.get(group) ?? [])].map((key) => [key, this.pods.get(key)]).filter(([, pod]) => !ENDED.has(pod.state));
  }

  // What keeps pods from a node, the gravest first: [word, letter, what it means].
  marks(name) {
    const node = this.nodes.get(name);
    const found = [];
    if (node.silent) found.push(["silent", "S", "its kubelet does not report any more"]);
    else if (node.notReady) found.push(["not ready", "N", "its kubelet says that it is not ready"]);
    const isLeft = node.unschedulable && this.podsOn(name).some(([, pod]) => pod.state === "terminating");
    if (isLeft || node.taints?.some((taint) => DRAIN_TAINTS.some((key) => taint.startsWith(key)))) found.push(["draining", "D", "its pods are leaving"]);
    else if (node.unschedulable) found.push(["cordoned", "C", "no new pods"]);
    if (node.taints?.some((taint) => !taint.startsWith("node.kubernetes.io/"))) found.push(["tainted", "T", "only for pods that tolerate its taints"]);
    return found;
  }

  queued(key) {
    for (const [place, rows] of Object.entries(this.queue.pods)) {
      const found = rows.find((row) => row.pod === key);
      if (found) return { place, ...found };
    }
    return null;
  }
}
