"""The cluster that is planned for: the pods to place, the nodes that are there, and the daemons of nodes to come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node, Pod, PodStatus
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import CSINode, VolumeAttachment
from kubesched.k8s.workloads.pod_states import belongs_to_its_node
from kubesched.planning.capacity import CapacityError, pod_of_shape
from kubesched.planning.catalogue import ZONE, Option
from kubesched.planning.daemons import daemons_of
from kubesched.planning.plan.model import PlanError
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.expansion import expand
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.trial import LoadedWorld

KEPT = "kubesched-keep"
"""The namespace of the pods that stand for room to keep."""
_KEPT_PRIORITY = -(10**9)
_KEEP = re.compile(r"(\d{1,6})x([^@]+)(?:@(.+))?")


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
    kept = [pod for number, text in enumerate(keep) for pod in _kept_pods(text, number)]
    expanded = expand(SimulationInput((*objects, *kept), given.steps), seed)
    world = LoadedWorld(expanded.objects, config, registry=registry, tie_break=tie_break, seed=seed)
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


def _kept_pods(text: str, number: int) -> list[Pod]:
    """`20x500m/1Gi`, or `20x500m/1Gi@a` in zone a, as pods."""
    form = f'keep "{text}" is not of the form 20x500m/1Gi or 20x500m/1Gi@ZONE'
    match = _KEEP.fullmatch(text)
    if match is None:
        raise PlanError(form)
    try:
        template = pod_of_shape(match[2])
    except CapacityError:
        raise PlanError(form) from None
    selector = {ZONE: match[3]} if match[3] else None
    spec = replace(template.spec, node_selector=selector, priority=_KEPT_PRIORITY, preemption_policy="Never")
    return [replace(template, metadata=ObjectMeta(f"keep-{number}-{n}", KEPT), spec=spec) for n in range(int(match[1]))]
