"""What a consolidation report holds, as text, too: the steps in their order, what they save, why other nodes stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kubesched.explanation.layout import Style, Tone, counted, listed, table, wrapped
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.catalogue import HOURS_A_MONTH, NANOS, money
from kubesched.planning.consolidate.removal import PodMove
from kubesched.planning.consolidate.rules import KeepReason
from kubesched.planning.consolidate.state import ConsolidationStep
from kubesched.planning.consolidate.timeline import StepTimeline
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance
from kubesched.planning.several_runs import RunVerdicts
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge, gauge
from kubesched.simulator.report_text import readable_span

INT, FLOAT, TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8

_STEP_COLUMNS = {
    "step": INT,
    "round": INT,
    "delete": TEXT,
    "launch": TEXT,
    "evictions": INT,
    "waves": INT,
    "saving": FLOAT,
    "saved_so_far": FLOAT,
    "evicted_so_far": INT,
    "disruption": FLOAT,
    "balanced_score": FLOAT,
}
_MOVE_COLUMNS = {"step": INT, "pod": TEXT, "workload": TEXT, "source": TEXT, "target": TEXT}
_NODE_COLUMNS = {
    **dict.fromkeys(("name", "zone", "pool", "fate"), TEXT),
    **dict.fromkeys(("cpu_allocatable_milli", "cpu_before_milli", "cpu_requested_milli"), INT),
    **dict.fromkeys(("memory_allocatable_bytes", "memory_before_bytes", "memory_requested_bytes"), INT),
}
_TIMELINE_COLUMNS = {
    "step": INT,
    "round": INT,
    "delete": TEXT,
    **dict.fromkeys(("began_s", "drained_s", "ended_s"), FLOAT),
}
_KEPT_COLUMNS = {"node": TEXT, "reason": TEXT, "pod": TEXT, "text": TEXT}


@dataclass(frozen=True, slots=True)
class KeptNode:
    node: str
    reason: KeepReason


@dataclass(frozen=True, slots=True)
class NodeBeforeAfter:
    """How full a node is before and after the steps, of cpu and memory."""

    node: str
    zone: str
    pool: str
    fate: str
    """`stays`, `goes` or `comes`."""
    has: Mapping[str, int]
    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(frozen=True, repr=False)
class ConsolidationReport(AnsweredReport):
    """Which nodes can go, in which order. `str()` is the report as text."""

    policy: str
    rules: str
    steps: tuple[ConsolidationStep, ...]
    rounds: tuple[int, ...]
    """Of each step, in which round it is carried out; steps of a round go together."""
    kept: tuple[KeptNode, ...]
    n_nodes: int
    cost: int
    """Of all nodes before, an hour, in 10⁻⁹ of the currency."""
    bound: int
    """No set of nodes that holds all pods costs less."""
    disruption: float
    """Of draining all nodes, by Karpenter's measure."""
    currency: str
    """Empty if costs are numbers of nodes."""
    others: Mapping[str, int]
    """What other policies would save."""
    stopped: str
    """`fixed point`, `limit`, `time` or `interrupted`."""
    assumptions: tuple[str, ...]
    nodes: tuple[NodeBeforeAfter, ...] = ()
    savings_by_run: tuple[int, ...] = ()
    """With several seeds or orders: what the steps of each run would save there. Those reported hold in all of them."""
    timeline: StepTimeline | None = None
    """The steps as played in virtual time, if that was asked for."""
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

    command: ClassVar[str] = "kubesched consolidate"

    @property
    def verdicts(self) -> RunVerdicts:
        """Of each run: whether any node can go."""
        return RunVerdicts(tuple(bool(self.steps) or saving > 0 for saving in self.savings_by_run))

    @property
    def saving(self) -> int:
        return sum(step.saving for step in self.steps)

    @property
    def evictions(self) -> int:
        return sum(step.evictions for step in self.steps)

    @property
    def removed(self) -> tuple[str, ...]:
        """The nodes that go, in the order in which they do."""
        return tuple(name for step in self.steps for name in step.delete)

    @property
    def moves(self) -> tuple[PodMove, ...]:
        return tuple(move for step in self.steps for move in step.moves)

    @property
    def curve(self) -> tuple[tuple[int, int], ...]:
        """After each step: how many pods were evicted so far, and what is saved."""
        points, evictions, saving = [], 0, 0
        for step in self.steps:
            evictions, saving = evictions + step.evictions, saving + step.saving
            points.append((evictions, saving))
        return tuple(points)

    def balanced_score(self, step: ConsolidationStep) -> float:
        """Karpenter's: the step's share of the cost over its share of the disruption. Balanced pools take 0.5 on."""
        if not self.cost or not step.disruption:
            return 0.0
        return (step.saving / self.cost) / (step.disruption / self.disruption)

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """`steps`, `moves` (of each pod), `kept` (nodes that stay, with the reason), and `nodes`: how full each is."""
        moves = [
            (number, m.pod, m.workload, m.source, m.target) for number, s in enumerate(self.steps, 1) for m in s.moves
        ]
        kept = [(one.node, one.reason.identifier, one.reason.pod or None, one.reason.text) for one in self.kept]
        return {
            "steps": ColumnTable(_STEP_COLUMNS, self._step_rows()),
            "moves": ColumnTable(_MOVE_COLUMNS, moves),
            "kept": ColumnTable(_KEPT_COLUMNS, kept),
            "nodes": ColumnTable(_NODE_COLUMNS, [_node_row(one) for one in self.nodes]),
            **({} if self.timeline is None else {"timeline": _timeline_table(self.timeline, self.rounds)}),
        }

    def _step_rows(self) -> list[tuple[Any, ...]]:
        rows = []
        for number, (step, turn, (evicted, saved)) in enumerate(
            zip(self.steps, self.rounds, self.curve, strict=True), 1
        ):
            launched = " ".join(one.name for one in step.launch) or None
            amounts = (step.evictions, step.waves, step.saving / NANOS, saved / NANOS, evicted)
            scores = (round(step.disruption, 6), round(self.balanced_score(step), 6))
            rows.append((number, turn, " ".join(step.delete), launched, *amounts, *scores))
        return rows

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._about(),
            "policy": self.policy,
            "rules": self.rules,
            "nodes": {"before": self.n_nodes, "after": self.n_nodes - self._n_fewer},
            "cost": {
                "currency": self.currency or "nodes",
                "before": self.cost / NANOS,
                "after": (self.cost - self.saving) / NANOS,
                "saving": self.saving / NANOS,
                "savingAMonth": self.saving * HOURS_A_MONTH / NANOS if self.currency else None,
                "bound": self.bound / NANOS,
            },
            **self.verdicts.record(),
            **({"savingByRun": [one / NANOS for one in self.savings_by_run]} if self.savings_by_run else {}),
            "evictions": self.evictions,
            "stopped": self.stopped,
            "steps": [self._step_record(step, turn) for step, turn in zip(self.steps, self.rounds, strict=True)],
            "curve": [{"evictions": evicted, "saving": saved / NANOS} for evicted, saved in self.curve],
            "kept": [
                {"node": k.node, "reason": k.reason.identifier, "pod": k.reason.pod or None, "text": k.reason.text}
                for k in self.kept
            ],
            "otherPolicies": {name: saving / NANOS for name, saving in self.others.items()},
            "timeline": None if self.timeline is None else self.timeline.to_dict(),
            "assumptions": list(self.assumptions),
        }

    @property
    def _n_fewer(self) -> int:
        return sum(len(step.delete) - len(step.launch) for step in self.steps)

    def _step_record(self, step: ConsolidationStep, turn: int) -> dict[str, Any]:
        return {
            "round": turn,
            "cordon": list(step.cordon),
            "launch": [{"name": one.name, "offer": one.option.name, "price": one.price / NANOS} for one in step.launch],
            "delete": list(step.delete),
            "evictions": step.evictions,
            "waves": step.waves,
            "saving": step.saving / NANOS,
            "disruption": round(step.disruption, 6),
            "balancedScore": round(self.balanced_score(step), 6),
            "moves": [{"pod": m.pod, "workload": m.workload, "from": m.source, "to": m.target} for m in step.moves],
            "waited": list(step.waited),
            "lost": list(step.lost),
        }

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        currency = {"currency": self.currency or "nodes"}
        return (
            gauge("kubesched_consolidate_nodes", "Nodes now.", self.n_nodes),
            gauge("kubesched_consolidate_removable_nodes", "Nodes that can go.", len(self.removed)),
            gauge("kubesched_consolidate_evictions", "Pods that have to move for it.", self.evictions),
            gauge("kubesched_consolidate_saving", "What that saves an hour.", self.saving / NANOS, **currency),
            gauge("kubesched_consolidate_cost", "What the nodes cost an hour now.", self.cost / NANOS, **currency),
        )

    @property
    def headline(self) -> str:

        return headline(self)

    def render(self, style: Style) -> str:

        return render_consolidation(self, style)

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<ConsolidationReport: {self.headline}>"


