"""Which of many pods that wait a change may concern.

Thousands of pods may wait while thousands of others get their nodes, and most of those changes are about none of them:
a pod that is to be spread among those with its label has nothing to gain from one without it. Plugins can say what
their hints look for (`kubesched.framework.events.Subjects`). Where many pods wait, those that such a plugin rejected
are filed by that, and a change costs what it finds.

Whom a change finds, and in which order, is the same as without; but for pods that every hint would skip.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from kubesched.framework.events import Subjects
from kubesched.framework.pod_info import PodSignature
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.hints import ClusterChange
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo

MANY = 64
"""Of fewer pods, each is asked about."""
_MOST_KNOWN = 10_000

Pods = Mapping[PodKey, QueuedPodInfo]
_Asked = TypeVar("_Asked")


class _Any:
    """A subject that all changes have."""


_ANY = _Any()
_ONLY_ANY: Collection[Hashable] = (_ANY,)


class PodsBySubject:
    """The pods that one plugin rejected. Without `subjects`, every change concerns them all."""

    __slots__ = ("_by_subject", "_filed_under", "_known", "_n_filed", "places", "subjects")

    def __init__(self, subjects: Subjects | None, pods: Iterable[QueuedPodInfo]) -> None:
        self.subjects = subjects
        self.places: dict[PodKey, int] = {}
        """To look at: a pod that was filed later has the larger number."""
        self._n_filed = 0
        self._by_subject: dict[Hashable, dict[PodKey, QueuedPodInfo]] = {}
        self._filed_under: dict[PodKey, Collection[Hashable]] = {}
        self._known: dict[PodSignature, Collection[Hashable]] = {}
        for queued in pods:
            self.add(queued)

    def add(self, queued: QueuedPodInfo) -> None:
        self._n_filed += 1
        self.places[queued.key] = self._n_filed
        self._file(queued)

    def discard(self, key: PodKey) -> None:
        del self.places[key]
        self._unfile(key)

    def changed(self, queued: QueuedPodInfo) -> None:
        """It keeps its place."""
        self._unfile(queued.key)
        self._file(queued)

    def concerned(self, change: ClusterChange) -> Pods | None:
        """None if it may concern any of them."""
        found: dict[PodKey, QueuedPodInfo] = dict(self._by_subject.get(_ANY, ()))
        if self.subjects is not None:
            about = _asked(self.subjects.of_change, change.old, change.new)
            if about is None:
                return None
            for subject in about:
                if alike := self._by_subject.get(subject):
                    found.update(alike)
        return found

    def _file(self, queued: QueuedPodInfo) -> None:
        subjects = self._filed_under[queued.key] = self._subjects_of(queued)
        for subject in subjects:
            self._by_subject.setdefault(subject, {})[queued.key] = queued

    def _unfile(self, key: PodKey) -> None:
        for subject in self._filed_under.pop(key):
            alike = self._by_subject[subject]
            del alike[key]
            if not alike:
                del self._by_subject[subject]

    def _subjects_of(self, queued: QueuedPodInfo) -> Collection[Hashable]:
        if self.subjects is None or type(queued) is not QueuedPodInfo:  # an entry of several pods
            return _ONLY_ANY
        known = self._known.get(queued.info.signature)
        if known is None:
            found = _asked(self.subjects.of_pod, queued.info)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[queued.info.signature] = _ONLY_ANY if found is None else frozenset(found)
        return known


def concerned_by_subject(
    change: ClusterChange, by_plugin: Mapping[str, Pods], filed: dict[str, PodsBySubject]
) -> list[QueuedPodInfo] | None:
    """Of the pods that each plugin rejected, those that the change may concern; None if that has to be asked about each
    of them. What it files for the next change is added to `filed`."""
    subjects = change.match.subjects
    plugins = [plugin for plugin in change.match.plugins if plugin in by_plugin]
    n_narrowed = sum(len(by_plugin[plugin]) for plugin in plugins if plugin in subjects)
    n_others = sum(len(by_plugin[plugin]) for plugin in plugins if plugin not in subjects)
    if n_narrowed < max(MANY, n_others):
        return None
    pools = []
    for plugin in plugins:
        pool = filed.get(plugin)
        if pool is None or pool.subjects is not subjects.get(plugin):
            pool = filed[plugin] = PodsBySubject(subjects.get(plugin), by_plugin[plugin].values())
        pools.append(pool)
    found: dict[PodKey, QueuedPodInfo] = {}
    for pool in pools:
        concerned = pool.concerned(change)
        if concerned is None:
            return None
        found.update(concerned)
    if isinstance(change.changed, Pod):  # what it means for the changed pod itself, its hints have to say
        key = change.changed.pod_key
        found.update((key, by_plugin[plugin][key]) for plugin in plugins if key in by_plugin[plugin])
    if len(found) < 2:
        return list(found.values())

    def place(queued: QueuedPodInfo) -> tuple[int, int]:
        return next((number, pool.places[queued.key]) for number, pool in enumerate(pools) if queued.key in pool.places)

    return sorted(found.values(), key=place)


def _asked(of: Callable[..., _Asked | None], *about: object) -> _Asked | None:
    """A plugin that cannot say what it looks for is asked about everything."""
    try:
        return of(*about)
    except Exception:  # noqa: BLE001  as for hints: a broken plugin must not keep a pod from being tried
        return None
