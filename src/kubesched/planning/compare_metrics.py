"""What is measured of a run: pods that wait, nodes and money, how full and how evenly full nodes are.

Next: `compare`, which measures every variant with every seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random

from kubesched.framework.handle import Registry
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.manifests import KINDS
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.k8s.model.spelling import did_you_mean
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.planning.catalogue import NANOS, PRICE, Catalogue, NodePrices
from kubesched.planning.headroom import keep_free
from kubesched.planning.optimal import resource_use
from kubesched.planning.resizing import PodUsage
from kubesched.planning.soft_constraints import preferences_met_percent, soft_skew
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.trial import LoadedWorld
from kubesched.simulator.virtual.cluster import VirtualCluster
from kubesched.simulator.virtual.controllers import MAKES_PODS

_DIGITS = 6


class CompareError(KubeschedError, ValueError):
    """The variants cannot be compared; says why."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is compared. `lower_is_better` is None where neither is better in itself."""

    name: str
    unit: str
    lower_is_better: bool | None
    is_quantile: bool = False
    """Of many values of a run, so that its differences are not near to normal."""


PENDING = "pending"
COST, NODES_NEEDED, COST_NEEDED, RISK = "cost", "nodes_needed", "cost_needed", "nodes_at_risk"
ROOM = "kept_room"
"""Of the pods that stand for room to keep, those for which there is room in the end."""

METRICS = (
    Metric(PENDING, "pods", True),
    Metric("waited", "pod-seconds", True),
    Metric("wait_p50", "s", True, is_quantile=True),
    Metric("wait_p99", "s", True, is_quantile=True),
    Metric("nodes_used", "nodes", True),
    Metric(COST, "an hour", True),
    Metric(NODES_NEEDED, "nodes", True),
    Metric(COST_NEEDED, "an hour", True),
    Metric("cpu", "% of cpu", None),
    Metric("memory", "% of memory", None),
    Metric("cpu_peak", "% of a node's cpu", None),
    Metric("memory_peak", "% of a node's memory", None),
    Metric("imbalance", "% points of cpu", True),
    Metric("fragmented", "% of free cpu", True),
    Metric("stranded", "% of cpu", True),
    Metric("preferences", "% of weight", False),
    Metric("soft_skew", "pods", True),
    Metric("preemptions", "pods", True),
    Metric("moves", "pods", True),
    Metric(RISK, "nodes", True),
    Metric(ROOM, "pods", False),
)
_BY_NAME = {metric.name: metric for metric in METRICS}


