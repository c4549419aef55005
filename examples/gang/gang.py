"""Gang: pods of one gang are bound together or not at all.

A pod belongs to a gang by the label `gang`, and says by `gang-size` how many are needed. Each member gets its node as
any pod does; at permit it is held until the others have theirs. When the last one comes, all are let go. When one of
them is rejected, or has waited too long, all that wait are rejected with it, so that they do not hold resources that
others could use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    HeldPod,
    Hint,
    PermitResult,
    PodInfo,
    RegisteredEvent,
    Status,
)
from kubesched.k8s.model.core import Pod


@dataclass(frozen=True)
class GangArgs:
    gang_label: str = "gang"
    size_label: str = "gang-size"
    timeout_s: float = 60.0
    """How long a member is held for the others."""

    def __post_init__(self) -> None:
        if self.timeout_s <= 0:
            raise ValueError("timeoutS must be above 0")


class Gang:
    name = "Gang"
    args_type = GangArgs

    def __init__(self, args: GangArgs, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        size = self._size(pod)
        if size <= 1:
            return PermitResult(OK)
        waiting = self._waiting(pod)
        if len(waiting) + self._n_running(pod) + 1 < size:
            others = Status.wait(f"gang {pod.labels[self.args.gang_label]} waits for others")
            return PermitResult(others, self.args.timeout_s)
        for other in waiting:
            self.handle.allow(other.info.uid, self.name)
        return PermitResult(OK)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        return OK

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """The pod lost its node: the others of its gang do not wait for it any longer."""
        if self._size(pod) > 1:
            for other in self._waiting(pod):
                self.handle.reject(other.info.uid, self.name, "another pod of the gang was rejected")

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        """A gang that fell apart is tried again when a member comes, or another pod frees resources."""
        return [
            RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.ADD), self._is_member),
            RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.DELETE), self._is_other),
            RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)),
        ]

    def _is_member(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        return Hint.QUEUE if isinstance(new, Pod) and self._gang(new) == self._gang(pod.pod) else Hint.SKIP

    def _is_other(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """What the gang itself gave back is no reason to try again: the gang would hold it forever."""
        return Hint.SKIP if isinstance(old, Pod) and self._gang(old) == self._gang(pod.pod) else Hint.QUEUE

    def _gang(self, pod: Pod) -> tuple[str, str | None]:
        return pod.namespace, pod.labels.get(self.args.gang_label)

    def _size(self, pod: PodInfo) -> int:
        """A size that is no number counts as none: better alone than never."""
        text = pod.labels.get(self.args.size_label, "")
        return int(text) if self.args.gang_label in pod.labels and text.isascii() and text.isdigit() else 0

    def _waiting(self, pod: PodInfo) -> list[HeldPod]:
        held = self.handle.waiting_pods()
        return [h for h in held if h.info.uid != pod.uid and self._gang(h.info.pod) == self._gang(pod.pod)]

    def _n_running(self, pod: PodInfo) -> int:
        """Members that are bound: not those that wait, though they count on their nodes already."""
        ours = {held.info.uid for held in self.handle.waiting_pods()} | {pod.uid}
        nodes, gang = self.handle.nodes, self._gang(pod.pod)
        each = (info for row in range(len(nodes)) for info in nodes.pods.on(row))
        return sum(self._gang(info.pod) == gang for info in each if info.uid not in ours)
