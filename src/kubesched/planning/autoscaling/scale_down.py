"""Nodes that can go: what Karpenter or Cluster Autoscaler would remove now, by their rules and policies.

Next: `kubesched.planning.consolidate.policies`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.planning.catalogue import Catalogue, Option
from kubesched.planning.consolidate.consolidation import Consolidation, ConsolidationRequest
from kubesched.planning.consolidate.karpenter_pools import KarpenterPools
from kubesched.planning.consolidate.least_nodes import LeastNodes
from kubesched.planning.consolidate.policies import cluster_autoscaler, karpenter_once
from kubesched.planning.consolidate.state import ConsolidationState
from kubesched.simulator.trial import LoadedWorld


@dataclass(frozen=True, slots=True)
class Removal:
    """Nodes that go together; machines that come before, in their place."""

    nodes: tuple[str, ...]
    launch: tuple[Option, ...] = ()
    n_moves: int = 0

    @property
    def why(self) -> str:
        if self.launch:
            return "cheaper machines take their place" if len(self.nodes) > 1 else "a cheaper machine takes its place"
        return "its pods fit elsewhere" if self.n_moves else "empty"


def next_disruption(
    world: LoadedWorld,
    catalogue: Catalogue | None,
    pools: KarpenterPools,
    least: LeastNodes,
    *,
    spot_to_spot: bool = False,
) -> tuple[Removal | None, float | None]:
    """Karpenter's; and when to look again where only a NodePool's schedule or `consolidateAfter` stands in the way."""
    state = _searched(world, catalogue, "karpenter", karpenter_once, least, pools, spot_to_spot=spot_to_spot)
    if state is None:
        return None, None
    if not state.steps:
        later_s = (reason.until_s for _, reason in state.kept.values() if reason.until_s is not None)
        return None, min(later_s, default=None)
    steps = state.steps
    launch = tuple(one.option for step in steps for one in step.launch)
    evictions = sum(step.evictions for step in steps)
    return Removal(tuple(name for step in steps for name in step.delete), launch, evictions), None


def unneeded_nodes(world: LoadedWorld, catalogue: Catalogue | None, least: LeastNodes) -> list[Removal]:
    """Cluster Autoscaler's, in the order in which they would go, one by one."""
    state = _searched(world, catalogue, "cluster-autoscaler", cluster_autoscaler, least)
    steps = () if state is None else state.steps
    return [Removal((name,), (), step.evictions) for step in steps for name in step.delete]


def _searched(
    world: LoadedWorld,
    catalogue: Catalogue | None,
    rules: str,
    search: Callable[[ConsolidationState], object],
    least: LeastNodes,
    pools: KarpenterPools | None = None,
    *,
    spot_to_spot: bool = False,
) -> ConsolidationState | None:
    if not world.nodes:
        return None
    is_karpenter = rules == "karpenter"
    at_s = None if pools is None else pools.at_s
    request = ConsolidationRequest(
        policies=(rules,), rules=rules, replaces=is_karpenter, spot_to_spot=spot_to_spot, at_s=at_s
    )
    consolidation = Consolidation(world, catalogue, request, pools=pools, least=least)
    with consolidation.at_rest():
        state = consolidation.state()
        search(state)
        return state
