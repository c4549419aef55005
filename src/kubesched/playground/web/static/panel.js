// The panel beside the nodes, about what was chosen: a pod, a node, a pod group, or a manifest. This is its frame;
// pod_panel.js, node_panel.js, groups.js and editor.js have the contents.

import { make, refill } from "./dom.js";

export class Panel {
  // `contents` makes, by kind, what shows a selection; `choose` selects something else, or nothing.
  constructor(root, contents, choose) {
    this.root = root;
    this.contents = contents;
    this.choose = choose;
    this.selection = null;
    this.shown = null;
    this.opener = null;
    root.addEventListener("click", (event) => {
      const pod = event.target.closest("[data-pod]");
      const group = event.target.closest("[data-group]");
      const node = event.target.closest("[data-goto]");
      if (pod) choose({ kind: "pod", name: pod.dataset.pod });
      if (group) choose({ kind: "group", name: group.dataset.group });
      if (node) choose({ kind: "node", name: node.dataset.goto });
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && this.selection && !event.defaultPrevented) choose(null); });
  }

  show(selection) {
    const isSame = selection?.kind === this.selection?.kind && selection?.name === this.selection?.name;
    if (isSame) return;
    if (!this.selection) this.opener = document.activeElement;
    this.shown?.leave?.();
    this.selection = selection;
    this.root.hidden = !selection;
    this.root.parentElement.classList.toggle("has-detail", Boolean(selection));
    if (!selection) {
      this.shown = null;
      this.root.replaceChildren();
      this.giveFocusBack();
      return;
    }
    this.shown = this.contents[selection.kind](this, selection.name);
    this.draw();
    this.title.focus({ preventScroll: true });
    this.root.scrollTop = 0;
  }

  // To where one came from; a row that has been drawn anew meanwhile is found by its pod.
  giveFocusBack() {
    const { pod, node } = this.opener?.closest?.("[data-pod], [data-node]")?.dataset ?? {};
    const again = this.opener?.isConnected ? this.opener
      : pod ? document.querySelector(`.row[data-pod="${CSS.escape(pod)}"]`)
      : node && document.querySelector(`[data-node="${CSS.escape(node)}"] .open`);
    again?.focus({ preventScroll: true });
  }

  // The frame: what it is about, buttons, facts, and room for the rest.
  build(kind, name, ...buttons) {
    this.title = make("h2", { id: "detail-title", tabindex: "-1" }, make("small", {}, kind), name);
    this.facts = make("dl", { class: "facts" });
    this.content = make("div", { class: "content" });
    const close = make("button", { class: "plain", type: "button", on: { click: () => this.choose(null) } }, "Close");
    this.root.replaceChildren(make("header", {}, this.title, make("div", { class: "buttons" }, ...buttons, close)), this.facts, this.content);
  }

  draw() {
    this.shown?.draw();
  }

  isAbout(kind, name) {
    return this.selection?.kind === kind && this.selection?.name === name;
  }

  setFacts(facts) {
    refill(this.facts, facts.filter(([, value]) => value).map(([name, value]) =>
      make("div", { data: { key: name } }, make("dt", {}, name), make("dd", {}, value))));
  }
}

export const button = (text, click, kind = "plain") => make("button", { class: kind, type: "button", on: { click } }, text);

// Asks once more before it does something that cannot be undone.
export function carefulButton(text, act) {
  const made = button(text, async () => {
    if (made.dataset.asked) {
      delete made.dataset.asked;
      made.textContent = text;
      await act();
      return;
    }
    made.dataset.asked = "yes";
    made.textContent = `${text}: sure?`;
    setTimeout(() => { delete made.dataset.asked; made.textContent = text; }, 4000);
  });
  return made;
}
