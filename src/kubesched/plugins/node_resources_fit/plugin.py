"""The plugin NodeResourcesFit: which stages it takes part in. Its rules are in `filtering` and `scoring`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kubesched.config.plugin_args import NodeResourcesFitArgs
from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    Cycle,
    EventResource,
    Handle,
    NodeTable,
    PodInfo,
    PreFilterResult,
    RegisteredEvent,
    Status,
    Verdicts,
)
from kubesched.framework.scores import Scores
from kubesched.plugins.node_resources_fit.filtering import IgnoredResources, PodDemands, demands_of
from kubesched.plugins.node_resources_fit.hints import FitHints
from kubesched.plugins.node_resources_fit.scoring import strategy_scores
from kubesched.plugins.resource_allocation import ResourceUses

NO_FILTER_STATE = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'


class NodeResourcesFit:
    """A node must have free what the pod asks for; by how full it would be, it is scored."""

    name: ClassVar[str] = "NodeResourcesFit"

    def __init__(self, args: object, handle: Handle) -> None:
        self._args = args if isinstance(args, NodeResourcesFitArgs) else NodeResourcesFitArgs()
        self._ignored = IgnoredResources(
            frozenset(self._args.ignored_resources), frozenset(self._args.ignored_resource_groups)
        )
        self._handle = handle
        self._uses = ResourceUses(handle)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        hints = FitHints(self._handle.objects)
        pods = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        classes = ActionType.ADD | ActionType.UPDATE
        return (
            RegisteredEvent(ClusterEvent(EventResource.POD, pods), hints.after_pod_change),
            RegisteredEvent(ClusterEvent(EventResource.NODE, nodes), hints.after_node_change),
            RegisteredEvent(ClusterEvent(EventResource.DEVICE_CLASS, classes), hints.after_device_class_change),
        )

    def pre_filter(self, cycle: Cycle, pod: PodInfo, _nodes: NodeTable) -> PreFilterResult:
        cycle.put(demands_of(pod.resources.wanted, self._handle.objects.device_classes, self._ignored))
        return PreFilterResult()

    def filter(self, cycle: Cycle, _pod: PodInfo, nodes: NodeTable) -> Verdicts:
        demands = cycle.find(PodDemands)
        if demands is None:
            return Verdicts.from_statuses([Status.error(NO_FILTER_STATE)] * len(nodes))
        return demands.verdicts(nodes)

    def pre_score(self, _cycle: Cycle, _pod: PodInfo, _nodes: NodeTable) -> Status:
        """Always scores, also a pod that asks for nothing: with the defaults it asks for something."""
        return OK

    def score(self, _cycle: Cycle, pod: PodInfo, nodes: NodeTable) -> Scores:
        strategy = self._args.scoring_strategy
        requests = pod.resources.container_requests
        uses = self._uses.of(strategy.resources, requests, nodes, nonzero=True)
        return strategy_scores(strategy, uses, len(nodes))
