// Nodes as tiles. Only those on the screen, and a little above and below, are in the page: thousands of nodes cost no
// more than a screenful. A tile is drawn again only if its node or one of its pods has changed.

import { make } from "./dom.js";
import { percent } from "./format.js";
import { arrange, place, rowsBetween, shapeOf, zoomFor, NO_GROUPS } from "./layout.js";
import { shareOf } from "./resources.js";
import { drawTile, makeTile } from "./tile.js";

const AROUND = 300;
const SORT_AGAIN_MS = 2000;

export class Nodes {
  constructor(root, store, view, choose) {
    this.root = root;
    this.store = store;
    this.view = view;
    this.choose = choose;
    this.bars = [];
    this.colouring = null;
    this.selection = null;
    this.tiles = new Map();
    this.headings = new Map();
    this.rows = new Map();
    this.groups = [];
    this.order = [];
    this.reachable = null;
    this.sortedAt = 0;
    root.addEventListener("click", (event) => this.onClick(event));
    root.addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("scroll", () => this.showSoon(), { passive: true });
    new ResizeObserver(() => { if (Math.floor(root.clientWidth) !== this.width) { this.placeAll(); this.show(); } }).observe(root);
  }

  // Brings the picture up to date. `bars` are the resources to show.
  draw(bars) {
    const store = this.store;
    const isResorted = this.view.sort !== "name" && performance.now() - this.sortedAt > SORT_AGAIN_MS;
    const areNewBars = JSON.stringify(bars) !== JSON.stringify(this.bars);
    this.bars = bars;
    if (store.isNewLayout || isResorted || areNewBars || this.dotRowsChanged()) this.layOut();
    const changed = store.changedNodes;
    for (const name of changed) if (this.tiles.has(name)) this.drawTile(name);
    for (const [group, heading] of this.headings) if (group.names.some((name) => changed.has(name))) this.drawHeading(group, heading);
    store.changedNodes = new Set();
    store.isNewLayout = false;
  }

  // Anew, after a change of what is shown, of its order, or of its size.
  layOut() {
    this.sortedAt = performance.now();
    this.groups = arrange(this.store, this.view, this.bars, this.colouring && ((name) => this.colouring.rankOf(name)));
    this.order = this.groups.flatMap((group) => group.names);
    this.zoom = this.view.zoom ?? zoomFor(this.order.length);
    if (this.zoom !== this.drawnZoom) this.forgetTiles();
    this.drawnZoom = this.zoom;
    this.root.className = `zones ${this.zoom}${this.colouring ? " coloured" : ""}`;
    this.placeAll();
    const shown = new Set(this.order);
    for (const name of this.tiles.keys()) if (!shown.has(name)) this.tiles.delete(name);
    if (!shown.has(this.reachable)) this.reachable = this.order[0] ?? null;
    this.show();
    for (const name of this.tiles.keys()) this.drawTile(name);
    for (const [group, heading] of this.headings) this.drawHeading(group, heading);
  }

  placeAll() {
    this.width = Math.floor(this.root.clientWidth);
    this.mostPods = this.mostPodsOnANode();
    const nBars = this.mostBars();
    this.shape = shapeOf(this.zoom, nBars, this.mostPods, Boolean(this.colouring));
    this.placed = place(this.groups, this.width, this.shape, this.view.group !== NO_GROUPS);
    this.rows = new Map();
    this.headings = new Map();
    this.shownFirst = null;
    this.root.style.height = `${this.placed.height}px`;
    this.root.style.setProperty("--gap", `${this.shape.gap}px`);
    this.root.style.setProperty("--tile", `${this.placed.tileWidth}px`);
    this.root.style.setProperty("--high", `${this.shape.height}px`);
  }

  mostBars() {
    let most = 2;
    for (const name of this.order) most = Math.max(most, this.bars.filter((bar) => shareOf(this.store, name, bar)).length);
    return most;
  }

  mostPodsOnANode() {
    if (this.zoom === "small" || this.zoom === "medium") return 0;
    return this.order.reduce((most, name) => Math.max(most, this.store.byNode.get(name)?.size ?? 0), 0);
  }

  dotRowsChanged() {
    return Boolean(this.shape?.dots) && shapeOf(this.zoom, this.mostBars(), this.mostPodsOnANode(), Boolean(this.colouring)).height !== this.shape.height;
  }

  showSoon() {
    if (this.isShowingSoon) return;
    this.isShowingSoon = true;
    requestAnimationFrame(() => { this.isShowingSoon = false; this.show(); });
  }

