// The state as the server tells it, with what the page needs to know by node. No drawing here.

export const STATES = ["running", "starting", "pending", "terminating", "succeeded", "failed"];
const ENDED = new Set(["succeeded", "failed"]);

export class Store {
  constructor() {
    this.replace({ nodes: {}, pods: {}, queue: { counts: {}, pods: {} } });
  }

  // The whole state anew.
  replace(state) {
    this.nodes = new Map(Object.entries(state.nodes));
    this.pods = new Map();
    this.byNode = new Map();
    this.queue = state.queue;
    this.changedNodes = new Set(this.nodes.keys());
    this.isNewLayout = true;
    for (const [key, row] of Object.entries(state.pods)) this.putPod(key, row);
  }

  // What has changed; `change` is a message of /api/stream.
  apply(change) {
    for (const [name, row] of Object.entries(change.nodes?.put ?? {})) {
      if (this.nodes.get(name)?.zone !== row.zone) this.isNewLayout = true;
      this.nodes.set(name, row);
      this.changedNodes.add(name);
    }
    for (const name of change.nodes?.gone ?? []) {
      this.nodes.delete(name);
      this.isNewLayout = true;
    }
    for (const [key, row] of Object.entries(change.pods?.put ?? {})) this.putPod(key, row);
    for (const key of change.pods?.gone ?? []) this.removePod(key);
    if (change.queue) this.queue = change.queue;
  }

  putPod(key, row) {
    this.removePod(key);
    this.pods.set(key, row);
    if (!row.node) return;
    if (!this.byNode.has(row.node)) this.byNode.set(row.node, new Set());
    this.byNode.get(row.node).add(key);
    this.changedNodes.add(row.node);
  }

  removePod(key) {
    const row = this.pods.get(key);
    this.pods.delete(key);
    if (!row?.node) return;
    this.byNode.get(row.node)?.delete(key);
    this.changedNodes.add(row.node);
  }

  // What the pods of a node ask for; those that have ended take nothing.
  usage(name) {
    const used = { cpu: 0, memory: 0, pods: 0 };
    for (const key of this.byNode.get(name) ?? []) {
      const row = this.pods.get(key);
      if (ENDED.has(row.state)) continue;
      used.cpu += row.cpu;
      used.memory += row.memory;
      used.pods += 1;
    }
    return used;
  }

  podsOn(name) {
    return [...(this.byNode.get(name) ?? [])].map((key) => [key, this.pods.get(key)]);
  }

  countStates() {
    const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    for (const row of this.pods.values()) counts[row.state] += 1;
    return counts;
  }

  queued(key) {
    for (const [place, rows] of Object.entries(this.queue.pods)) {
      const found = rows.find((row) => row.pod === key);
      if (found) return { place, ...found };
    }
    return null;
  }
}
