// Nodes as tiles, by zone. A tile is drawn again only if its node or one of its pods has changed.

import { make, refill } from "./dom.js";
import { cpu, inOrder, memory, part, percent } from "./format.js";

const MOST_ROOMY = 24;
const MOST_LARGE = 90;
const MOST_MEDIUM = 320;
const MOST_DOTS = 44;

export class Nodes {
  constructor(root, store, choose) {
    this.root = root;
    this.store = store;
    this.choose = choose;
    this.tiles = new Map();
    this.headings = new Map();
    this.reachable = null;
    root.addEventListener("click", (event) => this.onClick(event));
    root.addEventListener("keydown", (event) => this.onKey(event));
  }

  draw() {
    const store = this.store;
    if (store.isNewLayout) this.layOut();
    const zones = new Set();
    for (const name of store.changedNodes) {
      if (!this.tiles.has(name)) continue;
      this.drawTile(name);
      zones.add(store.nodes.get(name).zone);
    }
    for (const zone of zones) this.drawHeading(zone);
    store.changedNodes.clear();
    store.isNewLayout = false;
  }

  layOut() {
    const names = [...this.store.nodes.keys()].sort(inOrder);
    for (const name of [...this.tiles.keys()]) if (!this.store.nodes.has(name)) this.tiles.delete(name);
    this.density = names.length <= MOST_ROOMY ? "large roomy"
      : names.length <= MOST_LARGE ? "large" : names.length <= MOST_MEDIUM ? "medium" : "small";
    this.root.parentElement.className = this.density;
    this.byZone = new Map();
    for (const name of names) {
      const zone = this.store.nodes.get(name).zone;
      if (!this.byZone.has(zone)) this.byZone.set(zone, []);
      this.byZone.get(zone).push(name);
    }
    const focused = this.root.contains(document.activeElement) ? document.activeElement : null;
    this.headings.clear();
    this.root.replaceChildren(...[...this.byZone.keys()].sort(inOrder).map((zone) => this.makeZone(zone)));
    if (!names.length) this.root.append(make("p", { class: "note" }, "There are no nodes yet."));
    focused?.focus({ preventScroll: true });
    if (!this.tiles.has(this.reachable) && names.length) this.makeReachable(this.root.querySelector(".tile").dataset.node);
    this.store.changedNodes = new Set(names);
  }

  makeZone(zone) {
    const heading = make("h3");
    this.headings.set(zone, heading);
    const tiles = this.byZone.get(zone).map((name) => this.tileOf(name).item);
    return make("section", { class: "zone" }, heading, make("ul", { class: "tiles" }, ...tiles));
  }

  tileOf(name) {
    if (!this.tiles.has(name)) {
      const open = make("button", { class: "open", type: "button", tabindex: "-1" }, name);
      const mark = make("span", { class: "mark" });
      const bars = [make("i"), make("i")];
      const dots = make("div", { class: "dots", "aria-hidden": "true" });
      const drawn = make("div", { class: "bars", "aria-hidden": "true" },
        make("div", { class: "bar" }, bars[0]), make("div", { class: "bar memory" }, bars[1]));
      const sums = make("div", { class: "sums", "aria-hidden": "true" });
      const item = make("li", { class: "tile", data: { node: name } }, open, mark, drawn, sums, dots);
      this.tiles.set(name, { item, open, mark, bars, sums, dots });
    }
    return this.tiles.get(name);
  }

  drawTile(name) {
    const node = this.store.nodes.get(name);
    const used = this.store.usage(name);
    const { item, open, mark, bars, sums, dots } = this.tiles.get(name);
    const state = node.notReady ? "not ready" : node.unschedulable ? "cordoned" : node.taints ? "tainted" : "";
    mark.textContent = state;
    item.classList.toggle("not-ready", Boolean(node.notReady));
    item.classList.toggle("closed", Boolean(node.unschedulable));
    bars[0].style.setProperty("--part", part(used.cpu, node.cpu));
    bars[1].style.setProperty("--part", part(used.memory, node.memory));
    const told = `${name}${state && `, ${state}`}: cpu ${cpu(used.cpu)} of ${cpu(node.cpu)} (${percent(used.cpu, node.cpu)}), ` +
      `memory ${memory(used.memory)} of ${memory(node.memory)} (${percent(used.memory, node.memory)}), ` +
      `${used.pods} of ${node.pods} pods`;
    sums.textContent = `cpu ${percent(used.cpu, node.cpu)} · memory ${percent(used.memory, node.memory)}`;
    open.setAttribute("aria-label", told);
    item.title = told;
    if (this.density.startsWith("large")) this.drawDots(name, dots);
  }

