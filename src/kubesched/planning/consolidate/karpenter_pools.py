"""What NodePools let Karpenter do at a moment: which of their nodes it may disrupt, how many at a time, at what price.

A NodePool may say that only empty nodes go, or none; that a node is left alone for a while after a pod came to it or
left it; how many nodes may be disrupted at a time, for which reason and when; and, with the policy `Balanced`, that a
disruption must be worth it. The reasons are told as Karpenter's events tell them.

Next: `kubesched.planning.node_pool_budgets` for the fields themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kubesched.k8s.model.autoscaling import NodeClaim, NodePool
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.times import InstantError, instant_s
from kubesched.k8s.workloads.pod_states import READY, belongs_to_its_node
from kubesched.planning.catalogue import CAPACITY_TYPE, POOL, ZONE, Catalogue
from kubesched.planning.consolidate.rules import KeepReason
from kubesched.planning.node_pool_budgets import (
    BALANCED,
    EMPTY,
    UNDERUTILIZED,
    WHEN_EMPTY,
    PoolDisruption,
    disruption_of,
)
from kubesched.simulator.report_text import readable_span
from kubesched.simulator.trial import LoadedWorld

BALANCED_SCORE = 0.5
"""The saving, as a share of what a pool costs, must be at least half of the disruption, as a share of all of it."""
WINDOW = "consolidateAfter window not yet elapsed"
NOT_FOUND = "NodePool not found"
_INITIALIZED = "Initialized"


@dataclass(frozen=True)
class KarpenterPools:
    """Without any NodePool, whatever Karpenter's rules say of nodes and pods alone holds."""

    of: Mapping[str, PoolDisruption] = field(default_factory=dict)
    """By name."""
    at_s: float | None = None
    """What time it is, if anybody knows."""
    touched_s: Mapping[str, float] = field(default_factory=dict)
    """When a pod last came to a node or left it."""
    disrupted: Collection[str] = ()
    """Nodes that are being disrupted already."""
    uninitialized: Collection[str] = ()
    """They do not count as nodes of their pool yet."""
    default: PoolDisruption | None = None
    """Of nodes whose pool is none of these; None: those are left alone."""

    def __bool__(self) -> bool:
        return bool(self.of) or self.default is not None

    @property
    def ignores_schedules(self) -> bool:
        """Whether there are budgets with schedules, and nobody knows what time it is."""
        return self.at_s is None and any(one.has_schedule for one in self.of.values())

    def what_keeps(self, node: Node, *, is_empty: bool) -> KeepReason | None:
        """Budgets apart: those depend on the other nodes."""
        if not self:
            return None
        pool = self._of(node)
        if pool is None:
            return KeepReason(NOT_FOUND, f"there is no NodePool {_name(node)}")
        if pool.is_static:
            return KeepReason("static NodePool", f"NodePool {_name(node)} has as many nodes as it says")
        for label in () if is_empty or not self.of else (CAPACITY_TYPE, ZONE):
            if label not in (node.metadata.labels or {}):
                return KeepReason(f'Node does not have label "{label}"', "so Karpenter does not know its price")
        after_s = pool.consolidate_after_s
        if after_s is None:
            return KeepReason(f'NodePool "{_name(node)}" has consolidation disabled', "consolidateAfter is Never")
        if pool.policy == WHEN_EMPTY and not is_empty:
            policy = f'NodePool "{_name(node)}" has consolidation policy {WHEN_EMPTY}, but node is not empty'
            return KeepReason(policy, "it has pods")
        touched_s = self.touched_s.get(node.name)
        if self.at_s is not None and touched_s is not None and self.at_s < touched_s + after_s:
            text = (
                f"a pod came or left {readable_span(max(0.0, self.at_s - touched_s))} ago, and NodePool {_name(node)} "
                f"waits {readable_span(after_s)}"
            )
            return KeepReason(WINDOW, text, until_s=touched_s + after_s)
        return None

    def budgets(self, nodes: Iterable[Node]) -> PoolBudgets:
        counts, lacking = Counter[str](), Counter[str]()
        for node in nodes if self else ():
            if node.name in self.uninitialized:
                continue
            counts[_name(node)] += 1
            if node.name in self.disrupted or node.metadata.deletion_timestamp or not is_node_ready(node):
                lacking[_name(node)] += 1
        return PoolBudgets(self, counts, lacking)

    def is_balanced(self, node: Node) -> bool:
        pool = self._of(node)
        return pool is not None and pool.policy == BALANCED

    def _of(self, node: Node) -> PoolDisruption | None:
        return self.of.get(_name(node), self.default)


