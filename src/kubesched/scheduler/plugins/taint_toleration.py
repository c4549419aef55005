"""TaintToleration: keeps pods off nodes with taints they do not tolerate, and away from those they would rather avoid.

`NoSchedule` and `NoExecute` taints reject; every `PreferNoSchedule` taint that is not tolerated costs score.

Next: `kubesched.k8s.model.taints` for when a toleration covers a taint.
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
    RegisteredEvent,
    Status,
    Verdicts,
    default_normalize_score,
)
from kubesched.framework.caching import Scope
from kubesched.framework.results import Scores
from kubesched.k8s.model import taints
from kubesched.k8s.model.core import Node, Pod, Taint, Toleration

REASON = "node(s) had untolerated taint(s)"
NO_STATE = 'failed to read "PreScoreTaintToleration" from cycleState: not found'


@dataclass(frozen=True, slots=True)
class PreferredTolerations:
    """The tolerations that can cover a `PreferNoSchedule` taint."""

    tolerations: tuple[Toleration, ...]

    def n_untolerated(self, of_node: tuple[Taint, ...] | None) -> int:
        return sum(
            taint.effect == taints.PREFER_NO_SCHEDULE and not taints.is_tolerated(taint, self.tolerations)
            for taint in of_node or ()
        )


class TaintToleration:
    name: ClassVar[str] = "TaintToleration"
    filter_scope: ClassVar[Scope] = Scope.NODE
    score_scope: ClassVar[Scope] = Scope.NODE
    reads_objects: ClassVar[bool] = False

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but pod and nodes."""

    def filter(self, _cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        tolerations = pod.tolerations
        rejected = nodes.taints.where(lambda of_node: _is_untolerated(of_node, tolerations))
        return Verdicts.reject(rejected, REASON, unresolvable=True)

    def filter_node(self, _cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unresolvable(REASON) if _is_untolerated(node.node.spec.taints, pod.tolerations) else OK

    def pre_score(self, cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> Status:
        relevant = ("", taints.PREFER_NO_SCHEDULE)
        cycle.put(PreferredTolerations(tuple(t for t in pod.tolerations if t.effect in relevant)))
        return OK

    def score(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable) -> Scores:
        """How many taints the pod would rather avoid; fewer is better, which `normalize_score` turns round."""
        state = cycle.find(PreferredTolerations)
        if state is None:
            raise LookupError(NO_STATE)
        return nodes.taints.measure(state.n_untolerated)

    def score_node(self, cycle: CycleState, _pod: PodInfo, node: NodeInfo) -> int:
        state = cycle.find(PreferredTolerations)
        if state is None:
            raise LookupError(NO_STATE)
        return state.n_untolerated(node.node.spec.taints)

    def normalize_score(self, _cycle: CycleState, _pod: PodInfo, _nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=True)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        node_change = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration_change = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            RegisteredEvent(node_change, _hint_after_node_change, by_signature=True),
            RegisteredEvent(toleration_change, _hint_after_toleration_change, by_signature=True),
        )


def _is_untolerated(of_node: tuple[Taint, ...] | None, tolerations: tuple[Toleration, ...]) -> bool:
    return bool(of_node) and taints.find_untolerated(of_node or (), tolerations) is not None


def _hint_after_node_change(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """A node helps whose taints the pod tolerates from now on, or that came with such taints only."""
    if not isinstance(new, Node):
        return Hint.QUEUE
    was_closed = not isinstance(old, Node) or _is_untolerated(old.spec.taints, pod.tolerations)
    is_closed = _is_untolerated(new.spec.taints, pod.tolerations)
    return Hint.QUEUE if was_closed and not is_closed else Hint.SKIP


def _hint_after_toleration_change(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    """Only the pod's own tolerations count."""
    is_other_pod = isinstance(new, Pod) and (new.metadata.uid or new.pod_key) != pod.uid
    return Hint.SKIP if is_other_pod else Hint.QUEUE