def _node_row(one: NodeBeforeAfter) -> tuple[str | int | None, ...]:
    amounts = [kind.get(resource, 0) for resource in (CPU, MEMORY) for kind in (one.has, one.before, one.after)]
    return one.node, one.zone or None, one.pool or None, one.fate, *amounts


def _timeline_table(timeline: StepTimeline, rounds: tuple[int, ...]) -> ColumnTable:
    rows = [
        (number, turn, " ".join(one.delete), one.began_s, one.drained_s, one.ended_s)
        for number, (one, turn) in enumerate(zip(timeline.steps, rounds, strict=True), 1)
    ]
    return ColumnTable(_TIMELINE_COLUMNS, rows)


_STEPS_SHOWN = 12
_WAITS_SHOWN = 3
_KEPT_SHOWN = 8
_NAMES = {"best": "This search", "karpenter": "Karpenter", "cluster-autoscaler": "Cluster Autoscaler"}


def headline(report: ConsolidationReport) -> str:
    if not report.steps:
        return f"None of {counted(report.n_nodes, 'node')} can go{report.verdicts.nowhere}."
    n_removed = len(report.removed)
    n_new = sum(len(step.launch) for step in report.steps)
    what = f"{n_removed} of {counted(report.n_nodes, 'node')} can go{report.verdicts.everywhere}"
    what += f", if {counted(n_new, 'new node')} {'comes' if n_new == 1 else 'come'}" if n_new else ""
    evictions = counted(report.evictions, "eviction")
    if not report.currency:
        return f"{what}, with {evictions}."
    share = report.saving / report.cost if report.cost else 0.0
    monthly = report.saving * HOURS_A_MONTH / NANOS
    saved = f"{money(report.saving, report.currency)} ({share:.1%}; {monthly:,.0f} {report.currency} a month)"
    return f"{what}: that saves {saved}, with {evictions}."


