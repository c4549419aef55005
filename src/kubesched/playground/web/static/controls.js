// What one chooses to see of the nodes: words to search for, an order, a label to group by, a zoom. `view` is what is
// chosen; `onChange` is called when it is not the same any more.

import { find, make } from "./dom.js";
import { labelKeys, NO_GROUPS, ZONE, ZOOMS } from "./layout.js";
import { shortName } from "./resources.js";

export class Controls {
  constructor(store, onChange) {
    this.store = store;
    this.view = { words: [], sort: "name", group: ZONE, zoom: null, only: null };
    this.onChange = onChange;
    find("node-search").addEventListener("input", (event) => this.set({ words: event.target.value.trim().toLowerCase().split(/\s+/).filter(Boolean) }));
    find("node-sort").addEventListener("change", (event) => this.set({ sort: event.target.value }));
    find("node-group").addEventListener("change", (event) => this.set({ group: event.target.value }));
    find("zoom-out").addEventListener("click", () => this.zoom(-1));
    find("zoom-in").addEventListener("click", () => this.zoom(1));
    this.current = "roomy";
  }

  set(chosen) {
    Object.assign(this.view, chosen);
    this.onChange();
  }

  zoom(step) {
    const at = ZOOMS.indexOf(this.current) + step;
    if (ZOOMS[at]) this.set({ zoom: ZOOMS[at] });
  }

  // The choices that there are; `zoom` is how nodes are drawn at the moment.
  draw(bars, zoom) {
    this.current = zoom;
    find("zoom-out").disabled = zoom === ZOOMS[0];
    find("zoom-in").disabled = zoom === ZOOMS[ZOOMS.length - 1];
    offer(find("node-sort"), this.view.sort, [["name", "by name"], ...bars.map((bar) => [bar.name, `most ${shortName(bar.name)}`]), ["pods", "most pods"], ["marks", "marked first"]]);
    const keys = [...new Set([ZONE, ...labelKeys(this.store)])];
    const isAmbiguous = (key) => keys.filter((other) => lastPart(other) === lastPart(key)).length > 1;
    offer(find("node-group"), this.view.group, [[NO_GROUPS, "no groups"], ...keys.map((key) => [key, isAmbiguous(key) ? `by ${key}` : `by ${lastPart(key)}`])]);
  }
}

const lastPart = (key) => key.slice(key.indexOf("/") + 1);

function offer(select, chosen, choices) {
  const wanted = JSON.stringify(choices);
  if (select.dataset.choices === wanted) return;
  select.dataset.choices = wanted;
  select.replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
  select.value = choices.some(([value]) => value === chosen) ? chosen : choices[0][0];
}

// What the colours of bars and the letters of marks mean.
export function drawLegend(root, bars, store, zoom) {
  const marks = new Map();
  for (const name of store.nodes.keys()) for (const [word, letter, meaning] of store.marks(name)) marks.set(word, [letter, meaning]);
  const items = bars.map((bar) => make("li", {}, make("i", { class: `swatch ${bar.colour}` }), bar.isDriver ? `${bar.name} devices` : bar.name));
  if (zoom === "large" || zoom === "roomy") items.push(make("li", {}, make("i", { class: "swatch dot running" }), "a pod"));
  for (const [word, [letter, meaning]] of marks) items.push(make("li", { title: meaning }, make("b", { class: `letter ${word.replace(" ", "-")}` }, letter), word));
  const wanted = items.map((item) => item.outerHTML).join("");
  if (root.dataset.drawn === wanted) return;
  root.dataset.drawn = wanted;
  root.replaceChildren(...items);
}

// While nodes are coloured: what the colours mean, and, pressed, only the nodes of one of them.
export function drawVerdicts(root, colouring, onOnly) {
  root.hidden = !colouring;
  if (!colouring) return root.replaceChildren();
  let pressed = null;
  const chips = colouring.legend().map(([key, kind, words, n]) => {
    const chip = make("button", { class: "chip verdict-chip", type: "button", "aria-pressed": "false", title: words }, make("b", { class: `number ${kind}` }, key === "fits" ? "✓" : key.slice("group-".length) * 1 + 1 + ""), make("span", {}, key === "fits" ? "could take it" : words.replace(/^\d+\. /, "")), make("b", {}, String(n)));
    chip.addEventListener("click", () => {
      pressed = pressed === key ? null : key;
      for (const other of chips) other.setAttribute("aria-pressed", String(other === chip && pressed !== null));
      onOnly(pressed ? (node) => colouring.isIn(key, node) : null);
    });
    return chip;
  });
  root.replaceChildren(make("h3", {}, `What each node says to ${colouring.title}`), make("div", { class: "chips" }, ...chips));
}
