"""NodeDeclaredFeatures: a pod goes only to nodes that declare every feature its spec needs.

Next: `kubesched.k8s.model.requests` for what a pod needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

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
    PodInfo,
    PreFilterResult,
    RegisteredEvent,
    Status,
    Verdicts,
)
from kubesched.framework.caching import Scope
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.requests import required_features

REASON = "node(s) didn't match Pod's required features"
NO_STATE = 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'


@dataclass(frozen=True, slots=True)
class RequiredFeatures:
    names: frozenset[str]

    def are_lacking(self, declared: frozenset[str] | None) -> bool:
        return not self.names <= (declared or frozenset())


class NodeDeclaredFeatures:
    name: ClassVar[str] = "NodeDeclaredFeatures"
    filter_scope: ClassVar[Scope] = Scope.NODE
    reads_objects: ClassVar[bool] = False

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but pod and nodes."""

    def pre_filter(self, cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> PreFilterResult:
        names = required_features(pod.spec)
        if not names:
            return PreFilterResult(SKIP)
        cycle.put(RequiredFeatures(names))
        return PreFilterResult()

    def filter(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable) -> Verdicts:
        required = cycle.find(RequiredFeatures)
        if required is None:
            return Verdicts.from_statuses([Status.error(NO_STATE)] * len(nodes))
        return Verdicts.reject(nodes.declared_features.where(required.are_lacking), REASON, unresolvable=True)

    def filter_node(self, cycle: CycleState, _pod: PodInfo, node: NodeInfo) -> Status:
        required = cycle.find(RequiredFeatures)
        if required is None:
            return Status.error(NO_STATE)
        declared = frozenset(node.node.status.declared_features or ())
        return Status.unresolvable(REASON) if required.are_lacking(declared) else OK

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        node_change = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE)
        pod_change = ClusterEvent(EventResource.POD, ActionType.UPDATE)
        return (
            RegisteredEvent(node_change, _hint_after_node_change),
            RegisteredEvent(pod_change, _hint_after_pod_update),
        )


def _hint_after_node_change(_pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """Any change to what the node declares is worth a try."""
    if not isinstance(old, Node) or not isinstance(new, Node):
        return Hint.QUEUE
    is_unchanged = (old.status.declared_features or ()) == (new.status.declared_features or ())
    return Hint.SKIP if is_unchanged else Hint.QUEUE


def _hint_after_pod_update(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """The pod itself must have come to need other features."""
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return Hint.QUEUE
    if (new.metadata.uid or new.pod_key) != pod.uid:
        return Hint.SKIP
    return Hint.SKIP if required_features(old.spec) == required_features(new.spec) else Hint.QUEUE
