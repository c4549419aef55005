"""What if this node went: where each of its pods would go, which would find no node, and the reasons against it.

Each node is asked about by itself. Rules that keep a pod do not end the question: the pods that may leave are moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from kubesched.explanation.layout import Style, Tone, counted, table, wrapped
from kubesched.planning.catalogue import money
from kubesched.planning.consolidate.consolidation import Consolidation
from kubesched.planning.consolidate.in_every_run import SpareOne, needed_after_loss
from kubesched.planning.consolidate.removal import PodMove
from kubesched.planning.consolidate.rules import KeepReason
from kubesched.planning.consolidate.state import ConsolidationState
from kubesched.planning.headroom import is_headroom
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance
from kubesched.planning.several_runs import RunVerdicts
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge
from kubesched.simulator.trial import LoadedWorld

INT, TEXT = ColumnKind.INT64, ColumnKind.UTF8
_POD_COLUMNS = {"node": TEXT, "pod": TEXT, "workload": TEXT, "target": TEXT, "message": TEXT}
_BLOCKER_COLUMNS = {"node": TEXT, "reason": TEXT, "pod": TEXT, "text": TEXT}


@dataclass(frozen=True, slots=True)
class NodeDryRun:
    node: str
    blockers: tuple[KeepReason, ...]
    moves: tuple[PodMove, ...]
    stuck: tuple[tuple[str, str], ...]
    """Pods that would find no node, each with kube-scheduler's message."""
    waves: int
    saving: int
    by_run: tuple[bool, ...] = ()
    """With several seeds or orders: whether it can in each run. All else is of the first in which it cannot."""

    @property
    def can_go(self) -> bool:
        return not self.blockers and not self.stuck


@dataclass(frozen=True, repr=False)
class DryRunReport(AnsweredReport):
    """For each node whether it could go. `str()` is the report as text."""

    command: ClassVar[str] = "kubesched consolidate"

    nodes: tuple[NodeDryRun, ...]
    rules: str
    currency: str
    assumptions: tuple[str, ...]
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

    @property
    def can_go(self) -> bool:
        """Whether each of them could."""
        return all(one.can_go for one in self.nodes)

    @property
    def verdicts(self) -> RunVerdicts:
        """Of each run: whether each of them could."""
        return RunVerdicts(tuple(all(each) for each in zip(*(one.by_run for one in self.nodes), strict=True)))

    @property
    def headline(self) -> str:
        return _headline(self.nodes[0]) if len(self.nodes) == 1 else _headlines(self.nodes)

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        can_go = tuple(({"node": one.node}, float(one.can_go)) for one in self.nodes)
        return (Gauge("kubesched_consolidate_can_go", "Whether the node could go.", can_go),)

    @property
    def tables(self) -> dict[str, ColumnTable]:
        pods: list[tuple[str | None, ...]] = []
        for one in self.nodes:
            pods += [(one.node, move.pod, move.workload, move.target, None) for move in one.moves]
            pods += [(one.node, pod, None, None, message) for pod, message in one.stuck]
        blockers = [(one.node, b.identifier, b.pod or None, b.text) for one in self.nodes for b in one.blockers]
        return {"pods": ColumnTable(_POD_COLUMNS, pods), "blockers": ColumnTable(_BLOCKER_COLUMNS, blockers)}

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._about(),
            "rules": self.rules,
            **self.verdicts.record(),
            "nodes": [_record(one) for one in self.nodes],
            "assumptions": list(self.assumptions),
        }

    def render(self, style: Style) -> str:
        lines = []
        for one in self.nodes:
            lines += [*_section(one, self.currency, style), ""]
        return "\n".join([*lines, style.heading("Assumptions"), *(f"  {text}" for text in self.assumptions)])

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<DryRunReport: {self.headline}>"


