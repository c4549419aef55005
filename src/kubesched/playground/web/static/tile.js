// One node as a tile: its name, what marks it, a bar for each resource, its pods; or, while a pod is asked about, its
// reason or its score.

import { make, refill } from "./dom.js";
import { count, inOrder, part, percent } from "./format.js";
import { amount, shareOf, shortName } from "./resources.js";

export function makeTile(name) {
  const open = make("button", { class: "open", type: "button", tabindex: "-1" }, name);
  const mark = make("span", { class: "mark", "aria-hidden": "true" });
  const bars = make("div", { class: "bars", "aria-hidden": "true" });
  const verdict = make("div", { class: "verdict", "aria-hidden": "true" });
  const dots = make("div", { class: "dots", "aria-hidden": "true" });
  return { item: make("div", { class: "tile", data: { node: name, key: name } }, open, mark, bars, verdict, dots), open, mark, bars, verdict, dots };
}

export function drawTile(tile, name, { store, bars, zoom, shape, colouring }) {
  const shares = bars.map((bar) => [bar, shareOf(store, name, bar)]).filter(([, share]) => share);
  const marks = store.marks(name);
  const verdict = colouring?.verdictOf(name) ?? null;
  drawMark(tile, marks, zoom);
  drawBars(tile.bars, shares, zoom === "roomy");
  drawVerdict(tile, verdict, zoom);
  const pods = store.usage(name).pods;
  const told = `${name}${marks.map(([word]) => `, ${word}`).join("")}: ${shares.map(([bar, share]) => shareText(bar, share)).join(", ")}, ` +
    `${count(pods)} of ${count(store.nodes.get(name).amounts.pods ?? 0)} pods`;
  const label = verdict ? `${told}. ${verdict.told}` : told;
  if (tile.open.getAttribute("aria-label") !== label) {
    tile.open.setAttribute("aria-label", label);
    tile.item.title = verdict ? `${name}: ${verdict.told}` : told;
  }
  if (shape.dots) drawDots(tile.dots, store, name, shape.dots);
}

function shareText(bar, [used, whole]) {
  if (bar.isDriver) return `${bar.name} ${used} of ${whole} devices`;
  return `${bar.name} ${amount(bar.name, used)} of ${amount(bar.name, whole)} (${percent(used, whole)})`;
}

function drawMark(tile, marks, zoom) {
  const [worst] = marks;
  const text = !worst ? "" : zoom === "small" || zoom === "medium" ? worst[1] : worst[0];
  if (tile.mark.textContent !== text) tile.mark.textContent = text;
  const kind = worst ? worst[0].replace(" ", "-") : "";
  if (tile.item.dataset.mark !== kind) tile.item.dataset.mark = kind;
}

function drawBars(root, shares, hasNumbers) {
  while (root.children.length > shares.length) root.lastChild.remove();
  while (root.children.length < shares.length) root.append(make("div", {}, make("i"), hasNumbers && make("small")));
  shares.forEach(([bar, [used, whole]], index) => {
    const drawn = root.children[index];
    const names = `bar ${bar.colour}`;
    if (drawn.className !== names) drawn.className = names;
    const filled = (whole > 0 ? part(used, whole) : used ? 1 : 0).toFixed(3);
    if (drawn.dataset.part !== filled || hasNumbers) {
      drawn.dataset.part = filled;
      drawn.firstChild.style.setProperty("--part", filled);
      if (hasNumbers) drawn.lastChild.textContent = `${shortName(bar.name)} ${percent(used, whole)}`;
    }
  });
}

function drawVerdict(tile, verdict, zoom) {
  const kind = verdict ? verdict.kind : "";
  if (tile.item.dataset.verdict !== kind) tile.item.dataset.verdict = kind;
  tile.item.classList.toggle("far", Boolean(verdict?.isFar));
  const text = !verdict ? "" : zoom === "small" ? verdict.short : zoom === "medium" ? verdict.brief : verdict.text;
  if (tile.verdict.textContent !== text) tile.verdict.textContent = text;
}

function drawDots(dots, store, name, most) {
  const pods = store.podsOn(name).sort((one, other) => inOrder(one[0], other[0]));
  const shown = pods.length > most ? pods.slice(0, most - 3) : pods;
  const drawn = shown.map(([key, pod]) =>
    make("span", { class: pod.shown, title: `${key}: ${pod.shown}`, data: { pod: key, key } }));
  if (shown.length < pods.length) drawn.push(make("b", { data: { key: "more" } }, `+${pods.length - shown.length}`));
  refill(dots, drawn);
}
