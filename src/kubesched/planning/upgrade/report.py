"""What an upgrade report holds: whether it finishes, what blocks it, what it costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from kubesched.explanation.layout import Style
from kubesched.planning.html_report import ReportAsPage
from kubesched.planning.upgrade.rolling import StuckNode
from kubesched.planning.upgrade.strategies import UpgradeStrategy
from kubesched.simulator.column_table import ColumnKind, ColumnTable

INT, FLOAT, TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8
_STUCK_COLUMNS = {"node": TEXT, "since_s": FLOAT, "pod": TEXT, "budgets": TEXT, "outcome": TEXT}
_TIMELINE_COLUMNS = {"at_s": FLOAT, "upgraded": INT, "nodes": INT, "pending": INT}
_TRY_COLUMNS = {"order": TEXT, "max_surge": TEXT, "finishes": TEXT, "duration_s": FLOAT, "moves": INT}


@dataclass(frozen=True, slots=True)
class UpgradeOutcome:
    """One upgrade, played to its end."""

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

    @property
    def is_stopped(self) -> bool:
        return self.stopped_s is not None

    @property
    def finishes(self) -> bool:
        """Whether every node was upgraded, and every pod has a node again."""
        return self.duration_s is not None and not self.skipped and not self.waiting and not self.is_stopped

    @property
    def moves_per_pod(self) -> float:
        return self.moves / self.n_pods if self.n_pods else 0.0


@dataclass(frozen=True, repr=False)
class UpgradeReport(ReportAsPage):
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
            "finishes": None if self.outcome.is_stopped else self.finishes,
            "stopped": self.stopped or None,
            "pool": self.pool,
            "preset": self.preset,
            **_record(self.outcome),
            "extra_cost": None if self.extra_cost is None else self.extra_cost / 10**9,
            "currency": self.currency or None,
            "smallest_surge": self.smallest_surge,
            "best_order": self.best_order,
            "tries": [_record(one) for one in (*self.orders, *self.surges)],
            "assumptions": list(self.assumptions),
        }

    @property
    def headline(self) -> str:
        from kubesched.planning.upgrade.report_text import headline

        return headline(self)

    def render(self, style: Style) -> str:
        from kubesched.planning.upgrade.report_text import render_upgrade

        return render_upgrade(self, style)

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<UpgradeReport: {self.headline}>"


def _record(one: UpgradeOutcome) -> dict[str, Any]:
    return {
        "strategy": asdict(one.strategy),
        "nodes": one.n_nodes,
        "upgraded": one.n_upgraded,
        "skipped": list(one.skipped),
        "stuck": [asdict(stuck) for stuck in one.stuck],
        "duration_s": one.duration_s,
        "pods": one.n_pods,
        "moves": one.moves,
        "forced": one.forced,
        "most_pending": one.most_pending,
        "longest_wait_s": one.longest_wait_s,
        "waiting": list(one.waiting),
        "peak_nodes": one.peak_nodes,
        "extra_node_hours": one.extra_node_hours,
    }
