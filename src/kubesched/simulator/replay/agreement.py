"""How far a scheduler agrees with the one that made the bindings: counts, and every difference, grouped by cause."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from kubesched.explanation.layout import Style, Tone, counted, wrapped
from kubesched.k8s.model.times import print_instant
from kubesched.simulator.recording.reader import GapSeen
from kubesched.simulator.replay.judge import AGREEMENT, BindingVerdict, Judgement
from kubesched.simulator.replay.suspects import ConfigChange

_MOST_KEPT = 1_000
_ENOUGH_TO_SUSPECT = 5
_MOSTLY = 0.8
_EXPLAINED = 0.6
_GROUPS_SHOWN = 8
_EXAMPLES = 2
_HUNDRED = 100
_WORDS = {
    BindingVerdict.SAME: "the only best node",
    BindingVerdict.TIE: "one of several equally good nodes",
    BindingVerdict.SAMPLED: "the best of a part of the nodes, as a search finds that is cut short",
    BindingVerdict.STALE: "the best a moment earlier or later: watches lag, bindings overlap",
    BindingVerdict.FOREIGN: "another scheduler's pods, or no pending pod was seen; not counted",
    BindingVerdict.DIFFERS: "other nodes score higher",
    BindingVerdict.INFEASIBLE: "this scheduler would not have bound it there",
}


@dataclass(slots=True)
class Agreement:
    """Grows with every judgement. Of those that do not agree, the last thousand are kept."""

    counts: Counter[BindingVerdict] = field(default_factory=Counter)
    groups: Counter[tuple[BindingVerdict, str, str]] = field(default_factory=Counter)
    """Differences by verdict, plugin and reason."""
    differences: deque[Judgement] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    changes: Counter[ConfigChange] = field(default_factory=Counter)
    """By change of the configuration, how many of these would agree with it."""
    favours: dict[str, Counter[str]] = field(default_factory=dict)
    """By plugin, in how many differing decisions it scores `theirs` higher, or `ours`."""
    gaps: list[GapSeen] = field(default_factory=list)
    n_unusable: int = 0
    """Objects that could not be used."""
    first_s: float | None = None
    last_s: float = 0.0

    def add(self, judged: Judgement) -> None:
        self.first_s = judged.at_s if self.first_s is None else self.first_s
        self.last_s = judged.at_s
        self.counts[judged.verdict] += 1
        if judged.verdict in (BindingVerdict.DIFFERS, BindingVerdict.INFEASIBLE):
            self.groups[_group(judged)] += 1
            self.differences.append(judged)
            self.changes.update(judged.explained_by)
            for gap in judged.scores:
                side = "theirs" if gap.theirs > gap.ours else "ours" if gap.ours > gap.theirs else ""
                if side:
                    self.favours.setdefault(gap.plugin, Counter())[side] += 1

    @property
    def n_decided(self) -> int:
        """Bindings that these schedulers had to decide."""
        return self.counts.total() - self.counts[BindingVerdict.FOREIGN]

    @property
    def n_agreed(self) -> int:
        return sum(self.counts[verdict] for verdict in AGREEMENT)

    @property
    def share(self) -> float | None:
        """Of the decisions, those that agree; None if there were none."""
        return self.n_agreed / self.n_decided if self.n_decided else None

    @property
    def suspects(self) -> list[str]:
        """What the decisions say of the other scheduler's configuration, if enough of them differ: the one change that
        explains most of them, or else what the scores have in common."""
        n_other = self.n_decided - self.n_agreed
        if n_other < _ENOUGH_TO_SUSPECT:
            return []
        if self.changes:
            change, n = min(self.changes.items(), key=lambda item: (-item[1], *_size(item[0])))
            if n >= _EXPLAINED * n_other:
                return [f"One change would explain {n} of {n_other}: there, the scheduler may run {change}"]
        n = self.counts[BindingVerdict.DIFFERS]
        if n < _ENOUGH_TO_SUSPECT:
            return []
        found = []
        for plugin, sides in sorted(self.favours.items()):
            theirs, ours = sides["theirs"], sides["ours"]
            if theirs >= _MOSTLY * n:
                found.append(f"{plugin} prefers their node in {theirs} of {n}: there it may have a higher weight")
            elif ours >= _MOSTLY * n:
                found.append(
                    f"{plugin} prefers ours in {ours} of {n}: there it may have a lower weight, other arguments, "
                    "or be switched off"
                )
        return found

    @property
    def headline(self) -> str:
        if self.share is None:
            return "No decision to compare: no pod of these schedulers was bound."
        n_other = self.n_decided - self.n_agreed
        if not n_other:
            return f"Agrees in all {counted(self.n_decided, 'decision')}."
        agreed = f"{self.n_agreed} of {counted(self.n_decided, 'decision')} ({_percent(self.share)})"
        return f"Agrees in {agreed}; {n_other} {'differs' if n_other == 1 else 'differ'}."

    def __str__(self) -> str:
        return render_agreement(self, Style())

    def to_dict(self) -> dict[str, Any]:
        return {
            "agreement": None if self.share is None else round(self.share, 6),
            "decided": self.n_decided,
            "verdicts": {verdict.value: self.counts[verdict] for verdict in BindingVerdict},
            "groups": [
                {"verdict": verdict.value, "plugin": plugin, "reason": reason, "count": n}
                for (verdict, plugin, reason), n in _by_count(self.groups)
            ],
            "differences": [judged.to_dict() for judged in self.differences],
            "suspects": self.suspects,
            "gaps": [{"kind": gap.kind, "fromS": gap.from_s, "toS": gap.at_s, "why": gap.why} for gap in self.gaps],
            "unusableObjects": self.n_unusable,
        }


def render_agreement(found: Agreement, style: Style) -> str:
    is_good = found.share is not None and found.n_agreed == found.n_decided
    lines = [style.first_line(found.headline, Tone.GOOD if is_good else Tone.BAD), ""]
    counts = ((verdict, found.counts[verdict]) for verdict in BindingVerdict)
    lines += [f"  {verdict.value:<10}  {n:>8}  {_WORDS[verdict]}" for verdict, n in counts if n]
    lines += _differences(found, style)
    if found.suspects:
        told = (wrapped(text, indent=2, hanging=2, width=style.width) for text in found.suspects)
        lines += ["", *chain.from_iterable(told)]
    for gap in found.gaps[: style.most(5)]:
        what = f"of kind {gap.kind} " if gap.kind else ""
        span = f"{print_instant(gap.from_s)} to {print_instant(gap.at_s)}"
        lines.append(f"  Gap: changes {what}from {span} may be missing ({gap.why}).")
    if found.n_unusable:
        lines.append(f"  {counted(found.n_unusable, 'object')} could not be used: an amount in them cannot be read.")
    return "\n".join(lines)


def _differences(found: Agreement, style: Style) -> list[str]:
    lines: list[str] = []
    groups = _by_count(found.groups)
    for (verdict, plugin, reason), n in groups[: style.most(_GROUPS_SHOWN)]:
        cause = f"{plugin}: {reason}" if plugin and reason else plugin or reason
        lines += ["", f"  {n} {verdict.value}{f' by {cause}' if cause else ''}"]
        examples = [one for one in found.differences if _group(one) == (verdict, plugin, reason)]
        for one in examples[: style.most(_EXAMPLES)]:
            text = difference_line(one)
            lines += wrapped(text, indent=4, hanging=2, width=style.width)
    n_more = len(groups) - len(groups[: style.most(_GROUPS_SHOWN)])
    if n_more:
        lines += ["", f"  … and {counted(n_more, 'more cause')} (-o wide)"]
    return lines


def difference_line(judged: Judgement) -> str:
    """When, which pod, where it went and where it would have gone, and why."""
    ours = f"here it would go to {judged.ours}" if judged.ours else "here it would go to no node"
    return f"{print_instant(judged.at_s)} {judged.pod} went to {judged.node}, {ours}: {reason_of(judged)}."


def reason_of(judged: Judgement) -> str:
    """Why, with the scores of both nodes where they differ."""
    parts = [f"{gap.plugin} {gap.theirs} there, {gap.ours} here" for gap in judged.scores if gap.theirs != gap.ours]
    return f"{judged.why}: {', '.join(parts)}" if parts else judged.why


def _size(change: ConfigChange) -> tuple[float, str]:
    """The nearest first."""
    return abs(change.weight - change.ours), change.plugin


def _group(judged: Judgement) -> tuple[BindingVerdict, str, str]:
    """Scores differ from pod to pod, reasons do not."""
    return judged.verdict, judged.plugin, judged.why if judged.verdict is BindingVerdict.INFEASIBLE else ""


def _by_count(groups: Counter[tuple[BindingVerdict, str, str]]) -> list[tuple[tuple[BindingVerdict, str, str], int]]:
    return sorted(groups.items(), key=lambda item: (-item[1], item[0]))


def _percent(share: float) -> str:
    """Never rounded up to all of them."""
    return f"{min(share * _HUNDRED, 99.99):.2f} %" if share < 1 else "100 %"