def render_consolidation(report: ConsolidationReport, style: Style) -> str:
    """Without a newline at its end."""
    tone = Tone.GOOD if report.steps else Tone.BAD
    sections = [
        [style.painted(tone, headline(report)), *_beside(report)],
        _step_section(report, style),
        _time_section(report, style),
        _kept_section(report, style),
        [style.heading("Assumptions"), *(f"  {text}" for text in report.assumptions)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _beside(report: ConsolidationReport) -> list[str]:
    left = report.cost - report.saving - report.bound
    lines = []
    if left > 0:
        lines.append(f"At most {money(left, report.currency)} more could be saved by any policy and any scheduler.")
    if report.savings_by_run:
        least, most = (money(one, report.currency) for one in (min(report.savings_by_run), max(report.savings_by_run)))
        told = f"{least} to {most}" if least != most else f"{least} in each"
        lines.append(f"The steps of a run, which need not hold in the others, would save {told}.")
    for name, saving in report.others.items():
        lines.append(f"{_NAMES[name]} would save {money(saving, report.currency)}.")
    if report.stopped in ("time", "interrupted"):
        why = "the time was over" if report.stopped == "time" else "it was interrupted"
        lines.append(f"This is the best so far: {why} before all was tried.")
    return lines


def _step_section(report: ConsolidationReport, style: Style) -> list[str]:
    if not report.steps:
        return []
    most = style.most(_STEPS_SHOWN)
    rows = []
    for number, (step, turn, (evicted, saved)) in enumerate(
        zip(report.steps, report.rounds, report.curve, strict=True), 1
    ):
        launched = ", ".join(one.name for one in step.launch) or "-"
        cells = [str(number), str(turn), ", ".join(step.delete), launched, str(step.evictions), str(step.waves)]
        rows.append([*cells, str(evicted), money(saved, report.currency)])
    header = ["STEP", "ROUND", "DRAIN AND DELETE", "LAUNCH BEFORE", "EVICTIONS", "WAVES", "SO FAR", "SAVED SO FAR"]
    lines = [style.heading("Steps"), *table(header, rows[:most], indent=2, n_left=4)]
    if most is not None and len(rows) > most:
        lines.append(f"  and {len(rows) - most} more (-o wide shows all)")
    closed = [name for step in report.steps for name in step.cordon]
    if closed:
        text = f"Cordon {listed(sorted(closed), None if style.wide else 8)} first, so that nobody moves there."
        lines += wrapped(text, indent=2, hanging=0, width=style.width)
    staying = sorted(set(closed).difference(report.removed))
    if staying:
        text = f"Uncordon {listed(staying, None if style.wide else 8)} in the end: they stay."
        lines += wrapped(text, indent=2, hanging=0, width=style.width)
    waited = [key for step in report.steps for key in step.waited]
    lost = [key for step in report.steps for key in step.lost]
    for names, what in ((waited, "wait until the drained node is gone"), (lost, "are lost: nobody recreates them")):
        if names:
            lines += wrapped(f"{listed(names, 5)} {what}.", indent=2, hanging=0, width=style.width)
    if style.wide:
        lines += ["", style.heading("Moves"), *_moves(report)]
    return lines


def _time_section(report: ConsolidationReport, style: Style) -> list[str]:
    timeline = report.timeline
    if timeline is None or not report.steps:
        return []
    if timeline.duration_s is not None:
        said = f"In {readable_span(timeline.duration_s)}"
        tone = Tone.GOOD
    else:
        n_done = sum(one.ended_s is not None for one in timeline.steps)
        said = f"Played, the steps do not finish ({n_done} of {len(timeline.steps)} are done)"
        tone = Tone.BAD
    waited = counted(timeline.most_pending, "pod")
    longest = f"for {readable_span(timeline.longest_wait_s)} at most" if timeline.waits else ""
    told = f"{waited} at a time without a node, {longest}" if timeline.waits else "no pod waited for a node"
    lines = [style.painted(tone, f"{said}: {told}.")]
    rows = [
        [str(number), ", ".join(one.delete), *map(_moment, (one.began_s, one.drained_s, one.ended_s))]
        for number, one in enumerate(timeline.steps, 1)
    ]
    header = ["STEP", "NODES", "BEGINS", "DRAINED FROM", "GONE"]
    lines += table(header, rows[: style.most(_STEPS_SHOWN)], indent=2, n_left=2)
    for key, wait_s in timeline.waits[: style.most(_WAITS_SHOWN)]:
        lines.append(f"  {key} waited {readable_span(wait_s)}.")
    for name, pods in timeline.blocked:
        text = f"{name} is never empty: {listed(pods, 5)} cannot be evicted."
        lines += wrapped(text, indent=2, hanging=2, width=style.width)
    if timeline.pending:
        lines += wrapped(
            f"Without a node in the end: {listed(timeline.pending, 5)}.", indent=2, hanging=2, width=style.width
        )
    return [style.heading("In virtual time"), *lines]


def _moment(at_s: float | None) -> str:
    return "-" if at_s is None else readable_span(at_s)


def _moves(report: ConsolidationReport) -> list[str]:
    rows = [
        [str(number), move.pod, move.source, move.target]
        for number, step in enumerate(report.steps, 1)
        for move in step.moves
    ]
    return table(["STEP", "POD", "FROM", "TO"], rows, indent=2, n_left=4)


def _kept_section(report: ConsolidationReport, style: Style) -> list[str]:
    if not report.kept:
        return []
    counts = Counter(one.reason.identifier for one in report.kept)
    lines = [style.heading("Nodes that stay")]
    lines += [f"  {n} {reason}" for reason, n in counts.most_common()] if len(report.kept) > _KEPT_SHOWN else []
    for one in report.kept[: style.most(_KEPT_SHOWN)]:
        told = f"{one.node}: {one.reason.identifier}: {one.reason}"
        lines += wrapped(told, indent=2, hanging=2, width=style.width)
    more = len(report.kept) - (style.most(_KEPT_SHOWN) or len(report.kept))
    return [*lines, *([f"  and {more} more (-o wide shows all)"] if more > 0 else [])]
