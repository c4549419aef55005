"""NodeName: a pod that names its node goes there and nowhere else."""

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
    NodeInfo,
    NodeTable,
    PodInfo,
    RegisteredEvent,
    Status,
    Verdicts,
)
from kubesched.framework.caching import Scope

REASON = "node(s) didn't match the requested node name"


class NodeName:
    name: ClassVar[str] = "NodeName"
    filter_scope: ClassVar[Scope] = Scope.NODE
    reads_objects: ClassVar[bool] = False

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but pod and nodes."""

    def filter(self, _cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        wanted = pod.spec.node_name
        if not wanted:
            return ACCEPT_ALL
        return Verdicts.reject(~nodes.named(wanted), REASON, unresolvable=True)

    def filter_node(self, _cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        wanted = pod.spec.node_name
        return OK if not wanted or wanted == node.name else Status.unresolvable(REASON)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return (RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD)),)
