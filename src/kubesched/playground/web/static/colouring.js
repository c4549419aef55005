// What every node says to one pod: the reason why it cannot take it, or the score with which it could. The number of a
// reason is on its tiles and in the legend, so that no one has to tell colours apart.

const COLOURS = 7;
const MOST_TEXT = 60;
const FAR = ["too-small", "excluded"]; // nothing that becomes free there would help

export class Colouring {
  // `why` is an answer of /api/explain or /api/whatif; `title` says which pod it is about.
  constructor(why, title) {
    this.why = why;
    this.title = title;
    this.only = null;
    this.best = new Set(why.best);
  }

  verdictOf(node) {
    const total = this.why.totals[node];
    if (total !== undefined) {
      const isBest = this.best.has(node);
      return { kind: isBest ? "best" : "fits", short: String(total), brief: `score ${total}`, text: `${isBest ? "best: " : ""}score ${total}`, told: `It fits, with score ${total}${isBest ? ", the best" : ""}` };
    }
    const group = this.why.groupOf[node];
    if (group === undefined) return { kind: "none", short: "–", brief: "not asked", text: "not asked", told: "It was not asked" };
    const summary = this.why.groups[group].summary;
    const text = summary.length > MOST_TEXT ? `${summary.slice(0, MOST_TEXT)}…` : summary;
    return { kind: `reason-${group % COLOURS}`, isFar: FAR.includes(this.why.groups[group].nearness), short: String(group + 1), brief: `${group + 1} ${text}`, text: `${group + 1}. ${text}`, told: `It cannot take the pod: ${summary}` };
  }

  // Those that could take it first, the best before the others, then reason by reason.
  rankOf(node) {
    const total = this.why.totals[node];
    if (total !== undefined) return -total;
    return (this.why.groupOf[node] ?? this.why.groups.length) + 1;
  }

  // What there is to choose from: [key, kind, words, number of nodes].
  legend() {
    const found = [];
    if (this.why.fit) found.push(["fits", "fits", "fits, with its score", this.why.fit]);
    this.why.groups.forEach((group, index) => found.push([`group-${index}`, `reason-${index % COLOURS}`, `${index + 1}. ${group.summary}`, group.count]));
    return found;
  }

  // Whether a node belongs to an entry of the legend.
  isIn(key, node) {
    if (key === "fits") return this.why.totals[node] !== undefined;
    return this.why.groupOf[node] === Number(key.slice("group-".length));
  }
}