  drawDots(name, dots) {
    const pods = this.store.podsOn(name).sort((one, other) => inOrder(one[0], other[0]));
    const shown = pods.length > MOST_DOTS ? pods.slice(0, MOST_DOTS - 3) : pods;
    const drawn = shown.map(([key, pod]) =>
      make("span", { class: pod.state, title: `${key}: ${pod.state}`, data: { pod: key, key } }));
    if (shown.length < pods.length) drawn.push(make("b", { data: { key: "more" } }, `+${pods.length - shown.length}`));
    refill(dots, drawn);
  }

  drawHeading(zone) {
    const names = this.byZone.get(zone);
    const sum = { cpu: 0, memory: 0, cpuUsed: 0, memoryUsed: 0 };
    for (const name of names) {
      const node = this.store.nodes.get(name);
      const used = this.store.usage(name);
      sum.cpu += node.cpu; sum.memory += node.memory;
      sum.cpuUsed += used.cpu; sum.memoryUsed += used.memory;
    }
    const told = `${names.length} ${names.length === 1 ? "node" : "nodes"} · cpu ${percent(sum.cpuUsed, sum.cpu)} · ` +
      `memory ${percent(sum.memoryUsed, sum.memory)}`;
    this.headings.get(zone).replaceChildren(zone || "no zone", make("small", {}, told));
  }

  mark(selection) {
    for (const marked of this.root.querySelectorAll(".chosen")) marked.classList.remove("chosen");
    if (selection?.kind === "node") this.tiles.get(selection.name)?.item.classList.add("chosen");
    if (selection?.kind === "pod") {
      const node = this.store.pods.get(selection.name)?.node;
      this.tiles.get(node)?.item.classList.add("chosen");
    }
  }

  onClick(event) {
    const pod = event.target.closest("[data-pod]");
    const tile = event.target.closest("[data-node]");
    if (!tile) return;
    this.makeReachable(tile.dataset.node);
    this.choose(pod ? { kind: "pod", name: pod.dataset.pod } : { kind: "node", name: tile.dataset.node });
  }

  // One tile is reached by Tab, the others by arrow keys.
  makeReachable(name) {
    this.tiles.get(this.reachable)?.open.setAttribute("tabindex", "-1");
    this.tiles.get(name)?.open.setAttribute("tabindex", "0");
    this.reachable = name;
  }

  onKey(event) {
    const tiles = [...this.root.querySelectorAll(".tile")];
    const at = tiles.indexOf(event.target.closest(".tile"));
    if (at < 0) return;
    const next = {
      ArrowRight: () => tiles[at + 1], ArrowLeft: () => tiles[at - 1],
      Home: () => tiles[0], End: () => tiles[tiles.length - 1],
      ArrowDown: () => nearest(tiles, at, 1), ArrowUp: () => nearest(tiles, at, -1),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const tile = next();
    if (!tile) return;
    this.makeReachable(tile.dataset.node);
    this.tiles.get(tile.dataset.node).open.focus();
  }
}

// The tile of the next row that is closest from left to right.
function nearest(tiles, at, step) {
  const from = tiles[at].getBoundingClientRect();
  let best = null;
  let row = null;
  for (let index = at + step; index >= 0 && index < tiles.length; index += step) {
    const box = tiles[index].getBoundingClientRect();
    if (box.top === from.top) continue;
    row ??= box.top;
    if (box.top !== row) break;
    const distance = Math.abs(box.left - from.left);
    if (!best || distance < best.distance) best = { tile: tiles[index], distance };
  }
  return best?.tile;
}
