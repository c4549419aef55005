"""The cluster that is planned for: the pods to place, the nodes that are there, and the daemons of nodes to come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node, Pod, PodStatus
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import CSINode, VolumeAttachment
from kubesched.k8s.workloads.pod_states import belongs_to_its_node
from kubesched.planning.catalogue import Option
from kubesched.planning.daemons import daemons_of
from kubesched.planning.headroom import headroom_pods
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.expansion import expand
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.trial import LoadedWorld


@dataclass(frozen=True, slots=True)
class PlannedWorld:
    world: LoadedWorld
    options: tuple[Option, ...]
    daemons: tuple[tuple[Pod, ...], ...]
    """The pods of daemons on a node of each option; they are for a node of another name."""
    refused: tuple[str, ...]
    n_kept: int
    """How many pods stand for room to keep."""


def planned_world(
    given: SimulationInput,
    options: Sequence[Option],
    config: KubeSchedulerConfiguration,
    *,
    registry: Registry | None = None,
    tie_break: str = "random",
    seed: int = 0,
    from_scratch: bool = False,
    keep: Sequence[str] = (),
) -> PlannedWorld:
    objects = list(given.objects)
    if from_scratch:
        objects = list(without_nodes(objects))
    kept = headroom_pods(keep, objects)
    expanded = expand(SimulationInput(tuple(objects), given.steps), seed)
    world = LoadedWorld((*expanded.objects, *kept), config, registry=registry, tie_break=tie_break, seed=seed)
    return PlannedWorld(world, tuple(options), daemons_of(objects, options, seed), expanded.refused, len(kept))


def without_nodes(objects: Iterable[KubeObject]) -> Iterable[KubeObject]:
    """Nobody has a node any more; what belongs to a node is gone with it."""
    for item in objects:
        if isinstance(item, Node | CSINode | VolumeAttachment):
            continue
        if isinstance(item, Pod):
            if item.is_terminal or belongs_to_its_node(item):
                continue
            metadata = replace(item.metadata, deletion_timestamp=None)
            item = replace(item, metadata=metadata, spec=replace(item.spec, node_name=""), status=PodStatus())
        yield item
