"""A bounded store by signature: when it is full, what was used longest ago makes room."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from kubesched.framework.pod_info import PodSignature

Kept = TypeVar("Kept")


class RecentlyUsed(Generic[Kept]):
    """What was used last, at most so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[PodSignature, Kept] = OrderedDict()
        """In the order of their last use."""

    def __len__(self) -> int:
        return len(self._kept)

    def use(self, signature: PodSignature) -> Kept | None:
        """What is kept for this signature, which counts as used now."""
        found = self._kept.get(signature)
        if found is not None:
            self._kept.move_to_end(signature)
        return found

    def keep(self, signature: PodSignature, value: Kept) -> None:
        """Counts as used now."""
        self._kept[signature] = value
        self._kept.move_to_end(signature)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def drop(self, signature: PodSignature) -> None:
        self._kept.pop(signature, None)
