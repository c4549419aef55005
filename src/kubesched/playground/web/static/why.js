// An explanation as HTML: the cause first, what would help, then groups of nodes with their numbers, and scores.

import { make } from "./dom.js";
import { count } from "./format.js";

const COLUMNS = [["node", "node"], ["resource", "resource"], ["requested", "requested"], ["free", "free"], ["allocatable", "of"], ["missing", "missing"]];

// `why` is an answer of /api/explain or /api/whatif.
export function drawWhy(why, { isBound = false } = {}) {
  return [
    make("p", { class: `cause ${why.fit ? "good" : "bad"}` }, causeOf(why, isBound)),
    why.cause.remedy && make("p", { class: "remedy" }, why.cause.remedy),
    why.preemption && make("p", { class: "note" }, `Preemption would evict ${why.preemption.victims.join(", ") || "nobody"} from ${why.preemption.node}.`),
    why.changes.length > 0 && changesOf(why.changes),
    isBound && scoresOf(why, isBound),
    why.groups.length > 0 && make("div", { class: "groups" }, make("h4", {}, why.fit ? `Nodes that do not fit (${count(why.nodes - why.fit)})` : "Nodes, the nearest to fitting first"),
      ...why.groups.map((group, index) => groupOf(group, index))),
    !isBound && scoresOf(why, isBound),
    why.message && make("details", {}, make("summary", {}, "In kube-scheduler's words"), make("p", { class: "note" }, why.message)),
  ].filter(Boolean);
}

// Without the pod's name: the panel has it already.
function causeOf(why, isBound) {
  if (!why.fit) return `${why.cause.text[0].toUpperCase()}${why.cause.text.slice(1)}.`;
  return `${isBound ? "Scheduled again now, it would fit" : "It fits"} on ${count(why.fit)} of ${count(why.nodes)} nodes${why.best.length ? `; ${why.best[0]} is best` : ""}.`;
}

function scoresOf(why, isBound) {
  if (!why.scores.length) return null;
  const more = why.fit - why.scores.length;
  const title = isBound ? "Scores if it were scheduled again now" : "Scores of the nodes that fit";
  return make("div", {}, make("h4", {}, title), scoreTable(why.scores, why.best), more > 0 && make("p", { class: "note" }, `and ${count(more)} more nodes that fit`));
}

export function changesOf(changes) {
  return make("div", { class: "changes" }, make("h4", {}, "What would help, each tried out"),
    make("ol", {}, ...changes.map((change) => make("li", {}, change.description, typeof change.cost === "string" && change.cost && make("small", {}, change.cost)))));
}

function groupOf(group, index) {
  const more = group.count - group.names.length;
  const names = `${group.names.join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
  return make("section", { class: "group" },
    make("h5", {}, make("b", { class: `number reason-${index % 7}` }, String(index + 1)), `${count(group.count)} ${group.count === 1 ? "node" : "nodes"}: ${group.summary}`),
    group.rows.length ? amountTable(group.rows, more) : make("p", { class: "note" }, names),
    group.reasons.join(", ") !== group.summary && make("p", { class: "said" }, `${group.plugins.join(", ")}: ${group.reasons.join(", ")}`));
}

// One row for all nodes that share their numbers.
function amountTable(rows, more) {
  const merged = new Map();
  for (const row of rows) {
    const key = COLUMNS.slice(1).map(([field]) => row[field]).join("|");
    if (!merged.has(key)) merged.set(key, { ...row, names: [] });
    merged.get(key).names.push(row.node);
  }
  const hasOne = new Set(rows.map((row) => row.resource)).size === 1; // then the heading names it
  const columns = COLUMNS.slice(1).filter(([field]) => field !== "resource" || !hasOne);
  const body = [...merged.values()].map((row) => make("tr", {}, make("th", { scope: "row" }, row.names.join(", ")),
    ...columns.map(([field]) => make("td", {}, String(row[field])))));
  return table(["node", ...columns.map(([, title]) => title)], body, more > 0 ? `and ${count(more)} more nodes` : "");
}

export function scoreTable(scores, best = []) {
  const plugins = [...new Set(scores.flatMap((score) => Object.keys(score.plugins ?? {})))].filter((plugin) => scores.some((score) => score.plugins?.[plugin]));
  const rows = scores.map((score) => make("tr", { class: best.includes(score.node) ? "best" : "" }, make("th", { scope: "row" }, score.node), make("td", {}, make("b", {}, String(score.total))),
    ...plugins.map((plugin) => make("td", {}, String(score.plugins?.[plugin] ?? "")))));
  return table(["node", "total", ...plugins.map(shortPlugin)], rows, "");
}

// NodeResourcesBalancedAllocation is too wide for a column: words may break where a new one begins.
const shortPlugin = (plugin) => plugin.replace(/([a-z])([A-Z])/g, "$1\u200b$2");

// A title may be an element, where it is not like the others.
export function table(titles, rows, below) {
  return make("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Table" },
    make("table", {}, make("thead", {}, make("tr", {}, ...titles.map((title) => (title instanceof Node ? title : make("th", { scope: "col" }, title))))), make("tbody", {}, ...rows)),
    below && make("p", { class: "note" }, below));
}
