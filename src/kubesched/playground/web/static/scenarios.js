// Five scenarios to load by a click, and what to type first when the cluster is empty.

import { ask } from "./connection.js";
import { make } from "./dom.js";
import { button } from "./panel.js";

export class ScenarioPanel {
  constructor(panel, { about }) {
    panel.build("load by a click", "Scenarios");
    this.said = make("p", { class: "note", role: "status" });
    panel.content.replaceChildren(this.said, ...about.scenarios.map((scenario) => make("section", { class: "scenario" },
      make("h3", {}, scenario.title, button("Load", () => this.load(scenario), "main")), make("p", {}, scenario.about))),
      make("p", { class: "note" }, "Each has a namespace and nodes of its own. To remove one: kubectl delete namespace NAME, and delete its nodes here."));
  }

  draw() {}

  async load(scenario) {
    this.said.textContent = `loading ${scenario.title} …`;
    try {
      await ask(`scenarios/${scenario.name}`, {});
      this.said.textContent = `${scenario.title} is loaded. ${scenario.about}`;
    } catch (problem) {
      this.said.textContent = problem.message;
    }
  }
}

// Instead of an empty list of pods.
export function firstSteps(about, choose) {
  return make("div", { class: "first" }, make("p", {}, "No pods yet. Type in a terminal:"), make("pre", { tabindex: "0" }, about.hint),
    about.canWrite && make("p", {}, "or ", button("load a scenario", () => choose({ kind: "scenarios", name: "" }), "link-like"), ", or ", button("create something", () => choose({ kind: "new", name: "" }), "link-like"), "."));
}
