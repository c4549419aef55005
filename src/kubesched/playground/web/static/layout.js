// Which nodes are shown, in which groups and order, and where each tile goes. Pure: neither reads nor draws the page.

import { inOrder } from "./format.js";
import { shareOf } from "./resources.js";

export const ZONE = "topology.kubernetes.io/zone";
export const NO_GROUPS = "";
const HEADING = 27;
const BELOW_GROUP = 14;

// Roomy tiles with numbers for a few nodes, large ones with pods, medium ones with bars, small ones for thousands.
export const ZOOMS = ["small", "medium", "large", "roomy"];
const MOST = { roomy: 24, large: 90, medium: 320 };

export function zoomFor(n) {
  return n <= MOST.roomy ? "roomy" : n <= MOST.large ? "large" : n <= MOST.medium ? "medium" : "small";
}

// The size of a tile with so many bars and so many pods at most; while nodes are coloured, what they say takes the place
// of their pods.
export function shapeOf(zoom, nBars, mostPods, isColoured = false) {
  const dotRows = (perRow, most) => Math.min(most, Math.max(1, Math.ceil(mostPods / perRow)));
  switch (zoom) {
    case "small": return { least: 23 + 9 * Math.max(0, nBars - 2), height: 28, gap: 3, isFixed: true };
    case "medium": return { least: 92, height: 30 + 9 * nBars, gap: 5 };
    case "large": return { least: 140, height: 38 + 9 * nBars + (isColoured ? 26 : 11 * dotRows(11, 4)), gap: 7, dots: 44 };
    default: return { least: 190, height: 50 + 15 * nBars + (isColoured ? 34 : 15 * dotRows(10, 5)), gap: 10, dots: 50 };
  }
}

// Groups of names: `view` has `words` to search for, `sort`, `group` (a label's key) and `only`, a function or null. With a
// `rank` (a function of names), what ranks low comes first, groups too.
export function arrange(store, view, bars, rank = null) {
  const names = [...store.nodes.keys()].filter((name) => (!view.only || view.only(name)) && matches(store, name, view.words));
  const inItsOrder = orderOf(store, view.sort, bars);
  const ranks = rank && new Map(names.map((name) => [name, rank(name)]));
  names.sort(ranks ? (one, other) => ranks.get(one) - ranks.get(other) || inItsOrder(one, other) : inItsOrder);
  const groups = new Map();
  for (const name of names) {
    const value = view.group === NO_GROUPS ? "" : store.nodes.get(name).labels[view.group] ?? "";
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(name);
  }
  const inGroupOrder = ([one, [first]], [other, [second]]) => (ranks ? Math.sign(ranks.get(first) - ranks.get(second)) : 0) || inOrder(one, other);
  return [...groups].sort(inGroupOrder).map(([value, members]) => ({ value, names: members }));
}

function matches(store, name, words) {
  if (!words.length) return true;
  const node = store.nodes.get(name);
  const labels = Object.entries(node.labels).map(([key, value]) => `${key}=${value}`);
  const text = [name, ...labels, ...(node.taints ?? []), ...store.marks(name).map(([word]) => word)].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function orderOf(store, sort, bars) {
  if (sort === "name") return inOrder;
  const bar = bars.find(({ name }) => name === sort);
  const weight = sort === "pods" ? (name) => store.usage(name).pods
    : sort === "marks" ? (name) => store.marks(name).length
    : (name) => { const [used, whole] = (bar && shareOf(store, name, bar)) ?? [0, 0]; return whole ? used / whole : used ? 1 : -1; };
  const weights = new Map([...store.nodes.keys()].map((name) => [name, weight(name)]));
  return (one, other) => weights.get(other) - weights.get(one) || inOrder(one, other);
}

// Rows from top to bottom, each a heading or a line of tiles, and the height of all.
export function place(groups, width, shape, hasHeadings) {
  const columns = Math.max(1, Math.floor((width + shape.gap) / (shape.least + shape.gap)));
  const tileWidth = shape.isFixed ? shape.least : (width - shape.gap * (columns - 1)) / columns;
  const rows = [];
  let top = 0;
  for (const group of groups) {
    if (hasHeadings) {
      rows.push({ top, height: HEADING, group });
      top += HEADING;
    }
    for (let first = 0; first < group.names.length; first += columns) {
      rows.push({ top, height: shape.height, names: group.names.slice(first, first + columns) });
      top += shape.height + shape.gap;
    }
    top += BELOW_GROUP;
  }
  return { rows, height: Math.max(0, top - BELOW_GROUP), columns, tileWidth, step: tileWidth + shape.gap };
}

// The rows that lie between two heights.
export function rowsBetween(placed, from, to) {
  let low = 0;
  let high = placed.rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (placed.rows[middle].top + placed.rows[middle].height < from) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < placed.rows.length && placed.rows[end].top <= to) end += 1;
  return placed.rows.slice(low, end);
}

// Keys of labels to group by: the usual ones first, then whatever nodes have.
export function labelKeys(store) {
  const found = new Set();
  for (const node of store.nodes.values()) for (const key in node.labels) found.add(key);
  const usual = [ZONE, "topology.kubernetes.io/region", "node.kubernetes.io/instance-type", "kubernetes.io/arch", "kubernetes.io/os"];
  return [...usual.filter((key) => found.has(key)), ...[...found].filter((key) => !usual.includes(key)).sort()];
}
