// Where the page begins: logs in, listens, and draws at most once for each picture that the screen shows.
// store.js keeps the state; nodes.js, lists.js, totals.js and detail.js draw it; controls.js says which nodes are shown, and
// how; connection.js talks to the server.

import { listen, logIn } from "./connection.js";
import { Controls, drawLegend } from "./controls.js";
import { Detail } from "./detail.js";
import { find } from "./dom.js";
import { Pods, Queue } from "./lists.js";
import { Nodes } from "./nodes.js";
import { barsOf } from "./resources.js";
import { Store } from "./store.js";
import { drawTotals } from "./totals.js";

const store = new Store();
const controls = new Controls(store, () => { nodes.layOut(); controls.draw(nodes.bars, nodes.zoom); });
const nodes = new Nodes(find("zones"), store, controls.view, choose);
const queue = new Queue(store);
const pods = new Pods(store);
const detail = new Detail(find("detail"), store, choose);
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
  pods.draw();
  detail.draw();
  nodes.mark(detail.selection);
}

// What is chosen stands in the address: the browser's back button works, and a link leads to a pod.
function choose(selection) {
  location.hash = selection ? `${selection.kind}=${selection.name}` : "";
}

function showChosen() {
  const [, kind, name] = /^#(pod|node)=(.+)$/.exec(location.hash) ?? [];
  detail.show(kind ? { kind, name } : null);
  nodes.mark(detail.selection);
}

for (const list of ["queued", "pods"]) {
  find(list).addEventListener("click", (event) => {
    const row = event.target.closest("[data-pod]");
    if (row) choose({ kind: "pod", name: row.dataset.pod });
  });
}
addEventListener("hashchange", async () => {
  if (await logIn()) location.reload(); // the printed link was pasted into a page that was open already
  else showChosen();
});
setInterval(() => { if (!document.hidden) queue.draw(); }, 1000);

await logIn();
listen({
  onState: (state) => { store.replace(state); draw(); showChosen(); },
  onChange: (change) => { store.apply(change); drawSoon(); },
  onLink: (kind, told) => { find("link").className = `link ${kind}`; find("link").textContent = told; },
});
