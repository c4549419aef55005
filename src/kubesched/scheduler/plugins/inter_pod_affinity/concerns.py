"""What the coming or going of a pod means to prepared state, worked out once for all pods with such labels and terms.

It depends on a pod's namespace and labels, which its label class stands for, and on its terms, which its affinity class
stands for. Following thousands of pods that come and go is then a lookup each.

Next: `filtering` and `scoring`, which follow pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from kubesched.framework.pod_info import PodInfo

Concern = TypeVar("Concern")

_MOST_KEPT = 1000
"""Where every pod has labels of its own, nothing is found again: then it must at least not pile up."""


class ByClass(Generic[Concern]):
    """Remembers the answers of `find`."""

    __slots__ = ("_find", "_known")

    def __init__(self, find: Callable[[PodInfo], Iterable[Concern]]) -> None:
        self._find = find
        self._known: dict[tuple[int, int], tuple[Concern, ...]] = {}

    def of(self, pod: PodInfo) -> tuple[Concern, ...]:
        signature = pod.signature
        key = (signature.label_class, signature.affinity_class)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            found = self._known[key] = tuple(self._find(pod))
        return found
