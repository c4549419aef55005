"""The moments of a scheduler's journal as a page: a slider over its attempts; the cluster, the queue and why, then.

Next: `kubesched.simulator.replay.exact`, which finds them; `html_report` for what pages have in common.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape

from kubesched.explanation.layout import counted
from kubesched.planning.html_report import whole_page
from kubesched.simulator.replay.exact import Moments


@dataclass(frozen=True, slots=True)
class MomentsPage:
    command: str
    moments: Moments

    @property
    def headline(self) -> str:
        found, replay = self.moments.found, self.moments.replay
        if self.moments.is_whole:
            return replay.headline
        first = found[0].attempt.number
        return f"{counted(len(found), 'attempt')}, from the {first:,}. on; the journal goes on."

    def to_html(self) -> str:
        started_s = self.moments.replay.header.started_s
        found = self.moments.found
        data = {
            "startedS": started_s,
            "first": found[0].attempt.number if found else 0,
            "moments": [moment.to_dict(started_s) for moment in found],
        }
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
        body = _BODY.format(command=escape(self.command), headline=escape(self.headline))
        data_block = f'<script type="application/json" id="data">{text}</script>'
        return whole_page(f"{self.command}: {self.headline}", body + data_block, _SCRIPT, _STYLE)


_BODY = """<header><p class=dim>{command}: {headline}</p>
<h1 id=told aria-live=polite></h1></header>
<section id=time aria-label="Time">
<svg id=strip viewBox="0 0 1000 34" preserveAspectRatio=none aria-hidden=true></svg>
<input type=range id=at min=0 step=1 aria-label="Attempt">
<div class=bar>
<button id=first title="First attempt (Home)" aria-label="First attempt">«</button>
<button id=back title="One attempt back (←)" aria-label="One attempt back">‹</button>
<button id=play title="Play (space)" aria-label="Play">play</button>
<button id=on title="One attempt on (→)" aria-label="One attempt on">›</button>
<button id=last title="Last attempt (End)" aria-label="Last attempt">»</button>
<button id=failed title="To the next attempt that finds no node (f)">next that finds no node</button>
<input type=search id=pod placeholder="pod, then Enter" aria-label="To the next attempt of this pod">
<output id=when></output>
</div></section>
<div class=columns>
<section><h2>Nodes <small class=dim id=sum></small></h2><ul id=nodes></ul>
<div id=on-node hidden></div></section>
<section><h2>Why</h2><div id=why class="why" tabindex=0 role=region aria-label="Why"></div>
<h2>Queue</h2><div id=queue></div></section>
</div>
<p class=dim>Keys: ← and → one attempt, with Shift ten; Home, End; f the next that finds no node; space plays.
A node shows how much of its CPU (above) and memory (below) is requested; click it for its pods.</p>
"""

_STYLE = """
h1.bad::before{content:"✕ "}h1.good::before{content:"→ "}
#time{border:1px solid var(--line);border-radius:8px;background:var(--soft);padding:.8rem 1rem}
#strip{width:100%;max-width:none;height:34px}#strip rect.now{fill:none;stroke:var(--fg);stroke-width:1.5;
vector-effect:non-scaling-stroke}
#at{width:100%;margin:.3rem 0 .5rem;padding:0;accent-color:var(--a);display:block}
.bar{display:flex;flex-wrap:wrap;gap:.4rem;align-items:center}
.bar button{font:inherit;font-size:.85rem;padding:.25rem .7rem;border:1px solid var(--line);border-radius:6px;
background:var(--bg);color:var(--fg);cursor:pointer}
.bar button:hover{border-color:var(--a)}
:focus-visible{outline:2px solid var(--a);outline-offset:1px}
.bar input{margin-left:0;padding:.25rem .5rem;width:11rem}
.bar output{margin-left:auto;font-variant-numeric:tabular-nums}
.columns{display:grid;grid-template-columns:minmax(0,1.2fr) minmax(0,1fr);gap:0 2rem;align-items:start}
@media (max-width:60rem){.columns{grid-template-columns:minmax(0,1fr)}}
#nodes{list-style:none;margin:0;padding:0;display:grid;gap:.45rem;
grid-template-columns:repeat(auto-fill,minmax(var(--tile,8.5rem),1fr));max-height:36rem;overflow-y:auto}
#nodes button{all:unset;box-sizing:border-box;width:100%;cursor:pointer;border:1px solid var(--line);border-radius:6px;
padding:.35rem .5rem;font-size:.8rem;background:var(--bg)}
#nodes button:focus-visible{outline:2px solid var(--a)}
#nodes .name{display:flex;justify-content:space-between;gap:.4rem}
#nodes .name b{font-weight:500;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
#nodes .meter{height:5px;border-radius:3px;background:var(--line);margin-top:4px;overflow:hidden}
#nodes .meter i{display:block;height:100%;background:var(--a)}#nodes .meter i.memory{background:var(--b)}
#nodes .taken button{border-color:var(--good);box-shadow:0 0 0 2px var(--good)}
#nodes .cordoned{border-style:dashed}
#nodes.small .name span,#nodes.small .meter+.meter{display:none}
#on-node{margin-top:.8rem;border:1px solid var(--line);border-radius:6px;padding:.5rem .8rem;font-size:.85rem}
#on-node p{margin:.1rem 0}
.why{overflow-x:auto;font-size:.85rem;max-height:26rem;overflow-y:auto}
.why p{margin:.4rem 0}.why ol{padding-left:1.4rem}
.why table{margin:.4rem 0;width:auto}.why th{position:static;background:none;font-weight:600}
.why th,.why td{padding:.15rem .8rem .15rem 0}
#queue table{width:auto}#queue th,#queue td{border:0;padding:.1rem .8rem .1rem 0}
#queue th{position:static;background:none;font-weight:500}
#queue td{overflow-wrap:anywhere}.bar button{min-width:2.2rem}
"""

_SCRIPT = """
const data = JSON.parse(document.getElementById("data").textContent);
const moments = data.moments, $ = id => document.getElementById(id), made = (tag, text, kind) => {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (kind) found.className = kind;
  return found;
};
// Where everything was: kept every so often, so that going back is as quick as going on.
const EVERY = 200, kept = [];
let at = -1, nodes = new Map(), pods = new Map();
const apply = (map, changes) => {
  for (const [name, value] of Object.entries(changes ?? {})) value === null ? map.delete(name) : map.set(name, value);
};
const step = number => {
  apply(nodes, moments[number].nodes);
  apply(pods, moments[number].pods);
  if (number % EVERY === 0) kept[number / EVERY] = [new Map(nodes), new Map(pods)];
};
const goTo = number => {
  if (!moments.length) return;
  number = Math.max(0, Math.min(moments.length - 1, number));
  if (number < at) {
    const base = Math.floor(number / EVERY);
    [nodes, pods] = kept[base].map(map => new Map(map));
    at = base * EVERY;
  }
  while (at < number) step(++at);
  show();
};
const seconds = s => s < 120 ? `${s.toFixed(3)} s` : `${Math.floor(s / 60)} min ${(s % 60).toFixed(1)} s`;
const cores = milli => `${+(milli / 1000).toFixed(2)}`, gib = bytes => `${+(bytes / 2 ** 30).toFixed(1)} GiB`;
let chosen = "";
const show = () => {
  const moment = moments[at], name = moment.pod;
  $("told").textContent = moment.node ? `${name} goes to ${moment.node}` : moment.head ?? `${name} finds no node`;
  $("told").className = moment.node ? "good" : "bad";
  $("at").value = at;
  const clock = new Date((data.startedS + moment.t) * 1000).toISOString().slice(11, 23);
  const number = n => (data.first + n).toLocaleString("en");
  const place = `attempt ${number(at)} of ${number(moments.length - 1)}`;
  $("when").textContent = `${place} · ${seconds(moment.t)} · ${clock} UTC`;
  $("at").setAttribute("aria-valuetext", `${place}: ${$("told").textContent}`);
  showNodes(moment);
  showQueue(moment);
  $("why").innerHTML = moment.why ?? "";
  const told = moment.text ?? (moment.fits === 1 ? "One node could take it." : `${moment.fits} nodes could take it.`);
  $("why").prepend(made("p", moment.why ? told : `${told} There are too many attempts here to explain each.`, "dim"));
  $("why").scrollTop = 0;
  const now = document.querySelector("#strip .now");
  now.setAttribute("x", at / moments.length * 1000);
  history.replaceState(null, "", `#${data.first + at}`);
};
const tiles = new Map();
const tileOf = name => {
  let tile = tiles.get(name);
  if (!tile) {
    const item = made("li"), button = made("button"), line = made("span", undefined, "name"), pods = made("span");
    line.append(made("b", name), pods);
    const bars = ["cpu", "memory"].map(kind => {
      const meter = made("div", undefined, "meter"), bar = made("i", undefined, kind);
      meter.append(bar);
      return bar;
    });
    button.append(line, ...bars.map(bar => bar.parentNode));
    button.addEventListener("click", () => { chosen = chosen === name ? "" : name; showPods(); });
    item.append(button);
    tile = {item, button, pods, bars};
    tiles.set(name, tile);
  }
  return tile;
};
const showNodes = moment => {
  const counts = new Map();
  let waiting = 0;
  for (const node of pods.values()) node ? counts.set(node, (counts.get(node) ?? 0) + 1) : waiting++;
  const names = [...nodes.keys()].sort((a, b) => a.localeCompare(b, "en", {numeric: true}));
  const list = $("nodes");
  list.classList.toggle("small", names.length > 120);
  list.style.setProperty("--tile", names.length > 120 ? "5.5rem" : "8.5rem");
  const items = names.map(name => {
    const [cpu, usedCpu, memory, usedMemory, cordoned] = nodes.get(name), tile = tileOf(name);
    const n = counts.get(name) ?? 0, share = (used, all) => all ? Math.min(100, used / all * 100) : 0;
    tile.pods.textContent = n;
    tile.bars[0].style.width = `${share(usedCpu, cpu)}%`;
    tile.bars[1].style.width = `${share(usedMemory, memory)}%`;
    tile.item.className = name === moment.node ? "taken" : "";
    tile.button.className = cordoned ? "cordoned" : "";
    const told = `${name}: ${cores(usedCpu)} of ${cores(cpu)} CPU, ${gib(usedMemory)} of ${gib(memory)}, ${n} pods`;
    tile.button.title = told + (cordoned ? ", cordoned" : "");
    tile.button.setAttribute("aria-label", tile.button.title + (name === moment.node ? ", taken" : ""));
    return tile.item;
  });
  if (items.length !== list.children.length || items.some((item, i) => item !== list.children[i]))
    list.replaceChildren(...items);
  if (moment.node && tiles.has(moment.node)) {
    const item = tiles.get(moment.node).item, top = item.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + item.offsetHeight > list.scrollTop + list.clientHeight)
      list.scrollTop = top - list.clientHeight / 2;
  }
  $("sum").textContent = `${names.length} nodes, ${pods.size - waiting} pods on them, ${waiting} waiting`;
  showPods();
};
const showPods = () => {
  const box = $("on-node"), isShown = chosen && nodes.has(chosen);
  box.hidden = !isShown;
  if (!isShown) return;
  const names = [...pods].filter(([, node]) => node === chosen).map(([name]) => name).sort();
  box.replaceChildren(made("b", tiles.get(chosen).button.title), made("p", names.slice(0, 60).join(", ") +
    (names.length > 60 ? ` and ${names.length - 60} more` : "")));
};
const showQueue = moment => {
  const table = made("table"), body = made("tbody");
  table.append(body);
  for (const [name, n, first] of moment.queue) {
    const row = made("tr"), head = made("th", name);
    head.scope = "row";
    const more = n > first.length ? ` and ${n - first.length} more` : "";
    row.append(head, made("td", n, "n"), made("td", first.join(", ") + more));
    body.append(row);
  }
  $("queue").replaceChildren(table);
};
const drawStrip = () => {
  const strip = $("strip"), n = Math.min(moments.length, 500), SVG = "http://www.w3.org/2000/svg";
  const rect = (x, y, width, height, kind) => {
    const found = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({x, y, width, height})) found.setAttribute(name, value);
    found.setAttribute("class", kind);
    strip.append(found);
  };
  for (let i = 0; i < n; i++) {
    const from = Math.floor(i * moments.length / n), to = Math.floor((i + 1) * moments.length / n);
    const failed = moments.slice(from, to).filter(moment => !moment.node).length / (to - from);
    const x = i / n * 1000, width = 1000 / n * .85;
    if (failed < 1) rect(x, 34 * failed, width, 34 * (1 - failed), "a");
    if (failed) rect(x, 0, width, 34 * failed, "bad");
  }
  rect(0, 0, Math.max(1000 / moments.length, 3), 34, "now");
};
const next = isWanted => {
  for (let i = 1; i <= moments.length; i++) {
    const number = (at + i) % moments.length;
    if (isWanted(moments[number])) return goTo(number);
  }
};
let timer = null;
const play = () => {
  const isOn = timer !== null;
  clearInterval(timer);
  timer = isOn ? null : setInterval(() => at >= moments.length - 1 ? play() : goTo(at + 1), 250);
  $("play").textContent = isOn ? "play" : "pause";
  $("play").setAttribute("aria-label", isOn ? "Play" : "Pause");
};
const does = {
  first: () => goTo(0), back: () => goTo(at - 1), on: () => goTo(at + 1), last: () => goTo(moments.length - 1),
  failed: () => next(moment => !moment.node), play,
};
for (const [id, action] of Object.entries(does)) $(id).addEventListener("click", action);
$("at").addEventListener("input", () => goTo(Number($("at").value)));
$("pod").addEventListener("keydown", event => {
  if (event.key === "Enter" && $("pod").value) next(moment => moment.pod.includes($("pod").value));
});
addEventListener("keydown", event => {
  const isTyping = event.target.matches?.("input[type=search]"), isSliding = event.target === $("at");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const far = event.shiftKey ? 10 : 1;
  const keys = {ArrowLeft: () => goTo(at - far), ArrowRight: () => goTo(at + far), Home: does.first, End: does.last,
    f: does.failed, " ": play};
  if (!keys[event.key] || (event.key === " " && event.target.matches?.("button"))) return;
  if (isSliding && event.key === " ") return;
  keys[event.key]();
  event.preventDefault();
});
addEventListener("hashchange", () => goTo(Number(location.hash.slice(1)) - data.first));
$("at").max = Math.max(moments.length - 1, 0);
if (moments.length) {
  drawStrip();
  goTo(location.hash ? Number(location.hash.slice(1)) - data.first : 0);
} else $("told").textContent = "No attempt in this journal.";
"""
