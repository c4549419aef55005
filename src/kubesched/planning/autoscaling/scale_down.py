"""Nodes that can go: what Karpenter or Cluster Autoscaler would remove now, by their rules and policies.

Next: `kubesched.planning.consolidate.policies`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from kubesched.planning.catalogue import Catalogue, Option
from kubesched.planning.consolidate.consolidation import Consolidation, ConsolidationRequest
from kubesched.planning.consolidate.policies import cluster_autoscaler, karpenter_once
from kubesched.planning.consolidate.state import ConsolidationState, ConsolidationStep
from kubesched.simulator.trial import LoadedWorld

KARPENTERS_BUDGET = 0.1
"""So many of the nodes may be disrupted at a time, rounded up, if a NodePool says nothing else."""


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


def next_disruption(world: LoadedWorld, catalogue: Catalogue | None, n_disrupted: int) -> Removal | None:
    """Karpenter's, while so many nodes are being disrupted."""
    most = ceil(len(world.nodes) * KARPENTERS_BUDGET) - n_disrupted
    if most < 1:
        return None
    steps = _searched(world, catalogue, "karpenter", karpenter_once, most)
    if not steps:
        return None
    launch = tuple(one.option for step in steps for one in step.launch)
    return Removal(tuple(name for step in steps for name in step.delete), launch, sum(step.evictions for step in steps))


def unneeded_nodes(world: LoadedWorld, catalogue: Catalogue | None) -> list[Removal]:
    """Cluster Autoscaler's, in the order in which they would go, one by one."""
    steps = _searched(world, catalogue, "cluster-autoscaler", cluster_autoscaler, None)
    return [Removal((name,), (), step.evictions) for step in steps for name in step.delete]


def _searched(
    world: LoadedWorld,
    catalogue: Catalogue | None,
    rules: str,
    search: Callable[[ConsolidationState], object],
    most: int | None,
) -> list[ConsolidationStep]:
    if not world.nodes:
        return []
    request = ConsolidationRequest(policies=(rules,), rules=rules, max_steps=most, replaces=rules == "karpenter")
    consolidation = Consolidation(world, catalogue, request)
    with consolidation.at_rest():
        state = consolidation.state()
        search(state)
        return state.steps
