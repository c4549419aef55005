// About one pod: what it asks for, why it is where it is or waits, and what has happened to it. While it waits, nodes are
// coloured by what they say to it.

import { Colouring } from "./colouring.js";
import { ask } from "./connection.js";
import { make } from "./dom.js";
import { clock, moment, since, splitKey } from "./format.js";
import { button, carefulButton } from "./panel.js";
import { asksFor } from "./resources.js";
import { drawWhy, scoreTable } from "./why.js";

const ENDED = ["succeeded", "failed"];

export class PodPanel {
  constructor(panel, key, { store, about, colour }) {
    Object.assign(this, { panel, key, store, colour });
    const [namespace, name] = splitKey(key);
    const edit = { kind: "edit", name: `v1|Pod|${namespace}|${name}` };
    const buttons = about.canWrite ? [button("Edit", () => panel.choose(edit)), carefulButton("Delete", () => this.remove(namespace, name))] : [];
    panel.build(`pod in ${namespace}`, name, ...buttons);
    this.timeline = make("ol", { class: "timeline" });
    this.explanation = make("div", { id: "explanation", class: "why", "aria-live": "polite" });
    this.problem = make("p", { class: "problem", role: "alert" });
    this.then = make("div", { class: "why" });
    panel.content.replaceChildren(this.problem, make("h3", {}, "Why", button("Explain again", () => this.explain())), this.then, this.explanation, make("h3", {}, "Timeline"), this.timeline);
  }

  leave() {
    this.colour(null);
  }

  // What the store knows; the server is asked when that has changed.
  draw() {
    const pod = this.store.pods.get(this.key);
    const queued = this.store.queued(this.key);
    const toNode = pod?.node && make("button", { class: "link-like", type: "button", data: { goto: pod.node } }, pod.node);
    this.panel.setFacts(!pod ? [["State", "no longer there"]] : [
      ["State", make("span", { class: "badge" }, make("span", { class: `state ${pod.shown}` }), pod.shown)],
      ["Node", toNode], ["Nominated to", pod.nominated],
      ["Asks for", asksFor(pod, this.store)],
      ["Group", pod.group && make("button", { class: "link-like", type: "button", data: { group: pod.group } }, splitKey(pod.group)[1])],
      ["Owner", pod.owner], ["Priority", pod.priority && String(pod.priority)], ["Age", pod.created && since(pod.created)],
      ["In the queue", queued && `${queued.place}, ${queued.attempts} ${queued.attempts === 1 ? "attempt" : "attempts"}`],
    ]);
    const seen = JSON.stringify([pod?.state, pod?.node, queued?.attempts]);
    if (seen === this.seen) return;
    this.seen = seen;
    this.fetchTimeline();
    this.explain();
  }

  async fetchTimeline() {
    let shown;
    let chosen;
    try {
      const { timeline, note } = await ask(`timeline/${this.key}`);
      shown = timeline.map(entryOf);
      if (note) shown.push(make("li", { class: "note" }, note));
      chosen = timeline.findLast((entry) => entry.scores?.length);
    } catch (problem) {
      shown = [make("li", { class: "warning" }, problem.message)];
    }
    if (!this.panel.isAbout("pod", this.key)) return;
    this.timeline.replaceChildren(...shown);
    this.then.replaceChildren(...(chosen ? [make("h4", {}, `Scores when it was scheduled, at ${clock(chosen.at)}`), scoreTable(chosen.scores, [chosen.scores[0].node])] : []));
  }

  async explain() {
    const pod = this.store.pods.get(this.key);
    if (ENDED.includes(pod?.state)) return this.say("It has ended: there is nothing left to decide.");
    if (!this.explanation.hasChildNodes()) this.say("asking the scheduler …");
    try {
      const why = await ask(`explain/${this.key}`);
      if (!this.panel.isAbout("pod", this.key)) return;
      const isBound = Boolean(this.store.pods.get(this.key)?.node);
      this.explanation.replaceChildren(...drawWhy(why, { isBound }));
      this.colour(isBound ? null : new Colouring(why, splitKey(this.key)[1]));
    } catch (problem) {
      if (this.panel.isAbout("pod", this.key)) this.say(problem.message);
    }
  }

  say(text) {
    this.explanation.replaceChildren(make("p", { class: "note" }, text));
  }

  async remove(namespace, name) {
    try {
      await ask("delete", { apiVersion: "v1", kind: "Pod", namespace, name });
    } catch (problem) {
      this.problem.textContent = problem.message;
    }
  }
}

function entryOf(entry) {
  const often = entry.count ? ` ×${entry.count} since ${clock(entry.since)}` : "";
  return make("li", { class: entry.isWarning ? "warning" : "" }, make("b", {}, entry.what),
    make("time", { datetime: moment(entry.at) }, `${clock(entry.at)}${often}`), entry.message && make("p", {}, entry.message),
    entry.scores?.length > 0 && make("p", {}, `score ${entry.scores[0].total}${entry.scores[1] ? `; next was ${entry.scores[1].node} with ${entry.scores[1].total}` : ""}`));
}