def chosen_metrics(
    names: Sequence[str], *, has_prices: bool, has_usage: bool, is_resized: bool, keeps: bool
) -> tuple[Metric, ...]:
    """Those that were asked for; else all that there is something to say about. Finding out how few nodes would do
    takes time: it is done where requests differ. Raises CompareError."""
    for name in names:
        if name not in _BY_NAME:
            raise CompareError(f'metric "{name}" is none of {", ".join(_BY_NAME)}{did_you_mean(name, _BY_NAME)}')
    if RISK in names and not has_usage:
        raise CompareError(f"metric {RISK} needs a usage file")
    if ROOM in names and not keeps:
        raise CompareError(f"metric {ROOM} needs room to keep")
    for name in (COST, COST_NEEDED):
        if name in names and not has_prices:
            raise CompareError(f"metric {name} needs prices: a catalogue, or the annotation {PRICE} of nodes")
    if names:
        return tuple(metric for metric in METRICS if metric.name in names)
    left_out = {
        *(() if has_prices else (COST, COST_NEEDED)),
        *(() if is_resized else (NODES_NEEDED, COST_NEEDED)),
        *(() if has_usage else (RISK,)),
        *(() if keeps else (ROOM,)),
    }
    return tuple(metric for metric in METRICS if metric.name not in left_out)


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run that is over, and what is needed to measure it."""

    cluster: VirtualCluster
    report: SimulationReport
    config: KubeSchedulerConfiguration
    registry: Registry | None
    catalogue: Catalogue | None
    usage: PodUsage | None
    seed: int
    keep: tuple[str, ...] = ()
    """Room that is asked for in the end."""

    def values(self, metrics: Iterable[Metric]) -> dict[str, float]:
        wanted = [metric.name for metric in metrics]
        found = self._of_pods() | self._of_nodes()
        if COST in wanted:
            found[COST] = self._price_of(self.report.history.nodes_used)
        if NODES_NEEDED in wanted or COST_NEEDED in wanted:
            kept = self._nodes_needed()
            found[NODES_NEEDED] = float(len(kept))
            found[COST_NEEDED] = self._price_of(kept)
        if RISK in wanted and self.usage is not None:
            workloads = {one.key: one.workload for one in self.report.history.pods}
            found[RISK] = float(len(self.usage.overfull(self.cluster.loop.cluster, workloads)))
        if ROOM in wanted:
            found[ROOM] = self._room_kept()
        return {name: round(found[name], _DIGITS) for name in wanted}

    def _of_pods(self) -> dict[str, float]:
        report, summary = self.report, self.report.summary
        pods = [record for record in report.history.pods if not record.was_there]
        waits = sorted(one.scheduled_s - one.created_s for one in pods if one.scheduled_s is not None)
        ends = (report.ended_s if one.scheduled_s is None else one.scheduled_s for one in pods)
        return {
            PENDING: float(summary["states"].get(POD_PENDING, 0)),
            "waited": sum(end_s - one.created_s for end_s, one in zip(ends, pods, strict=True)),
            "wait_p50": _quantile(waits, 0.5),
            "wait_p99": _quantile(waits, 0.99),
            "preemptions": float(summary["preemptions"]),
            "moves": float(sum(bool(one.cause) for one in report.history.pods)),
        }

    def _of_nodes(self) -> dict[str, float]:
        history = self.report.history
        full = [one.requested.get(CPU, 0) / one.allocatable[CPU] for one in history.nodes if one.allocatable.get(CPU)]
        mean = sum(full) / len(full) if full else 0.0
        cluster = self.cluster.loop.cluster
        of_cpu = resource_use(cluster)[0]
        return {
            "preferences": preferences_met_percent(cluster),
            "soft_skew": soft_skew(cluster),
            "nodes_used": float(len(history.nodes_used)),
            "cpu": 100 * (history.requested_share(CPU) or 0.0),
            "memory": 100 * (history.requested_share(MEMORY) or 0.0),
            "cpu_peak": 100 * history.highest_share(CPU),
            "memory_peak": 100 * history.highest_share(MEMORY),
            "imbalance": 100 * sqrt(sum((one - mean) ** 2 for one in full) / len(full)) if full else 0.0,
            "fragmented": of_cpu.fragmented_percent,
            "stranded": 100 * of_cpu.stranded / of_cpu.allocatable if of_cpu.allocatable else 0.0,
        }

    def _price_of(self, names: Iterable[str]) -> float:
        nodes = self._nodes
        prices = NodePrices(list(nodes.values()), self.catalogue)
        return sum(prices.of(nodes[name]) for name in names if name in nodes) / NANOS

    @property
    def _nodes(self) -> Mapping[str, Node]:
        return self.cluster.store.of(Node)

    def _nodes_needed(self) -> list[str]:
        """The nodes that are left when one after another is taken away, in an order by chance, as long as everybody
        who has a node still finds one: what Borg's planners call compaction."""
        world = self._in_the_end()
        order = sorted(world.nodes)
        Random(self.seed).shuffle(order)
        with world.trial() as trial:
            for key in world.pending:
                trial.delete_pod(key)
            keep_free(trial, self.keep)
            for name in order:
                with trial.trial() as inner:
                    inner.drain(name)
                    inner.delete_node(name)
                    if not inner.settle(to_first_failure=True).pending:
                        inner.commit()
            return world.nodes

    def _room_kept(self) -> float:
        with self._in_the_end().trial() as trial:
            trial.settle()
            n_asked, n_missing = keep_free(trial, self.keep)
        return float(n_asked - n_missing)

    def _in_the_end(self) -> LoadedWorld:
        store = self.cluster.store
        return LoadedWorld(
            (item for kind in dict.fromkeys(KINDS.values()) for item in store.of(kind).values()),
            self.config,
            registry=self.registry,
            seed=self.seed,
            workloads=[item for kind in MAKES_PODS for item in store.of(kind).values()],
        )


def _quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0
