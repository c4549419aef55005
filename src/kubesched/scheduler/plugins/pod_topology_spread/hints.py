"""Which changes can make a pod schedulable that PodTopologySpread rejected."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.events import Hint
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.selectors import Labels
from kubesched.scheduler.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    ConstraintError,
    ConstraintSource,
    SpreadConstraint,
)


class SpreadHints:
    """The plugin's hints. A pod whose constraints cannot be understood is always worth another try."""

    def __init__(self, source: ConstraintSource) -> None:
        self._source = source

    def after_pod_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        before = old if isinstance(old, Pod) else None
        after = new if isinstance(new, Pod) else None
        if any(changed is not None and not _is_involved(changed, pod) for changed in (before, after)):
            return Hint.SKIP
        try:
            constraints = self._source.of(pod.pod, DO_NOT_SCHEDULE)
        except ConstraintError:
            return Hint.QUEUE
        if before is not None and after is not None:
            return _after_update(pod, before, after, constraints)
        changed = after or before
        return _queue_if(changed is not None and any(c.selector.matches(changed.labels) for c in constraints))

    def after_node_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        before = old if isinstance(old, Node) else None
        after = new if isinstance(new, Node) else None
        try:
            constraints = self._source.of(pod.pod, DO_NOT_SCHEDULE)
        except ConstraintError:
            return Hint.QUEUE
        if before is not None and after is not None:
            return _queue_if(_moved(before, after, constraints))
        changed = after or before
        return _queue_if(changed is not None and _has_all_keys(changed.labels, constraints))


def _is_involved(changed: Pod, pod: PodInfo) -> bool:
    """Whether the changed pod can matter: the pod itself, or one of its namespace that has, or may get, a node."""
    if _is_same(changed, pod):
        return True
    placed = changed.spec.node_name or changed.status.nominated_node_name
    return bool(placed) and changed.namespace == pod.namespace


def _is_same(changed: Pod, pod: PodInfo) -> bool:
    return (changed.metadata.uid or changed.pod_key) == pod.uid


def _after_update(pod: PodInfo, before: Pod, after: Pod, constraints: Sequence[SpreadConstraint]) -> Hint:
    tolerates_other_taints = (before.spec.tolerations or ()) != (after.spec.tolerations or ())
    if _is_same(after, pod) and tolerates_other_taints and any(c.honors_taints for c in constraints):
        return Hint.QUEUE
    return _queue_if(any(c.selector.matches(before.labels) != c.selector.matches(after.labels) for c in constraints))


def _moved(before: Node, after: Node, constraints: Sequence[SpreadConstraint]) -> bool:
    """Whether the node came to count, ceased to count, changed its domain, or counts and has other taints."""
    counts = _has_all_keys(after.labels, constraints)
    if _has_all_keys(before.labels, constraints) != counts:
        return True
    keys = [constraint.topology_key for constraint in constraints]
    other_domain = any(before.labels.get(key) != after.labels.get(key) for key in keys)
    return counts and (other_domain or (before.spec.taints or ()) != (after.spec.taints or ()))


def _has_all_keys(labels: Labels, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)


def _queue_if(worth_it: bool) -> Hint:
    return Hint.QUEUE if worth_it else Hint.SKIP
