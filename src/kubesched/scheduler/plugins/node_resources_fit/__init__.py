"""NodeResourcesFit: does the node have what the pod requests, and how full would it be?

Here are its extension points, and the events that requeue a pod that did not fit: it is tried again when another one
releases resources that it requests, when a node is added or has more allocatable, or when a DeviceClass now backs one
of its resources. The rules are in `filtering`, and in `scoring` with its strategies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    Hint,
    NodeInfo,
    NodeTable,
    Objects,
    PodInfo,
    PreFilterResult,
    RegisteredEvent,
    Status,
    Verdicts,
)
from kubesched.framework.caching import Scope
from kubesched.framework.group_room import GroupRoom
from kubesched.framework.groups import CountedPlacements, GroupCycle, PlacementAssignments
from kubesched.framework.nodes import IntArray
from kubesched.framework.results import Scores
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import CPU, MEMORY, PODS, node_units, pod_resources
from kubesched.k8s.model.resource import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass
from kubesched.scheduler.config.plugin_args import NodeResourcesFitArgs
from kubesched.scheduler.plugins.node_resources_fit.filtering import IgnoredResources, PodDemands, demands_of
from kubesched.scheduler.plugins.node_resources_fit.group_bounds import bound_by_amounts
from kubesched.scheduler.plugins.node_resources_fit.scoring import (
    NodeScore,
    counted_placement_scores,
    node_score,
    placement_score,
    strategy_scores,
)
from kubesched.scheduler.plugins.resource_allocation import (
    ResourceUses,
    ScoredResource,
    asks_for_devices,
    devices_do_not_matter,
    scored_resources,
)

NO_FILTER_STATE = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'


@dataclass(frozen=True, slots=True)
class FitResources:
    """What counts for the pod in the score."""

    resources: tuple[ScoredResource, ...]


class NodeResourcesFit:
    """A node must have free what the pod asks for; by how full it would be, it is scored."""

    name: ClassVar[str] = "NodeResourcesFit"
    filter_scope: ClassVar[Scope] = Scope.AMOUNTS
    score_scope: ClassVar[Scope] = Scope.AMOUNTS

    def __init__(self, args: object, handle: Handle) -> None:
        self._args = args if isinstance(args, NodeResourcesFitArgs) else NodeResourcesFitArgs()
        self._ignored = IgnoredResources(
            frozenset(self._args.ignored_resources), frozenset(self._args.ignored_resource_groups)
        )
        self._handle = handle
        self._uses = ResourceUses(handle, nonzero=True)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        hints = FitHints(self._handle.objects)
        pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        classes = ActionType.ADD | ActionType.UPDATE
        return (
            RegisteredEvent(ClusterEvent(EventResource.POD, pods), hints.after_pod_change, by_signature=True),
            RegisteredEvent(ClusterEvent(EventResource.NODE, nodes), hints.after_node_change, by_signature=True),
            RegisteredEvent(
                ClusterEvent(EventResource.DEVICE_CLASS, classes), hints.after_device_class_change, by_signature=True
            ),
        )

    def pre_filter(self, cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> PreFilterResult:
        cycle.put(demands_of(pod.resources.wanted, self._handle.objects.device_classes, self._ignored))
        return PreFilterResult()

    def filter(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable) -> Verdicts:
        demands = cycle.find(PodDemands)
        if demands is None:
            return Verdicts.from_statuses([Status.error(NO_FILTER_STATE)] * len(nodes))
        return demands.verdicts(nodes)

    def filter_node(self, cycle: CycleState, _pod: PodInfo, node: NodeInfo) -> Status:
        demands = cycle.find(PodDemands)
        return Status.error(NO_FILTER_STATE) if demands is None else demands.status(node)

    def bound_group(self, room: GroupRoom) -> bool:
        return bound_by_amounts(room)

    def pre_score(self, cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> Status:
        """Always scores, also a pod that asks for nothing: with the defaults it asks for something."""
        cycle.put(self._resources_for(pod))
        return OK

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        found = cycle.find(FitResources) or self._resources_for(pod)
        return strategy_scores(self._args.scoring_strategy, self._uses.of(found.resources, nodes), len(nodes))

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        found = cycle.find(FitResources) or self._resources_for(pod)
        uses = self._uses.on_node(found.resources, node)
        if uses is None:
            return int(self.score(cycle, pod, self._handle.nodes.take(np.array([node.row])))[0])
        return self._score_of_node(uses)

    def score_placement(self, group: GroupCycle, proposed: PlacementAssignments) -> int:
        return placement_score(self._args.scoring_strategy.resources, self._handle.nodes, proposed)

    @property
    def prefers_more_pods(self) -> bool:
        """Not so where a resource counts only if it is asked for."""
        return all(spec.name in (CPU, MEMORY) for spec in self._args.scoring_strategy.resources)

    def score_counted(self, _group: GroupCycle, counted: CountedPlacements) -> IntArray:
        return counted_placement_scores(self._args.scoring_strategy.resources, self._handle.nodes, counted)

    def score_scope_for(self, pod: PodInfo) -> Scope:
        """Devices are counted node by node."""
        return Scope.ROW if asks_for_devices(pod, self._handle.objects.device_classes) else self.score_scope

    def objects_changed(self, _cycle: CycleState, pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
        return devices_do_not_matter(pod, changed)

    def _resources_for(self, pod: PodInfo) -> FitResources:
        specs = self._args.scoring_strategy.resources
        return FitResources(scored_resources(specs, pod.resources.container_requests))

    @cached_property
    def _score_of_node(self) -> NodeScore:
        return node_score(self._args.scoring_strategy)


# -- queueing hints ----------------------------------------------------------------------------------------------------


class FitHints:
    """Asks the cluster's device classes as they are when the event is looked at."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def after_pod_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if isinstance(new, Pod):
            return _queue_if(isinstance(old, Pod) and _is_scaled_down_for(pod, old, new))
        return _queue_if(isinstance(old, Pod) and bool(old.spec.node_name or old.status.nominated_node_name))

    def after_node_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(new, Node):
            return Hint.SKIP
        demands = demands_of(pod.resources.wanted, self._objects.device_classes)
        now = _allocatable(new)
        if not demands.fits_empty_node(now):
            return Hint.SKIP
        return _queue_if(not isinstance(old, Node) or _has_grown_for(demands, _allocatable(old), now))

    def after_device_class_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        if not isinstance(new, DeviceClass):
            return Hint.SKIP
        wanted, declared = pod.resources.wanted, new.spec.extended_resource_name
        if isinstance(old, DeviceClass):
            if (old.spec.extended_resource_name or "") == (declared or ""):
                return Hint.SKIP
        elif DEVICE_CLASS_RESOURCE_PREFIX + new.name in wanted:
            return Hint.QUEUE
        return _queue_if(declared is not None and declared in wanted)


def _is_scaled_down_for(pod: PodInfo, old: Pod, new: Pod) -> bool:
    """Whether the pod itself asks for less now, or a pod on a node gives back some of what this one asks for."""
    if (new.metadata.uid or new.pod_key) == pod.uid:
        return True
    if not new.spec.node_name:
        return False
    before, after = pod_resources(old).requests, pod_resources(new).requests
    return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in pod.resources.requests.items())


def _has_grown_for(demands: PodDemands, before: dict[str, int], now: dict[str, int]) -> bool:
    if now.get(PODS, 0) > before.get(PODS, 0):
        return True
    return any(
        now.get(demand.resource, 0) > before.get(demand.resource, 0)
        or (demand.has_devices and now.get(demand.resource, 0) <= 0)
        for demand in demands.demands
    )


def _allocatable(node: Node) -> dict[str, int]:
    return node_units(node.status.allocatable, f"node {node.name}: status.allocatable")


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP
