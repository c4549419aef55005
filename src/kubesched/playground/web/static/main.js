// Where the page begins: logs in, listens, and draws at most once for each picture that the screen shows.
// store.js keeps the state; nodes.js, lists.js, decisions.js, groups.js, totals.js and panel.js draw it; controls.js says which nodes
// are shown, and how; connection.js talks to the server.

import { ask, listen, logIn, useToken } from "./connection.js";
import { Controls, drawLegend, drawVerdicts } from "./controls.js";
import { Decisions } from "./decisions.js";
import { find } from "./dom.js";
import { ObjectEditor, WhatIf } from "./editor.js";
import { drawGroups, GroupPanel } from "./groups.js";
import { Pods, Queue } from "./lists.js";
import { NodePanel } from "./node_panel.js";
import { Nodes } from "./nodes.js";
import { Panel } from "./panel.js";
import { PodPanel } from "./pod_panel.js";
import { barsOf } from "./resources.js";
import { firstSteps, ScenarioPanel } from "./scenarios.js";
import { Store } from "./store.js";
import { drawTotals } from "./totals.js";

const about = { canWrite: false, canAsk: false, hint: "", scenarios: [] };
const store = new Store();
const controls = new Controls(store, () => { nodes.layOut(); controls.draw(nodes.bars, nodes.zoom); });
const nodes = new Nodes(find("zones"), store, controls.view, choose);
const queue = new Queue(store);
const pods = new Pods(store);
const decisions = new Decisions();
const around = { store, about, colour };
const panel = new Panel(find("detail"), {
  pod: (frame, name) => new PodPanel(frame, name, around),
  node: (frame, name) => new NodePanel(frame, name, around),
  group: (frame, name) => new GroupPanel(frame, name, around),
  new: (frame) => new ObjectEditor(frame, null),
  edit: (frame, name) => new ObjectEditor(frame, name),
  whatif: (frame) => new WhatIf(frame, around),
  scenarios: (frame) => new ScenarioPanel(frame, around),
}, choose);
const TABS = ["queue", "decisions", "groups"];
let isDrawingSoon = false;

function drawSoon() {
  if (isDrawingSoon) return;
  isDrawingSoon = true;
  requestAnimationFrame(draw);
}

function draw() {
  isDrawingSoon = false;
  const bars = barsOf(store);
  nodes.draw(bars);
  controls.draw(bars, nodes.zoom);
  drawLegend(find("legend"), bars, store, nodes.zoom);
  drawTotals(find("totals"), store, bars);
  queue.draw();
  drawGroups(store);
  pods.draw();
  drawFirstSteps();
  panel.draw();
  nodes.mark(panel.selection);
}

function drawFirstSteps() {
  const isEmpty = store.pods.size === 0 && Boolean(about.hint);
  if (isEmpty && !find("first").hasChildNodes()) find("first").replaceChildren(firstSteps(about, choose));
  find("first").hidden = !isEmpty;
  find("pods").hidden = isEmpty;
}

// Every node by what it says to a pod; null ends that.
function colour(colouring) {
  controls.view.only = null;
  nodes.colour(colouring);
  drawVerdicts(find("verdicts"), colouring, (only) => controls.set({ only }));
  find("legend").hidden = Boolean(colouring);
  nodes.layOut();
}

// What is chosen stands in the address: the browser's back button works, and a link leads to a pod.
function choose(selection) {
  location.hash = selection ? `${selection.kind}=${selection.name}` : "";
}

function showChosen() {
  const [, kind, name] = /^#(pod|node|group|new|edit|whatif|scenarios)=(.*)$/.exec(decodeURI(location.hash)) ?? [];
  const isAllowed = ["pod", "node", "group"].includes(kind) || (kind === "whatif" ? about.canAsk : about.canWrite);
  panel.show(kind && isAllowed ? { kind, name } : null);
  nodes.mark(panel.selection);
}

function showTab(chosen) {
  for (const name of TABS) {
    const isChosen = name === chosen;
    find(`${name}-tab`).setAttribute("aria-selected", String(isChosen));
    find(`${name}-tab`).tabIndex = isChosen ? 0 : -1;
    find(`${name}-panel`).hidden = !isChosen;
  }
  decisions.show(chosen === "decisions");
}

for (const name of TABS) {
  find(`${name}-tab`).addEventListener("click", () => showTab(name));
  find(`${name}-tab`).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const shown = TABS.filter((tab) => !find(`${tab}-tab`).hidden);
    const other = shown.at((shown.indexOf(name) + (event.key === "ArrowLeft" ? -1 : 1)) % shown.length);
    showTab(other);
    find(`${other}-tab`).focus();
  });
}
for (const list of ["queued", "pods", "decided", "groups"]) {
  find(list).addEventListener("click", (event) => {
    const row = event.target.closest("[data-pod]");
    if (row) choose({ kind: "pod", name: row.dataset.pod });
    const group = event.target.closest("[data-group]");
    if (group) choose({ kind: "group", name: group.dataset.group });
  });
}
addEventListener("hashchange", async () => {
  if (await logIn()) location.reload(); // the printed link was pasted into a page that was open already
  else showChosen();
});
// A single key for each thing one does often, where no text is typed.
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const go = { "/": () => find("node-search").focus(), p: () => find("search").focus(), w: () => about.canAsk && choose({ kind: "whatif", name: "" }), n: () => about.canWrite && choose({ kind: "new", name: "" }), d: () => showTab("decisions"), g: () => store.groups.size && showTab("groups"), q: () => showTab("queue") }[event.key];
  if (!go) return;
  event.preventDefault();
  go();
});
find("login").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(find("token").value.trim());
  begin();
});
setInterval(() => { if (!document.hidden) queue.draw(); }, 1000);

function onLink(kind, status) {
  const words = { live: about.canWrite ? "live" : "live, read only", lost: "connection lost, trying again", refused: "refused: open the link that kubesched printed" };
  const asksForToken = kind === "refused" && location.pathname.startsWith("/web");
  find("login").hidden = !asksForToken;
  find("link").className = `link ${kind === "refused" ? "lost" : kind}`;
  find("link").textContent = asksForToken ? (status === 403 ? "this account may not see the page" : "who are you?") : words[kind];
}

async function begin() {
  Object.assign(about, await ask("about").catch(() => ({})));
  find("actions").hidden = !about.canAsk && !about.canWrite;
  for (const link of find("actions").children) link.hidden = link.hash === "#whatif=" ? !about.canAsk : !about.canWrite;
  listen({
    onState: (state) => { store.replace(state); draw(); showChosen(); },
    onChange: (change) => { store.apply(change); drawSoon(); },
    onLink,
  });
}

await logIn();
begin();