def dry_run(consolidation: Consolidation, world: LoadedWorld, names: Sequence[str], rules: str) -> DryRunReport:
    """Raises TrialError for a node that is not there."""
    for name in names:
        world.node(name)
    about = consolidation.provenance((tuple(names), rules))
    by_run = []
    for run in consolidation.runs.all:
        asked = consolidation.of_order(run.order)
        with asked.at_rest(run.seed) as n_left_out:
            state = asked.state()
            by_run.append([_asked(state, name, asked.spared) for name in dict.fromkeys(names)])
            currency, assumptions = state.prices.currency, tuple(asked.assumptions(n_left_out))
    found = tuple(_of_all_runs(each) for each in zip(*by_run, strict=True))
    return DryRunReport(found, rules, currency, assumptions, about)


def _of_all_runs(each: Sequence[NodeDryRun]) -> NodeDryRun:
    worst = next((one for one in each if not one.can_go), each[0])
    return worst if len(each) == 1 else replace(worst, by_run=tuple(one.can_go for one in each))


def _asked(state: ConsolidationState, name: str, spared: str) -> NodeDryRun:
    pods = state.world.pods_on(name)
    blockers = state.rules.all_that_keeps(state.node(name), pods)
    held = {reason.pod for reason in blockers if reason.pod}
    spare = SpareOne(state.world, spared) if spared else None
    with state.forked() as trial:
        for key in held:
            trial.delete_pod(key)  # it stays where it is, and the others are asked about
        result = state.remover.attempt(trial, [name], tells_all=True)
        if spare is not None and result.is_possible and not spare.is_kept:
            blockers.append(needed_after_loss(spared))
        stuck = tuple(("room to keep" if is_headroom(one.pod) else one.pod, one.message) for one in result.stuck)
    return NodeDryRun(name, tuple(blockers), result.moves, stuck, max(result.waves, default=0), state.price(name))


def _headline(one: NodeDryRun) -> str:
    n_pods = len(one.moves) + len(one.stuck)
    where = RunVerdicts(one.by_run)
    if one.can_go:
        return (
            f"{one.node} can go{where.everywhere}: each of its {counted(n_pods, 'pod')} finds another node."
            if n_pods
            else (f"{one.node} can go{where.everywhere}: no pod would have to move.")
        )
    reasons = []
    if one.blockers:
        reasons.append(f"{counted(len(one.blockers), 'rule')} against it")
    if one.stuck:
        reasons.append(f"{len(one.stuck)} of {counted(n_pods, 'pod')} would find no node")
    return f"{one.node} cannot go{where.nowhere}: {', and '.join(reasons)}."


def _headlines(nodes: Sequence[NodeDryRun]) -> str:
    n = sum(one.can_go for one in nodes)
    return f"{n} of {counted(len(nodes), 'node')} can go, each by itself."


def _section(one: NodeDryRun, currency: str, style: Style) -> list[str]:
    lines = [style.painted(Tone.GOOD if one.can_go else Tone.BAD, _headline(one))]
    if one.can_go and currency:
        lines.append(f"That saves {money(one.saving, currency)}.")
    if one.waves > 1:
        lines.append(f"Disruption budgets make it wait: pods leave in {one.waves} waves.")
    for reason in one.blockers:
        lines += wrapped(f"{reason.identifier}: {reason}", indent=2, hanging=2, width=style.width)
    for pod, message in one.stuck:
        lines += wrapped(f"{pod}: {message}", indent=2, hanging=2, width=style.width)
    rows = [[move.pod, move.workload, move.target] for move in one.moves]
    return [*lines, *(table(["POD", "WORKLOAD", "GOES TO"], rows, indent=2, n_left=3) if rows else [])]


def _record(one: NodeDryRun) -> dict[str, Any]:
    return {
        "node": one.node,
        "canGo": one.can_go,
        "blockers": [{"reason": b.identifier, "pod": b.pod or None, "text": b.text} for b in one.blockers],
        "moves": [{"pod": move.pod, "workload": move.workload, "to": move.target} for move in one.moves],
        "stuck": [{"pod": pod, "message": message} for pod, message in one.stuck],
        "waves": one.waves,
        **({"canGoByRun": list(one.by_run)} if one.by_run else {}),
    }
