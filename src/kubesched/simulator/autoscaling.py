"""What a simulation knows of an autoscaler: that it may launch and remove nodes, and what it says in the end.

Who decides stands above: `kubesched.planning.autoscaling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from kubesched.framework.handle import Registry
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.virtual.cluster import VirtualCluster

CHANGE_COLUMNS = {"at_s": ColumnKind.FLOAT64, **dict.fromkeys(("change", "node", "machine", "why"), ColumnKind.UTF8)}
LAUNCHED, READY, DRAINED, REMOVED = "launched", "ready", "drained", "removed"


@dataclass(frozen=True, slots=True)
class AutoscalerChange:
    """Something that the autoscaler did."""

    at_s: float
    change: str
    """`launched`, `ready`, `drained` (from now on), or `removed`."""
    node: str
    machine: str
    why: str


@dataclass(frozen=True, slots=True)
class AutoscalingRecord:
    """What an autoscaler did in the course of a run."""

    policy: str
    changes: tuple[AutoscalerChange, ...]
    fewest_nodes: int
    most_nodes: int
    nodes_at_end: int
    """All nodes that are ready."""
    node_hours: float
    """Of all nodes; one that is launched counts from then on."""
    cost: float | None
    """Of these; None if nothing says what nodes cost."""
    currency: str
    assumptions: tuple[str, ...]

    def count(self, change: str) -> int:
        return sum(one.change == change for one in self.changes)

    def table(self) -> ColumnTable:
        rows = ((one.at_s, one.change, one.node, one.machine, one.why) for one in self.changes)
        return ColumnTable(CHANGE_COLUMNS, rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "launched": self.count(LAUNCHED),
            "removed": self.count(REMOVED),
            "fewest_nodes": self.fewest_nodes,
            "most_nodes": self.most_nodes,
            "nodes_at_end": self.nodes_at_end,
            "node_hours": self.node_hours,
            "cost": self.cost,
            "currency": self.currency,
            "changes": self.table().to_rows(),
            "assumptions": list(self.assumptions),
        }


class AutoscaledRun(Protocol):
    """An autoscaler at work in one run."""

    def start(self, cluster: VirtualCluster) -> None:
        """All objects are there, and nothing has happened yet."""

    def record(self) -> AutoscalingRecord:
        """Once the run is over."""


class Autoscaler(Protocol):
    def run(
        self, config: KubeSchedulerConfiguration, options: SimulationOptions, registry: Registry | None = None
    ) -> AutoscaledRun:
        """For one run with this scheduler."""