  // Puts the rows into the page that are on the screen, in their order, and takes the others out. A row is laid out and
  // painted by itself: to scroll costs the rows that come and go, not those that stay.
  show() {
    if (!this.placed) return;
    const top = this.root.getBoundingClientRect().top;
    const rows = rowsBetween(this.placed, -top - AROUND, innerHeight - top + AROUND);
    if (rows.length && this.shownFirst === rows[0] && this.shownLast === rows[rows.length - 1]) return;
    [this.shownFirst, this.shownLast] = [rows[0], rows[rows.length - 1]];
    const focused = this.focused();
    if (focused && !rows.some((row) => row.names?.includes(focused))) rows.push(...this.placed.rows.filter((row) => row.names?.includes(focused)));
    const wanted = new Map(rows.map((row) => [row, this.rows.get(row) ?? this.makeRow(row)]));
    const names = new Set(rows.flatMap((row) => row.names ?? []));
    for (const name of this.tiles.keys()) if (!names.has(name)) this.tiles.delete(name);
    for (const row of this.rows.keys()) if (row.group && !wanted.has(row)) this.headings.delete(row.group);
    this.rows = wanted;
    fill(this.root, this.order.length ? [...wanted.values()] : [this.note()]);
    if (focused && this.focused() !== focused) this.tiles.get(focused)?.open.focus({ preventScroll: true });
    this.makeReachable(names.has(this.reachable) ? this.reachable : names.values().next().value ?? this.reachable);
  }

  makeRow(row) {
    if (row.group) {
      const heading = make("h3", { style: { top: `${row.top}px` } });
      this.headings.set(row.group, heading);
      this.drawHeading(row.group, heading);
      return heading;
    }
    return make("div", { class: "line", style: { top: `${row.top}px` } }, ...row.names.map((name) => (this.tiles.get(name) ?? this.addTile(name)).item));
  }

  note() {
    return make("p", { class: "note" }, this.store.nodes.size ? "No node is like that." : "There are no nodes yet.");
  }

  // Tiles are made anew; rows always are, once their places are.
  forgetTiles() {
    this.tiles.clear();
  }

  addTile(name) {
    const tile = makeTile(name);
    this.tiles.set(name, tile);
    this.drawTile(name);
    tile.item.classList.toggle("chosen", this.isChosen(name));
    return tile;
  }

  drawTile(name) {
    if (this.store.nodes.has(name)) drawTile(this.tiles.get(name), name, this);
  }

  drawHeading(group, heading) {
    const sums = this.bars.slice(0, 2).map((bar) => {
      let [used, whole] = [0, 0];
      for (const name of group.names) {
        const share = shareOf(this.store, name, bar);
        used += share[0];
        whole += share[1];
      }
      return `${bar.name} ${percent(used, whole)}`;
    });
    const told = `${group.names.length} ${group.names.length === 1 ? "node" : "nodes"} · ${sums.join(" · ")}`;
    heading.replaceChildren(group.value || "without this label", make("small", {}, told));
  }

  // Every node by what it says to a pod; null for none.
  colour(colouring) {
    if (colouring === this.colouring) return;
    this.colouring = colouring;
    this.root.classList.toggle("coloured", Boolean(colouring));
    for (const name of this.tiles.keys()) this.drawTile(name);
  }

  mark(selection) {
    this.selection = selection;
    for (const [name, tile] of this.tiles) tile.item.classList.toggle("chosen", this.isChosen(name));
  }

  isChosen(name) {
    if (this.selection?.kind === "node") return this.selection.name === name;
    return this.selection?.kind === "pod" && this.store.pods.get(this.selection.name)?.node === name;
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

  focused() {
    return this.root.contains(document.activeElement) ? document.activeElement.closest("[data-node]")?.dataset.node : null;
  }

  onKey(event) {
    const name = event.target.closest("[data-node]")?.dataset.node;
    const at = this.order.indexOf(name);
    if (at < 0) return;
    const next = {
      ArrowRight: () => this.order[at + 1], ArrowLeft: () => this.order[at - 1],
      Home: () => this.order[0], End: () => this.order[this.order.length - 1],
      ArrowDown: () => this.inNextRow(name, 1), ArrowUp: () => this.inNextRow(name, -1),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    this.focus(next());
  }

  focus(name) {
    const row = this.placed.rows.find((one) => one.names?.includes(name));
    if (!row) return;
    const top = this.root.getBoundingClientRect().top + row.top;
    if (top < 90 || top + row.height > innerHeight) scrollBy(0, top - innerHeight / 2);
    this.show();
    this.makeReachable(name);
    this.tiles.get(name)?.open.focus({ preventScroll: true });
  }

  inNextRow(name, step) {
    const lines = this.placed.rows.filter((row) => row.names);
    const at = lines.findIndex((row) => row.names.includes(name));
    const line = lines[at + step]?.names;
    return line?.[Math.min(lines[at].names.indexOf(name), line.length - 1)];
  }
}

// These elements in this order, and no others; what is there already stays where it is.
function fill(parent, wanted) {
  const kept = new Set(wanted);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const element of wanted) {
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
}
