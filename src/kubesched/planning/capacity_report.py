"""What `kubesched capacity` found: how many copies fit, what stops the next one, what each remedy would bring.

Next: `capacity`, which counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kubesched.explanation.layout import Style, Tone, counted, table, wrapped
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance
from kubesched.planning.several_runs import RunVerdicts
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge

ALL_NODES = "all"
_NODES_SHOWN = 10
_REMEDIES_SHOWN = 5
_REASONS_SHOWN = 4
_TEXT, _INT = ColumnKind.UTF8, ColumnKind.INT64


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change after which more copies fit; it was tried out."""

    description: str
    """In the imperative, as `kubesched explain` says it."""
    more: int
    is_at_least: bool = False
    """No more were tried."""

    @property
    def gain(self) -> str:
        return f"+{self.more}{' or more' if self.is_at_least else ''}"

    def to_dict(self) -> dict[str, Any]:
        return {"remedy": self.description, "more": self.more, "atLeast": self.is_at_least}


@dataclass(frozen=True, slots=True)
class FittingCopies:
    """How many copies of one pod fit on one group of nodes."""

    pod: str
    group: str
    """`all`, or for example `zone=a`; `namespace=shop` for copies in this namespace, on all nodes."""
    fits: int
    """With several seeds or orders, the fewest."""
    per_node: dict[str, int]
    limit: str
    """Why there are no more: `unschedulable`, `quota` if the API server refused the next one, `victims` if those whom
    it preempts find no other node, or `max` if no more were asked for."""
    message: str
    """What kube-scheduler or the API server would say to the next one."""
    plugins: tuple[str, ...]
    failed_pod: str = ""
    """Of the application's next copy, the pod that finds no node; copies of a pod are all alike."""
    victims: Mapping[str, int] = field(default_factory=dict)
    """By workload, how many pods the copies preempt."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """The reasons against the nodes for the next one, and how many nodes each is about."""
    remedies: tuple[Remedy, ...] = ()
    """The one that brings most comes first."""
    by_run: tuple[int, ...] = ()
    """How many fit with each seed and order, if several were asked for."""

    @property
    def certainty(self) -> str:
        """` in all 10 runs`, or what some of the runs give beyond that."""
        if len(self.by_run) < 2:
            return ""
        n_runs, most = len(self.by_run), max(self.by_run)
        if most == self.fits:
            return f" in all {n_runs} runs"
        n_more = sum(n > self.fits for n in self.by_run)
        return f" in each of {n_runs} runs, and up to {most} in {n_more} of {n_runs}"

    def to_dict(self) -> dict[str, Any]:
        stopped_by: dict[str, Any] | None = None
        if self.message:
            stopped_by = {"message": self.message, "plugins": list(self.plugins), "nodesByReason": dict(self.reasons)}
            if self.failed_pod:
                stopped_by["pod"] = self.failed_pod
        record = {
            "pod": self.pod,
            "nodes": self.group,
            "fits": self.fits,
            "limit": self.limit,
            "perNode": [{"node": name, "fits": n} for name, n in self.per_node.items()],
            "stoppedBy": stopped_by,
            "victims": [{"workload": name, "pods": n} for name, n in self.victims.items()],
            "remedies": [one.to_dict() for one in self.remedies],
        }
        return {**record, "runs": list(self.by_run)} if self.by_run else record


@dataclass(frozen=True, slots=True, repr=False)
class CapacityReport(AnsweredReport):
    """`fits` is the answer; `str()` is the report as text."""

    command: ClassVar[str] = "kubesched capacity"

    answers: tuple[FittingCopies, ...]
    """One for each pod and group of nodes."""
    assumptions: tuple[str, ...]
    is_of_every: bool = False
    """Each workload was asked; the one with the least room comes first."""
    seed: int = 0
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

    @property
    def fits(self) -> int:
        """How many copies of the first pod fit on all nodes."""
        return self.answers[0].fits

    @property
    def verdicts(self) -> RunVerdicts:
        """Of each run: whether any copy of the first pod fits."""
        return RunVerdicts(tuple(n > 0 for n in self.answers[0].by_run))

    @property
    def headline(self) -> str:
        first = _sentence(self.answers[0])
        if not self.is_of_every:
            return first
        return f"{counted(len({one.pod for one in self.answers}), 'workload')}; least room: {first}"

    @property
    def tables(self) -> dict[str, ColumnTable]:
        fits = [
            (one.pod, one.group, one.fits, max(one.by_run, default=one.fits), one.limit, one.message or None)
            for one in self.answers
        ]
        whole = [one for one in self.answers if one.group == ALL_NODES]
        kinds = {"pod": _TEXT, "nodes": _TEXT, "fits": _INT, "at_best": _INT, "limit": _TEXT, "the_next_one": _TEXT}
        return {
            "fits": ColumnTable(kinds, fits),
            "by_node": ColumnTable(
                {"pod": _TEXT, "node": _TEXT, "fits": _INT},
                [(one.pod, node, n) for one in whole for node, n in one.per_node.items()],
            ),
            "remedies": ColumnTable(
                {"pod": _TEXT, "remedy": _TEXT, "more": _INT},
                [(one.pod, remedy.description, remedy.more) for one in self.answers for remedy in one.remedies],
            ),
            "victims": ColumnTable(
                {"pod": _TEXT, "nodes": _TEXT, "workload": _TEXT, "pods": _INT},
                [(one.pod, one.group, name, n) for one in self.answers for name, n in one.victims.items()],
            ),
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._about(),
            "headline": self.headline,
            "capacity": [one.to_dict() for one in self.answers],
            **self.verdicts.record(),
            "assumptions": list(self.assumptions),
        }

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        samples = []
        for one in self.answers:
            by, _, value = one.group.partition("=")
            samples.append(({"pod": one.pod, "by": by, "value": value}, float(one.fits)))
        return (Gauge("kubesched_capacity_fits", "Copies of the pod that fit.", tuple(samples)),)

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<CapacityReport: {self.headline}>"

    def render(self, style: Style) -> str:
        lines = [style.first_line(self.headline, Tone.GOOD if self.fits else Tone.BAD)]
        if len(self.answers) == 1:
            lines += _nodes(self.answers[0], style)
        else:
            lines += self._matrix(style)
        for one in self.answers:
            about = "" if len(self.answers) == 1 else f" of {one.pod}"
            lines += _victims(one, about if one.group == ALL_NODES else f"{about} on {one.group}")
        for one in self.answers:
            about = "" if len({other.pod for other in self.answers}) == 1 else f", for {one.pod}"
            lines += _next_steps(one, about, style)
        return "\n".join([*lines, "Assumptions:", *(f"  {one}" for one in self.assumptions)])

    def _matrix(self, style: Style) -> list[str]:
        heads = ["WORKLOAD" if self.is_of_every else "POD", "NODES", "FITS"]
        rows = [[one.pod, one.group, str(one.fits)] for one in self.answers]
        if any(one.by_run for one in self.answers):
            heads.append("AT BEST")
            rows = [[*row, str(max(one.by_run))] for row, one in zip(rows, self.answers, strict=True)]
        lines = table(heads, rows, indent=2, n_left=2)
        if self.is_of_every or style.wide:
            lines += ["What stops the next one:", *(f"  {line}" for line in _stops(self.answers))]
        return [*lines, "Each row is counted separately: they do not add up."]


def _sentence(one: FittingCopies) -> str:
    if one.limit == "max":
        return f"{one.pod}: at least {one.fits} more fit{one.certainty}, as many as were asked for."
    if one.failed_pod:
        fits = f"{one.fits} more whole copies fit{one.certainty}"
        return f"{one.pod}: {fits}; in the next one, {one.failed_pod}: {one.message}"
    return f"{one.pod}: {one.fits} more fit{one.certainty}; the next one: {one.message}"


def _nodes(one: FittingCopies, style: Style) -> list[str]:
    shown = list(one.per_node.items())[: style.most(_NODES_SHOWN)]
    lines = table(["NODE", "FITS"], [[name, str(n)] for name, n in shown], indent=2, n_left=1) if shown else []
    hidden = len(one.per_node) - len(shown)
    return [*lines, f"  and {counted(hidden, 'node')} more"] if hidden else lines


def _victims(one: FittingCopies, about: str) -> list[str]:
    if not one.victims:
        return []
    rows = [[name, str(n)] for name, n in one.victims.items()]
    return [f"Preempted by the copies{about}:", *table(["WORKLOAD", "PODS"], rows, indent=2, n_left=1)]


def _next_steps(one: FittingCopies, about: str, style: Style) -> list[str]:
    lines: list[str] = []
    if one.reasons:
        lines.append(f"Why nodes reject the next one{about}:")
        for reason, n in list(one.reasons.items())[: style.most(_REASONS_SHOWN)]:
            lines += wrapped(f"{counted(n, 'node')}: {reason}", indent=2, hanging=2, width=style.width)
    if one.remedies:
        lines.append(f"What would bring more{about}:")
        shown = one.remedies[: style.most(_REMEDIES_SHOWN)]
        width = max(len(remedy.gain) for remedy in shown)
        for remedy in shown:
            told = f"{remedy.gain.rjust(width)}  {remedy.description}"
            lines += wrapped(told, indent=2, hanging=width + 2, width=style.width)
        hidden = len(one.remedies) - len(shown)
        lines += [f"  and {counted(hidden, 'remedy').replace('remedys', 'remedies')} more (-o wide)"] if hidden else []
    return lines


def _stops(answers: Sequence[FittingCopies]) -> list[str]:
    """Each message once, with those that it stops."""
    stopped: dict[str, list[str]] = {}
    for one in answers:
        if one.message:
            where = "" if one.group == ALL_NODES else f" on {one.group}"
            stopped.setdefault(one.message, []).append(f"{one.pod}{where}")
    return [f"{', '.join(names)}: {message}" for message, names in stopped.items()]


def by_count(counts: Counter[str]) -> dict[str, int]:
    """The most first, then by name."""
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
