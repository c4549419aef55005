"""Which constraints count a pod that comes to a node or leaves it: the same pods that `row_counts` counts.

Worked out once for all pods with the same namespace and labels, which their label class stands for.

Next: `filtering` and `scoring`, which follow pods that come and go.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint

_MOST_KEPT = 1000
"""Where every pod has labels of its own, nothing is found again: then it must at least not pile up."""


class CountedPods:
    """Pods of one namespace, as the constraints of a pod to be placed there see them."""

    __slots__ = ("_by_label_class", "_constraints", "_namespace")

    def __init__(self, namespace: str, constraints: Sequence[SpreadConstraint]) -> None:
        self._namespace = namespace
        self._constraints = constraints
        self._by_label_class: dict[int, tuple[int, ...]] = {}

    def by(self, pod: PodInfo) -> tuple[int, ...]:
        """The numbers of the constraints that count the pod."""
        known = self._by_label_class
        found = known.get(pod.signature.label_class)
        if found is None:
            if len(known) >= _MOST_KEPT:
                known.clear()
            found = known[pod.signature.label_class] = self._find(pod)
        return () if found and pod.pod.is_terminating else found

    def _find(self, pod: PodInfo) -> tuple[int, ...]:
        if pod.namespace != self._namespace:
            return ()
        return tuple(
            number
            for number, constraint in enumerate(self._constraints)
            if not constraint.selector.is_everything and constraint.selector.matches(pod.labels)
        )
