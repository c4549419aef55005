"""Pods that wait for something to change: rejected ones, and gated ones that were never tried.

They are filed under each plugin that rejected them, so that a change costs what it may move, not what there is. Those
that are held back until they are called are not filed before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo


class UnschedulablePods:
    """In the order in which they came here."""

    __slots__ = ("_by_plugin", "_filed_under", "_pods", "oldest_s")

    def __init__(self) -> None:
        self._pods: dict[PodKey, QueuedPodInfo] = {}
        self._by_plugin: dict[str, dict[PodKey, QueuedPodInfo]] = {}
        self._filed_under: dict[PodKey, frozenset[str]] = {}
        self.oldest_s = inf
        """No pod has waited since earlier than this."""

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: PodKey) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._pods.values())

    def put(self, queued: QueuedPodInfo) -> bool:
        """Files it under the plugins that reject it now. Whether it was not here before."""
        key = queued.key
        is_new = key not in self._pods
        if not is_new:
            self._unfile(key)
        self._pods[key] = queued
        if queued.hold is None or not queued.hold.ends_by_call:
            self._file(queued)
        self.oldest_s = min(self.oldest_s, queued.parked_since_s)
        return is_new

    def remove(self, key: PodKey) -> None:
        if self._pods.pop(key, None) is not None:
            self._unfile(key)
            if not self._pods:
                self.oldest_s = inf

    def call(self, key: PodKey) -> None:
        """The pod is held back no more, perhaps: changes concern it again."""
        queued = self._pods.get(key)
        if queued is not None and key not in self._filed_under:
            self._file(queued)

    def rejected_by(self, plugins: Sequence[str]) -> list[QueuedPodInfo]:
        """Those that any of the plugins rejected, each once."""
        groups = [group for plugin in plugins if (group := self._by_plugin.get(plugin))]
        if not groups:
            return []
        if len(groups) == 1:
            return list(groups[0].values())
        merged: dict[PodKey, QueuedPodInfo] = {}
        for group in groups:
            merged.update(group)
        return list(merged.values())

    def waiting_longer_than(self, limit_s: float, now_s: float) -> list[QueuedPodInfo]:
        """Also finds out anew since when the oldest has waited."""
        self.oldest_s = min((queued.parked_since_s for queued in self._pods.values()), default=inf)
        if now_s - self.oldest_s <= limit_s:
            return []
        return [queued for queued in self._pods.values() if now_s - queued.parked_since_s > limit_s]

    def _file(self, queued: QueuedPodInfo) -> None:
        plugins = self._filed_under[queued.key] = queued.rejectors
        for plugin in plugins:
            self._by_plugin.setdefault(plugin, {})[queued.key] = queued

    def _unfile(self, key: PodKey) -> None:
        for plugin in self._filed_under.pop(key, ()):
            group = self._by_plugin[plugin]
            del group[key]
            if not group:
                del self._by_plugin[plugin]
