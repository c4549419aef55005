"""A rolling upgrade on the simulated cluster: machines come, nodes are drained and go, as the strategy allows.

A strategy says how many machines come before, how many nodes may lack, how long a drain may take, and what then.
Presets have the defaults of services and tools that upgrade nodes; a value that is given counts more than the preset's.

Nodes are drained in turn. As many machines come as the surge allows; a node is drained while enough others are open to
pods. Whatever a drain waits for, budgets and pods that take their time to end, is played by the simulation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Node, NodeCondition, Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.selectors import from_label_selector
from kubesched.k8s.model.storage import CSINode
from kubesched.k8s.model.taints import UNSCHEDULABLE_TAINT
from kubesched.k8s.workloads.pod_states import READY, belongs_to_its_node
from kubesched.k8s.workloads.replicas import ShareError, share_of
from kubesched.planning.node_groups import group_of
from kubesched.simulator.virtual.cluster import VirtualCluster

ORDERS = ("name", "zone", "age", "least-pods")
ON_TIMEOUT = ("stop", "force", "skip")


class UpgradeError(KubeschedError, ValueError):
    """What is asked for is no upgrade that could be played."""


@dataclass(frozen=True, slots=True)
class UpgradeStrategy:
    max_surge: int | str = 1
    """New nodes that come before old ones are drained: a number, or a percentage, rounded up."""
    max_unavailable: int | str = 0
    """Nodes that may lack meanwhile: a number, or a percentage, rounded down."""
    drain_timeout_s: float | None = 3600.0
    """None: a drain waits forever."""
    on_timeout: str = "stop"
    boot_s: float = 120.0
    soak_s: float = 0.0
    """How long a new node is watched before the next is drained."""
    order: str = "name"
    reboots: bool = False
    """The same node comes back, instead of another one."""

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UpgradeError(f'there is no order "{self.order}": {", ".join(ORDERS)} are known')
        if self.on_timeout not in ON_TIMEOUT:
            raise UpgradeError(f'on_timeout "{self.on_timeout}": {", ".join(ON_TIMEOUT)} are known')

    def numbers(self, n_nodes: int) -> tuple[int, int]:
        """The surge and how many may lack. Raises UpgradeError."""
        try:
            surge = share_of(self.max_surge, n_nodes, rounding_up=True)
            lacking = share_of(self.max_unavailable, n_nodes, rounding_up=False)
        except ShareError as error:
            raise UpgradeError(str(error)) from None
        if surge < 0 or lacking < 0:
            raise UpgradeError("a surge and what may be unavailable are not negative")
        if self.reboots:
            surge = 0
        if surge == 0 and lacking == 0:
            raise UpgradeError("with neither a surge nor unavailable nodes, no node can be upgraded")
        return surge, lacking


PRESETS: Mapping[str, UpgradeStrategy] = {
    "gke": UpgradeStrategy(1, 0, 3600.0, "force"),
    "aks": UpgradeStrategy("10%", 0, 1800.0, "stop"),
    "eks": UpgradeStrategy(1, 1, 900.0, "stop"),
    "capi": UpgradeStrategy(1, 0, None, "stop"),
    "karpenter-drift": UpgradeStrategy("10%", 0, None, "stop"),
    "reboot": UpgradeStrategy(0, 1, 3600.0, "stop", reboots=True),
}
"""Surge upgrades of GKE node pools and of Cluster API, AKS's and EKS's managed groups, Karpenter's replacement of
drifted nodes under its default budget, and rebooting nodes in place."""


def strategy_of(preset: str | None, **given: Any) -> UpgradeStrategy:
    """The preset with what is given (that is not None) in its place. Raises UpgradeError."""
    if preset is not None and preset not in PRESETS:
        raise UpgradeError(f'there is no preset "{preset}": {", ".join(PRESETS)} are known')
    base = UpgradeStrategy() if preset is None else PRESETS[preset]
    return dataclasses.replace(base, **{name: value for name, value in given.items() if value is not None})


def ordered(nodes: Sequence[Node], order: str, n_pods: Mapping[str, int]) -> list[str]:
    """The names of the nodes in the order in which they are upgraded."""
    keys: dict[str, Any] = {
        "name": lambda node: node.name,
        "zone": lambda node: (group_of(node, "zone") or "", node.name),
        "age": lambda node: (node.metadata.creation_timestamp or "", node.name),
        "least-pods": lambda node: (n_pods.get(node.name, 0), node.name),
    }
    return [node.name for node in sorted(nodes, key=keys[order])]


BEGINS_AT_S = 60.0
"""Time for pods that were pending to be placed and start."""
FORCED = "the drain took too long"
HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class BlockedPod:
    pod: str
    budgets: tuple[str, ...]
    """The disruption budgets that keep it; none if it takes its time to end."""


@dataclass(frozen=True, slots=True)
class StuckNode:
    node: str
    since_s: float
    pods: tuple[BlockedPod, ...]
    outcome: str
    """`stop`, `force`, `skip` or, where it would wait forever, `waits`."""


@dataclass
class RollingUpgrade:
    cluster: VirtualCluster
    names: Sequence[str]
    strategy: UpgradeStrategy
    successor: Callable[[Node], Node]
    """The node that comes for an old one."""
    done: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    stuck: list[StuckNode] = field(default_factory=list)
    peak_nodes: int = 0
    extra_node_s: float = 0.0
    """Node-seconds of machines beyond those there were."""
    finished_s: float | None = None
    levels: list[tuple[float, int, int]] = field(default_factory=list)
    """At each change: when, how many nodes are upgraded, how many machines are there."""

    def __post_init__(self) -> None:
        self._surge, self._lacking = self.strategy.numbers(len(self.names))
        self._todo = list(self.names)
        self._coming = list(self.names)
        """For which a new node has yet to be ordered."""
        self._draining: dict[str, float] = {}
        self._n_booting = self._n_soaking = 0
        self._n_down = 0
        self._n_new = 0
        self._is_stopped = False
        self._changed_s = BEGINS_AT_S
        self.peak_nodes = len(self.names)
        self.cluster.clock.at(self.cluster.clock.start_s + BEGINS_AT_S, self._go_on)
        self.cluster.store.listen(self._on_pod, Pod)

    # -- what may happen next ------------------------------------------------------------------------------------------

    @property
    def _n_there(self) -> int:
        """Machines that are paid for."""
        n_old = len(self.names) - (0 if self.strategy.reboots else len(self.done))
        return n_old + self._n_new + self._n_booting

    @property
    def _n_open(self) -> int:
        """Nodes of the pool that take pods."""
        if self.strategy.reboots:
            return len(self.names) - len(self._draining) - self._n_down
        return len(self.names) - len(self.done) - len(self._draining) + self._n_new

    def _go_on(self) -> None:
        if self._is_stopped:
            return
        if not self.strategy.reboots:
            while self._coming and self._n_there < len(self.names) + self._surge:
                self._count()
                self._n_booting += 1
                old = self._coming.pop(0)
                self._note_peak()
                self._after(self.strategy.boot_s, lambda old=old: self._join(old))  # type: ignore[misc]
        while self._todo and not self._n_soaking and self._n_open - 1 >= len(self.names) - self._lacking:
            self._drain(self._todo.pop(0))
        is_busy = self._todo or self._draining or self._n_booting or self._n_down
        if self.finished_s is None and not is_busy:
            self.finished_s = self._now_s
            self._count()
        self._note_levels()

    def _drain(self, name: str) -> None:
        self._draining[name] = self._now_s
        self.cluster.drains.start(name)
        if self.strategy.drain_timeout_s is not None:
            started_s = self._now_s
            self._after(self.strategy.drain_timeout_s, lambda: self._check_time(name, started_s))
        self._after(0.0, lambda: self._check_empty(name))

    # -- what happened -------------------------------------------------------------------------------------------------

    def _join(self, old: str) -> None:
        self._count()
        self._n_booting -= 1
        if self._is_stopped:
            return
        known = self._olds.get(old)
        if known is not None:
            self._n_new += 1
            for item in self._new_objects(known):
                self.cluster.admission.apply(item)
        self._soak()

    def _soak(self) -> None:
        if self.strategy.soak_s:
            self._n_soaking += 1
            self._after(self.strategy.soak_s, self._soaked)
        else:
            self._go_on()

    def _soaked(self) -> None:
        self._n_soaking -= 1
        self._go_on()

    def _on_pod(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if after is None and isinstance(before, Pod) and before.spec.node_name in self._draining:
            name = before.spec.node_name
            self._after(0.0, lambda: self._check_empty(name))

    def _check_empty(self, name: str) -> None:
        if name not in self._draining or self._leaving(name):
            return
        self._count()
        del self._draining[name]
        if self.strategy.reboots:
            self._n_down += 1
            self._after(self.strategy.boot_s, lambda: self._is_back(name))
            return
        self.done.append(name)
        node = self.cluster.store.find(Node, name)
        if node is not None:
            self.cluster.deletions.delete(node)
        self._go_on()

    def _is_back(self, name: str) -> None:
        self._n_down -= 1
        self.done.append(name)
        self.cluster.drains.cordon(name, closed=False)
        self._soak()

    def _check_time(self, name: str, started_s: float) -> None:
        if self._draining.get(name) != started_s or self._is_stopped:
            return
        outcome = self.strategy.on_timeout
        self.stuck.append(self._stuck(name, outcome))
        if outcome == "force":
            for pod in self._leaving(name):
                self.cluster.deletions.delete(pod, FORCED)
        elif outcome == "skip":
            self._count()
            del self._draining[name]
            self.skipped.append(name)
            del self._coming[-1:]  # one new node less is needed
            self.cluster.drains.cordon(name, closed=False)
            self._go_on()
        else:
            self._is_stopped = True
            self._count()
            self._note_levels()

    def end(self) -> None:
        """The run is over: whoever is still being drained would be forever."""
        told = {one.node for one in self.stuck}
        self.stuck += [self._stuck(name, "waits") for name in self._draining if name not in told]

    # -- helpers -------------------------------------------------------------------------------------------------------

    def remember(self) -> None:
        """What the old nodes are like; to be called before the run."""
        nodes, csi_nodes = self.cluster.store.of(Node), self.cluster.store.of(CSINode)
        self._olds = {name: nodes[name] for name in self.names if name in nodes}
        self._csi = {name: csi_nodes[name] for name in self.names if name in csi_nodes}

    def _new_objects(self, old: Node) -> list[KubeObject]:
        node = self.successor(old)
        csi = self._csi.get(old.name)
        if csi is None:
            return [node]
        return [node, replace(csi, metadata=replace(csi.metadata, name=node.name, uid=""))]

    def _leaving(self, name: str) -> list[Pod]:
        return [pod for pod in self.cluster.store.pods_on(name) if not belongs_to_its_node(pod)]

    def _stuck(self, name: str, outcome: str) -> StuckNode:
        pods = tuple(BlockedPod(pod.pod_key, self._budgets_of(pod)) for pod in self._leaving(name))
        return StuckNode(name, round(self._draining.get(name, self._now_s) - BEGINS_AT_S, 3), pods, outcome)

    def _budgets_of(self, pod: Pod) -> tuple[str, ...]:
        budgets = self.cluster.store.of(PodDisruptionBudget).values()
        return tuple(
            budget.key
            for budget in budgets
            if budget.namespace == pod.namespace and from_label_selector(budget.spec.selector).matches(pod.labels)
        )

    @property
    def _now_s(self) -> float:
        return self.cluster.clock.elapsed_s

    def _after(self, for_s: float, happening: Callable[[], None]) -> None:
        self.cluster.clock.after(for_s, happening)

    def _count(self) -> None:
        """Adds up what was there since the last change."""
        extra = max(0, self._n_there - len(self.names))
        self.extra_node_s += extra * (self._now_s - self._changed_s)
        self._changed_s = self._now_s

    def _note_levels(self) -> None:
        self.levels.append((self._now_s - BEGINS_AT_S, len(self.done), self._n_there))

    def _note_peak(self) -> None:
        self.peak_nodes = max(self.peak_nodes, self._n_there)


def same_shape(old: Node) -> Node:
    """A new node like the old one."""
    name = f"{old.name}-new"
    labels = {**(old.metadata.labels or {})}
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    taints = tuple(taint for taint in old.spec.taints or () if taint != UNSCHEDULABLE_TAINT)
    conditions = tuple(one for one in old.status.conditions or () if one.type != READY)
    return replace(
        old,
        metadata=replace(old.metadata, name=name, labels=labels or None, uid="", creation_timestamp=None),
        spec=replace(old.spec, unschedulable=False, taints=taints or None),
        status=replace(old.status, conditions=(*conditions, NodeCondition(READY, "True"))),
    )
