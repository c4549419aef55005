// A manifest to write: a new object, an object to change, or a pod to try without creating it. While one types, the API
// server is asked whether it would take it (a dry run).

import { Colouring } from "./colouring.js";
import { ask } from "./connection.js";
import { find, make } from "./dom.js";
import { button, carefulButton } from "./panel.js";
import { drawWhy } from "./why.js";

const VALIDATE_AFTER_MS = 500;
const POD = `apiVersion: v1
kind: Pod
metadata:
  name: my-pod
spec:
  containers:
    - name: main
      image: nginx
      resources:
        requests:
          cpu: "1"
          memory: 1Gi
`;
const TEMPLATES = {
  Pod: POD,
  Deployment: `apiVersion: apps/v1
kind: Deployment
metadata:
  name: my-app
spec:
  replicas: 3
  selector:
    matchLabels: {app: my-app}
  template:
    metadata:
      labels: {app: my-app}
    spec:
      containers:
        - name: main
          image: nginx
          resources:
            requests: {cpu: 500m, memory: 512Mi}
`,
  Node: `apiVersion: v1
kind: Node
metadata:
  name: my-node
  labels:
    topology.kubernetes.io/zone: zone-0
status:
  capacity: {cpu: "8", memory: 32Gi, pods: "110", nvidia.com/gpu: "2"}
  allocatable: {cpu: "8", memory: 32Gi, pods: "110", nvidia.com/gpu: "2"}
`,
  PriorityClass: `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: urgent
value: 1000
`,
};

class Editor {
  constructor(panel, title, kind, ...buttons) {
    this.panel = panel;
    panel.build(kind, title, ...buttons);
    this.text = make("textarea", { id: "manifest", class: "manifest", spellcheck: "false", "aria-label": "Manifest as YAML", "aria-describedby": "verdict", rows: "20" });
    this.verdict = make("p", { id: "verdict", class: "note", role: "status" });
    this.result = make("div", { class: "why", "aria-live": "polite" });
    this.text.addEventListener("keydown", (event) => this.onKey(event));
  }

  draw() {}

  // Tab leaves the field, as everywhere; two spaces are typed by Ctrl+Tab's neighbour, the space bar. Ctrl+Enter does it.
  onKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.act(); }
  }

  say(text, kind = "note") {
    this.verdict.className = kind;
    this.verdict.textContent = text;
  }
}

// Creates what is new, and replaces what is edited.
export class ObjectEditor extends Editor {
  constructor(panel, name) {
    const [apiVersion, kind, namespace, objectName] = name ? name.split("|") : [];
    super(panel, name ? objectName : "New object", name ? `edit ${kind}${namespace ? ` in ${namespace}` : ""}` : "as YAML");
    this.ref = name && { apiVersion, kind, namespace, name: objectName };
    const act = button(name ? "Save" : "Create", () => this.act(), "main");
    const templates = make("p", { class: "chips" }, ...Object.keys(TEMPLATES).map((one) => button(one, () => this.fill(TEMPLATES[one]), "chip")));
    const remove = name && carefulButton("Delete", () => this.remove());
    panel.content.replaceChildren(...[!name && templates, this.text, this.verdict, make("p", { class: "buttons" }, act, remove)].filter(Boolean));
    this.text.addEventListener("input", () => this.validateSoon());
    if (name) this.load();
    else this.fill(POD);
  }

  leave() {
    clearTimeout(this.timer);
  }

  async load() {
    try {
      this.fill((await ask(`object?${new URLSearchParams(this.ref)}`)).yaml);
    } catch (problem) {
      this.say(problem.message, "problem");
    }
  }

  fill(text) {
    this.text.value = text;
    this.validateSoon();
  }

  validateSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(true), VALIDATE_AFTER_MS);
  }

  act() {
    clearTimeout(this.timer);
    return this.send(false);
  }

  async send(dryRun) {
    const yaml = this.text.value;
    try {
      const { objects } = await ask("objects", { yaml, dryRun });
      if (this.text.value !== yaml && dryRun) return;
      const names = objects.map((one) => `${one.kind} ${one.namespace ? `${one.namespace}/` : ""}${one.name}`).join(", ");
      this.say(dryRun ? `Valid: the server would take ${names || "it"}.` : `${objects[0].done}: ${names}`, dryRun ? "note" : "good");
      if (!dryRun && this.ref) await this.load();
    } catch (problem) {
      if (this.text.value === yaml) this.say(problem.message, "problem");
    }
  }

  async remove() {
    try {
      await ask("delete", this.ref);
      this.panel.choose(null);
    } catch (problem) {
      this.say(problem.message, "problem");
    }
  }
}

// "What if I asked for …": where a pod would go, by the scheduler, without creating it.
export class WhatIf extends Editor {
  constructor(panel, { colour }) {
    super(panel, "What if", "a pod that is not created");
    this.colour = colour;
    this.text.rows = 16;
    this.text.value = POD;
    panel.content.replaceChildren(
      make("p", { class: "note" }, "A Pod, or any workload with a pod template. Nothing is created."),
      this.text, make("p", { class: "buttons" }, button("Where would it go?", () => this.act(), "main")), this.verdict, this.result);
  }

  leave() {
    this.colour(null);
  }

  async act() {
    this.say("asking the scheduler …");
    try {
      const why = await ask("whatif", { yaml: this.text.value });
      if (!this.text.isConnected) return;
      this.say("");
      this.result.replaceChildren(...drawWhy(why));
      this.colour(new Colouring(why, "this pod"));
    } catch (problem) {
      this.result.replaceChildren();
      this.colour(null);
      this.say(problem.message, "problem");
    }
  }
}
