"""What an upgrade report holds: whether it finishes, what blocks it, what it costs; and the report as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from kubesched.explanation.layout import Style, Tone, counted, listed, table, wrapped
from kubesched.planning.catalogue import money
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance, as_record
from kubesched.planning.rolling_upgrade import StuckNode, UpgradeStrategy
from kubesched.planning.several_runs import RunVerdicts
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge, gauge
from kubesched.simulator.report_text import readable_span

INT, FLOAT, TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8
_STUCK_COLUMNS = {"node": TEXT, "since_s": FLOAT, "pod": TEXT, "budgets": TEXT, "outcome": TEXT}
_TIMELINE_COLUMNS = {"at_s": FLOAT, "upgraded": INT, "nodes": INT, "pending": INT}
_TRY_COLUMNS = {"order": TEXT, "max_surge": TEXT, "finishes": TEXT, "duration_s": FLOAT, "moves": INT}


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """Of the pods that stand for room to keep, how many have a node."""

    before: int
    lowest: int
    """At the worst moment."""
    after: int


@dataclass(frozen=True, slots=True)
class UpgradeRun:
    """What came of one of several runs."""

    finishes: bool
    duration_s: float | None
    moves: int


@dataclass(frozen=True, slots=True)
class UpgradeOutcome:
    """One upgrade, played to its end; of several runs, the worst."""

    strategy: UpgradeStrategy
    n_nodes: int
    n_upgraded: int
    skipped: tuple[str, ...]
    stuck: tuple[StuckNode, ...]
    duration_s: float | None
    """None if it does not finish."""
    n_pods: int
    """Pods on the nodes before, without daemons."""
    moves: int
    """Pods that drains evicted; those that are moved again count again."""
    forced: int
    """Of them, those that were deleted against their budgets."""
    most_pending: int
    longest_wait_s: float
    waiting: tuple[str, ...]
    """Pods that have no node in the end, but had one before."""
    peak_nodes: int
    extra_node_hours: float
    timeline: tuple[tuple[float, int, int, int], ...] = ()
    """At each change: seconds since the beginning, nodes upgraded, nodes there, pods that wait."""
    stopped_s: float | None = None
    """How far it was played, if it was stopped."""
    room: KeptRoom | None = None
    """None if none was to be kept."""
    by_run: tuple[UpgradeRun, ...] = ()
    """With several seeds or orders, what came of each run."""

    @property
    def is_stopped(self) -> bool:
        return self.stopped_s is not None

    @property
    def finishes(self) -> bool:
        """Whether every node was upgraded, and every pod has a node again; and the room to keep is there."""
        is_whole = not (self.skipped or self.waiting or self.lost_room or self.is_stopped)
        return self.duration_s is not None and is_whole

    @property
    def lost_room(self) -> int:
        """For how many pods of the room to keep there is none any more."""
        return 0 if self.room is None else max(0, self.room.before - self.room.after)

    @property
    def verdicts(self) -> RunVerdicts:
        return RunVerdicts(tuple(one.finishes for one in self.by_run))

    @property
    def moves_per_pod(self) -> float:
        return self.moves / self.n_pods if self.n_pods else 0.0


@dataclass(frozen=True, repr=False)
class UpgradeReport(AnsweredReport):
    """`finishes` is the answer; `str()` is the report as text."""

    command: ClassVar[str] = "kubesched upgrade"

    pool: str | None
    preset: str | None
    outcome: UpgradeOutcome
    orders: tuple[UpgradeOutcome, ...]
    """The same in other orders, if they were asked for."""
    surges: tuple[UpgradeOutcome, ...]
    """With smaller and larger surges, if they were asked for: the last is the smallest that finishes."""
    extra_cost: int | None
    """Of the machines that come before others go, in 10⁻⁹ of the currency; None without prices."""
    currency: str
    assumptions: tuple[str, ...]
    stopped: str = ""
    """Why not everything was played that was asked for: `time`, `interrupted`, or nothing."""
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

    @property
    def finishes(self) -> bool:
        return self.outcome.finishes

    @property
    def smallest_surge(self) -> int | None:
        """None if it was not asked for, or none finishes."""
        found = [int(one.strategy.max_surge) for one in self.surges if one.finishes]
        return min(found, default=None)

    @property
    def best_order(self) -> str | None:
        """The order with the fewest moves among those that finish; None if they were not asked for."""
        finishing = [one for one in (self.outcome, *self.orders) if one.finishes]
        return min(finishing, key=lambda one: one.moves).strategy.order if self.orders and finishing else None

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """`tries` (each that was played), `stuck` (pods that block), `timeline` (of the one that was asked for)."""
        stuck = [
            (one.node, one.since_s, pod.pod, " ".join(pod.budgets) or None, one.outcome)
            for one in self.outcome.stuck
            for pod in one.pods
        ]
        tries = [
            (one.strategy.order, str(one.strategy.max_surge), str(one.finishes).lower(), one.duration_s, one.moves)
            for one in (self.outcome, *self.orders, *self.surges)
        ]
        return {
            "tries": ColumnTable(_TRY_COLUMNS, tries),
            "stuck": ColumnTable(_STUCK_COLUMNS, stuck),
            "timeline": ColumnTable(_TIMELINE_COLUMNS, list(self.outcome.timeline)),
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._about(),
            "finishes": None if self.outcome.is_stopped else self.finishes,
            "stopped": self.stopped or None,
            "pool": self.pool,
            "preset": self.preset,
            **_record(self.outcome),
            "extraCost": None if self.extra_cost is None else self.extra_cost / 10**9,
            "currency": self.currency or None,
            "smallestSurge": self.smallest_surge,
            "bestOrder": self.best_order,
            **self.outcome.verdicts.record(),
            "tries": [_record(one) for one in (*self.orders, *self.surges)],
            "assumptions": list(self.assumptions),
        }

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        one = self.outcome
        pool = {"pool": self.pool} if self.pool else {}
        finishes = None if one.is_stopped else float(one.finishes)
        return (
            gauge("kubesched_upgrade_finishes", "Whether the upgrade finishes.", finishes, **pool),
            gauge("kubesched_upgrade_duration_seconds", "How long it takes.", one.duration_s, **pool),
            gauge("kubesched_upgrade_moves", "Pods that drains evict.", one.moves, **pool),
            gauge("kubesched_upgrade_stuck_nodes", "Nodes whose drain does not end in time.", len(one.stuck), **pool),
            gauge(
                "kubesched_upgrade_most_pending_pods", "Pods that wait at a time, at most.", one.most_pending, **pool
            ),
        )

    @property
    def headline(self) -> str:

        return headline(self)

    def render(self, style: Style) -> str:

        return render_upgrade(self, style)

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<UpgradeReport: {self.headline}>"


def _record(one: UpgradeOutcome) -> dict[str, Any]:
    return {
        "strategy": as_record(one.strategy),
        "nodes": one.n_nodes,
        "upgraded": one.n_upgraded,
        "skipped": list(one.skipped),
        "stuck": [as_record(stuck) for stuck in one.stuck],
        "durationSeconds": one.duration_s,
        "pods": one.n_pods,
        "moves": one.moves,
        "forced": one.forced,
        "mostPending": one.most_pending,
        "longestWaitSeconds": one.longest_wait_s,
        "waiting": list(one.waiting),
        "peakNodes": one.peak_nodes,
        "extraNodeHours": one.extra_node_hours,
        **({} if one.room is None else {"room": as_record(one.room)}),
        **({"byRun": [as_record(run) for run in one.by_run]} if one.by_run else {}),
    }


_SHOWN = 8


def headline(report: UpgradeReport) -> str:
    one = report.outcome
    of = f" of pool {report.pool}" if report.pool else ""
    nodes = f"{counted(one.n_nodes, 'node')}{of}"
    if one.stopped_s is not None:
        span = readable_span(one.stopped_s)
        done = f"{one.n_upgraded} of {nodes} are upgraded"
        return f"Not known whether the upgrade finishes: {_why_stopped(report)} after {span} of it, when {done}."
    if one.finishes:
        assert one.duration_s is not None
        span = readable_span(one.duration_s)
        where = f"{one.verdicts.everywhere}, at the latest" if one.by_run else ""
        return (
            f"The upgrade of {nodes} finishes{where} after {span}: {counted(one.moves, 'move')} of {one.n_pods} pods."
        )
    where = one.verdicts.where_no
    if one.skipped:
        return f"The upgrade leaves {len(one.skipped)} of {nodes} as they are{where}: {listed(one.skipped, 3)}."
    if one.duration_s is not None and not one.waiting:
        lost = f"{one.lost_room} of the {counted(one.room.before if one.room else 0, 'pod')}"
        return f"The upgrade of {nodes} ends{where} without room for {lost} that it is to be kept for."
    if one.duration_s is not None:
        return f"The upgrade of {nodes} ends{where}, but {counted(len(one.waiting), 'pod')} find no node any more."
    names = [stuck.node for stuck in one.stuck]
    told = f" It is stuck at {listed(names, 3)}." if names else ""
    return f"The upgrade does not finish{one.verdicts.nowhere}: {one.n_upgraded} of {nodes} are upgraded.{told}"


def _why_stopped(report: UpgradeReport) -> str:
    return "stopped: time" if report.stopped == "time" else "interrupted"


def render_upgrade(report: UpgradeReport, style: Style) -> str:
    """Without a newline at its end."""
    one = report.outcome
    sections = [
        [style.painted(Tone.GOOD if one.finishes else Tone.BAD, headline(report)), *_numbers(report, one)],
        _stuck_section(one, style),
        _other_ways(report, style),
        [style.heading("Strategy"), *_strategy(report)],
        [style.heading("Assumptions"), *(f"  {text}" for text in report.assumptions)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _numbers(report: UpgradeReport, one: UpgradeOutcome) -> list[str]:
    moves = f"{one.moves_per_pod:.2f} moves a pod (1.00 if none is moved again)"
    forced = f", {one.forced} of them against their budgets" if one.forced else ""
    pending = "no pod is ever pending"
    if one.most_pending:
        longest = readable_span(one.longest_wait_s)
        pending = f"at most {counted(one.most_pending, 'pod')} pending at once, the longest for {longest}"
    extra = f"{one.extra_node_hours:.1f} hours of extra nodes"
    cost = "" if report.extra_cost is None else f", {money(report.extra_cost, report.currency).removesuffix('/h')}"
    why = "Out of time (stopped: time)" if report.stopped == "time" else "Interrupted"
    left = [f"{why}: not all alternatives were simulated."] if report.stopped and one.finishes else []
    return [
        *left,
        f"{moves}{forced}; {pending}.",
        f"At most {counted(one.peak_nodes, 'node')} at a time; {extra}{cost}.",
        *_room_told(one.room),
        *_runs_told(one),
    ]


def _room_told(room: KeptRoom | None) -> list[str]:
    if room is None:
        return []
    told = f"There is room to keep for {room.before} pods before, for {room.after} after"
    return [f"{told}, and for {room.lowest} at the worst moment."]


def _runs_told(one: UpgradeOutcome) -> list[str]:
    """What the runs have between them."""
    if not one.by_run:
        return []
    moves = [run.moves for run in one.by_run]
    times = sorted(run.duration_s for run in one.by_run if run.finishes and run.duration_s is not None)
    told = [f"Of {len(one.by_run)} runs, {one.verdicts.n_yes} finish", f"{min(moves)} to {max(moves)} moves"]
    told += [f"{readable_span(times[0])} to {readable_span(times[-1])}"] if times else []
    return [f"{', '.join(told)}; the worst run is told here."]


def _stuck_section(one: UpgradeOutcome, style: Style) -> list[str]:
    lines = [style.heading("What blocks it")] if one.stuck or one.waiting else []
    most = style.most(_SHOWN)
    for stuck in one.stuck[:most]:
        lines.append(f"  {stuck.node}, drained since {readable_span(stuck.since_s)} ({_OUTCOMES[stuck.outcome]}):")
        for pod in stuck.pods[:most]:
            kept = f"disruption budget {' and '.join(pod.budgets)}" if pod.budgets else "it takes its time to end"
            lines += wrapped(f"{pod.pod}: {kept}", indent=4, hanging=2, width=style.width)
    if one.waiting:
        lines += wrapped(f"Without a node: {listed(one.waiting, most)}", indent=2, hanging=2, width=style.width)
    return lines


_OUTCOMES = {
    "stop": "the upgrade stops",
    "force": "its pods are deleted",
    "skip": "it stays as it is",
    "waits": "it would wait forever",
}


def _other_ways(report: UpgradeReport, style: Style) -> list[str]:
    lines = []
    if report.surges:
        smallest = report.smallest_surge
        last = report.surges[-1].strategy.max_surge
        lines.append(
            f"  Smallest surge that finishes: {smallest}."
            if smallest is not None
            else f"  No surge up to {last} finishes."
        )
    if report.orders:
        rows = [
            [one.strategy.order, "yes" if one.finishes else "no", str(one.moves), f"{one.moves_per_pod:.2f}"]
            for one in (report.outcome, *report.orders)
        ]
        lines += table(["ORDER", "FINISHES", "MOVES", "A POD"], rows, indent=2)
    return [style.heading("Other ways"), *lines] if lines else []


def _strategy(report: UpgradeReport) -> list[str]:
    one = report.outcome.strategy
    timeout = "none" if one.drain_timeout_s is None else f"{readable_span(one.drain_timeout_s)}, then {one.on_timeout}"
    rows = [
        ["max surge", str(one.max_surge)],
        ["max unavailable", str(one.max_unavailable)],
        ["drain timeout", timeout],
        ["boot", readable_span(one.boot_s)],
        ["soak", readable_span(one.soak_s)],
        ["order", one.order],
        ["machines", "the same reboot" if one.reboots else "new ones come"],
    ]
    width = max(len(row[0]) for row in rows)
    preset = [f"  preset {report.preset}, where nothing else was asked for"] if report.preset else []
    return [*preset, *(f"  {name:<{width}}  {value}" for name, value in rows)]