@dataclass(frozen=True)
class PoolBudgets:
    """How many nodes of each pool may be disrupted now."""

    pools: KarpenterPools
    counts: Mapping[str, int]
    lacking: Mapping[str, int]

    def allowed(self, pool: str, reason: str) -> int | None:
        """None: any number."""
        found = self.pools.of.get(pool, self.pools.default)
        if found is None:
            return None
        return found.allowed(reason, self.counts.get(pool, 0), self.lacking.get(pool, 0), self.pools.at_s)

    def what_keeps(self, node: Node, *, is_empty: bool) -> KeepReason | None:
        """A budget that allows none."""
        reason, name, at_s = EMPTY if is_empty else UNDERUTILIZED, _name(node), self.pools.at_s
        if self.allowed(name, reason) != 0:
            return None
        pool = self.pools.of.get(name, self.pools.default)
        opens_s = None
        if pool is not None and at_s is not None:
            opens_s = pool.opens_at_s(reason, self.counts.get(name, 0), self.lacking.get(name, 0), at_s)
        identifier = f"No allowed disruptions for disruption reason {reason} due to blocking budget"
        when = "" if opens_s is None or at_s is None else f" for another {readable_span(opens_s - at_s)}"
        return KeepReason(identifier, f"budgets of NodePool {name} allow none{when}", until_s=opens_s)

    def within(self, nodes: Iterable[Node], reason: str) -> list[str]:
        """The names of those that go together, in their order, until a pool's budget is used up."""
        left: dict[str, int | None] = {}
        found = []
        for node in nodes:
            pool = _name(node)
            n = left.setdefault(pool, self.allowed(pool, reason))
            if n != 0:
                left[pool] = None if n is None else n - 1
                found.append(node.name)
        return found


def pools_of(world: LoadedWorld, catalogue: Catalogue | None, at_s: float | None) -> KarpenterPools:
    """Those of the cluster's files and of the catalogue. Raises CatalogueError."""
    makers = world.node_makers
    of = {one.item.name: disruption_of(one.item, one.source) for one in makers if isinstance(one.item, NodePool)}
    for pool in () if catalogue is None else catalogue.pools:
        if pool.disruption is not None:
            of.setdefault(pool.name, pool.disruption)
    if not of:
        return KarpenterPools(at_s=at_s)
    claims = {one.item.status.node_name or one.item.name: one.item for one in makers if isinstance(one.item, NodeClaim)}
    touched = {name: _touched_s(world, name, claims.get(name)) for name in world.nodes}
    unready = {name for name, claim in claims.items() if claim.status.conditions and not _is_initialized(claim)}
    known = {name: seen_s for name, seen_s in touched.items() if seen_s is not None}
    return KarpenterPools(of, at_s, known, uninitialized=unready)


def _touched_s(world: LoadedWorld, name: str, claim: NodeClaim | None) -> float | None:
    """As its claim says; else when the youngest of its pods was started, or the node itself."""
    if claim is not None:
        said_s = _instant(claim.status.last_pod_event_time) or _condition_s(claim)
        if said_s is not None:
            return said_s
    pods = [info.pod for info in world.pods_on(name) if not belongs_to_its_node(info.pod)]
    times_s = [_instant(pod.status.start_time) or _instant(pod.metadata.creation_timestamp) for pod in pods]
    times_s.append(_instant(world.node(name).metadata.creation_timestamp))
    return max((time_s for time_s in times_s if time_s is not None), default=None)


def _condition_s(claim: NodeClaim) -> float | None:
    """Since when its node is initialized."""
    for one in claim.status.conditions or ():
        if one.type == _INITIALIZED and one.status == "True":
            return _instant(one.last_transition_time)
    return None


def _is_initialized(claim: NodeClaim) -> bool:
    return any(one.type == _INITIALIZED and one.status == "True" for one in claim.status.conditions or ())


def _instant(text: str | None) -> float | None:
    try:
        return instant_s(text) if text else None
    except InstantError:
        return None


def _name(node: Node) -> str:
    return (node.metadata.labels or {}).get(POOL, "")


def is_node_ready(node: Node) -> bool:
    """Where nothing is said, it is."""
    conditions = {one.type: one.status for one in node.status.conditions or ()}
    return conditions.get(READY, "True") == "True"
