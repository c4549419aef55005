"""A cluster that can spare any one zone, or node: who would have no node after its loss (`--survive`, `n-1:zone`).

The lost nodes are deleted, as clouds do, and controllers recreate their pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kubesched.k8s.model.meta import PodKey
from kubesched.planning.headroom import SPARE_ONE, HeadroomError
from kubesched.planning.node_groups import NODE, grouped
from kubesched.simulator.settling import Settled
from kubesched.simulator.trial import LoadedWorld, WorldTrial

SPARED = ("zone", NODE)


@dataclass(frozen=True, slots=True)
class LostGroup:
    """What the loss of a zone or a node comes to."""

    name: str
    """`zone a`."""
    left: dict[PodKey, str]
    """Who has no node then, each with kube-scheduler's message."""


def spared_by(keep: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """`zone` or `node` of which any one is to be spared, empty if none; and the other things to keep."""
    asked = [text.removeprefix(SPARE_ONE) for text in keep if text.startswith(SPARE_ONE)]
    for by in asked:
        if by not in SPARED:
            raise HeadroomError(f'keep "{SPARE_ONE}{by}": {" or ".join(SPARE_ONE + one for one in SPARED)} is expected')
    if len(set(asked)) > 1:
        raise HeadroomError("keep: one of n-1:zone and n-1:node can be asked for")
    return asked[0] if asked else "", tuple(text for text in keep if not text.startswith(SPARE_ONE))


def groups_to_lose(world: LoadedWorld, by: str) -> dict[str, list[str]]:
    """Raises NoSuchGroupError."""
    if by == NODE:
        return {f"{NODE} {name}": [name] for name in world.nodes}
    groups = grouped(world.cluster.table.nodes, by)
    return {f"{by} {name}": [node.name for node in nodes] for name, nodes in groups.items()}


def losses(
    trial: WorldTrial, by: str, left_of: Callable[[Settled], dict[PodKey, str]], watch: Callable[[], None]
) -> Iterator[LostGroup]:
    """Of each zone or node, one after another, each from the trial as it is. `left_of` says who has no node; `watch` is
    called before each."""
    for name, failed in groups_to_lose(trial.world, by).items():
        watch()
        with trial.trial() as inner:
            for node_name in failed:
                inner.delete_node(node_name)
            left = left_of(inner.settle())
        yield LostGroup(name, left)


def homeless(world: LoadedWorld, settled: Settled, preempted: Iterable[PodKey]) -> dict[PodKey, str]:
    """Those that wait, and those that were preempted and that nobody makes anew."""
    left = {one.pod: one.message for one in settled.pending}
    for key in preempted:
        if world.cluster.find_pod(key) is None:
            left[key] = "preempted by another pod, and no controller recreates it"
    return left
