"""NodeUnschedulable: a cordoned node accepts only pods that tolerate `node.kubernetes.io/unschedulable`.

Next: `taint_toleration`, which looks at the taints that nodes really have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kubesched.framework import (
    ACCEPT_ALL,
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
    RegisteredEvent,
    Status,
    Verdicts,
)
from kubesched.framework.caching import Scope
from kubesched.k8s.model import taints
from kubesched.k8s.model.core import Node, Pod

REASON = "node(s) were unschedulable"


class NodeUnschedulable:
    name: ClassVar[str] = "NodeUnschedulable"
    filter_scope: ClassVar[Scope] = Scope.NODE
    reads_objects: ClassVar[bool] = False

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but pod and nodes."""

    def filter(self, _cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        cordoned = nodes.unschedulable
        if not cordoned.any() or taints.is_tolerated(taints.UNSCHEDULABLE_TAINT, pod.tolerations):
            return ACCEPT_ALL
        # The column itself is live; what was found must not change with it.
        return Verdicts.reject(cordoned.copy(), REASON, unresolvable=True)

    def filter_node(self, _cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if not node.node.spec.unschedulable or taints.is_tolerated(taints.UNSCHEDULABLE_TAINT, pod.tolerations):
            return OK
        return Status.unresolvable(REASON)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        node_change = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration_change = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            RegisteredEvent(node_change, _hint_after_node_change, by_signature=True),
            RegisteredEvent(toleration_change, _hint_after_toleration_change, by_signature=True),
        )


def _hint_after_node_change(_pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """A node helps that came uncordoned, or that was cordoned until now."""
    if not isinstance(new, Node):
        return Hint.QUEUE
    was_closed = not isinstance(old, Node) or old.spec.unschedulable
    return Hint.QUEUE if was_closed and not new.spec.unschedulable else Hint.SKIP


def _hint_after_toleration_change(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    """Tolerations are only ever added, so the pod had none that helps when it was rejected."""
    if not isinstance(new, Pod):
        return Hint.QUEUE
    if (new.metadata.uid or new.pod_key) != pod.uid:
        return Hint.SKIP
    tolerated = taints.is_tolerated(taints.UNSCHEDULABLE_TAINT, new.spec.tolerations or ())
    return Hint.QUEUE if tolerated else Hint.SKIP
