"""Classes by the signature of their pods; when there are too many, the one used longest ago is evicted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import WeakSet

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.class_cache.claims import QuestionBook, has_claims
from kubesched.scheduler.engine.class_cache.failed_class import FailedClass, failed_class
from kubesched.scheduler.engine.class_cache.pod_class import PodClass
from kubesched.scheduler.engine.class_cache.prepare import prepare_class
from kubesched.scheduler.engine.filter import FilterOutcome
from kubesched.scheduler.engine.prefilter import PreFilterOutcome
from kubesched.scheduler.engine.profile import Profile

Kept = TypeVar("Kept")


class RecentlyUsed(Generic[Kept]):
    """What was used last, at most so many."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        """In the order of their last use."""
        self._last: tuple[Hashable, Kept] | None = None
        """The one used last: pods of a workload often come one after another."""

    def __len__(self) -> int:
        return len(self._kept)

    def use(self, key: Hashable) -> Kept | None:
        """What is kept for this signature (or with what claims ask), which counts as used now."""
        last = self._last
        if last is not None and last[0] is key:
            return last[1]
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            self._last = key, found
        return found

    def keep(self, key: Hashable, value: Kept) -> None:
        """Counts as used now."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        self._last = key, value
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        self._kept.pop(key, None)
        self._last = None


_MOST_CLASSES = 512
_FEWEST_CLASSES = 64
_MOST_CLASS_ROWS = 16_000_000
"""As many classes as there are rows for, within these limits: a class takes about 35 bytes for each node."""
_MOST_FAILED = 512
_FEWEST_FAILED = 64
_MOST_FAILED_ROWS = 4_000_000
"""Of classes that fit nowhere, as many as there are rows for, within these limits: with more kinds of pods waiting than
are kept, each would be gone before its next attempt."""


class ClassCache:
    """The classes used last: when there are too many, the one used longest ago is evicted."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self._cluster = cluster
        self._profile = profile
        self._classes: RecentlyUsed[PodClass] = RecentlyUsed(_MOST_CLASSES)
        self._failed: RecentlyUsed[FailedClass] = RecentlyUsed(_MOST_FAILED)
        self._seen: WeakSet[PodSignature] = WeakSet()
        self._questions = QuestionBook(profile)

    def find_failed(self, pod: PodInfo) -> FailedClass | None:
        """The pod's class as one that fits nowhere, but for open rows, up to date; None if that is not known."""
        if not self._failed or self._cluster.nominations.has(pod):
            return None
        return self.find_failed_signature(pod)

    def find_failed_signature(self, pod: PodInfo) -> FailedClass | None:
        """The same, for pods with this signature that are not nominated to a node, as this one perhaps is."""
        found = self._failed.use(pod.signature)
        if found is None or pod.pin:
            return None
        if found.catch_up():
            return found
        self._failed.drop(pod.signature)
        return None

    def keep_failed(
        self, pod: PodInfo, cycle: CycleState, prefilter: PreFilterOutcome, outcome: FilterOutcome
    ) -> FailedClass | None:
        """A search found no node: what it found may serve the next pod of the class. None if it cannot be kept."""
        if pod.pin or has_claims(pod) or pod.signature not in self._seen:
            return None
        if self._cluster.nominations.has(pod):
            return None
        kept = failed_class(self._cluster, self._profile, pod, cycle, prefilter, outcome)
        if kept is not None:
            n_rows = max(len(self._cluster.nodes), 1)
            self._failed.most = min(_MOST_FAILED, max(_FEWEST_FAILED, _MOST_FAILED_ROWS // n_rows))
            self._failed.keep(pod.signature, kept)
        return kept

    def forget(self, pod: PodInfo) -> None:
        """What is kept of the pod's class cannot be relied on."""
        self._failed.drop(pod.signature)
        if has_claims(pod):
            self._classes.drop(self._questions.questions_of(pod)[0])
        else:
            self._classes.drop(pod.signature)

    def find(self, pod: PodInfo) -> PodClass | None:
        """The pod's class, up to date; None if its answers cannot be kept. What it says does not take into account that
        the pod may be pinned to a node."""
        signature = pod.signature
        found = self._classes.use(signature)
        if found is not None:
            if found.catch_up():
                return found
            self._classes.drop(signature)
        elif has_claims(pod):
            return self._find_with_claims(pod)
        elif signature not in self._seen:
            self._seen.add(signature)  # the first of its kind, and perhaps the only one: not worth preparing for
            return None
        made = prepare_class(self._cluster, self._profile, PodInfo(signature.pod, signature) if pod.pin else pod)
        if made is not None:
            self._keep(signature, made)
        return made

    def _keep(self, key: Hashable, made: PodClass) -> None:
        n_rows = max(len(self._cluster.nodes), 1)
        self._classes.most = min(_MOST_CLASSES, max(_FEWEST_CLASSES, _MOST_CLASS_ROWS // n_rows))
        self._classes.keep(key, made)

    def _find_with_claims(self, pod: PodInfo) -> PodClass | None:
        """The class of pods that are like this one and whose claims ask the same."""
        if pod.pin:
            return None
        signature = pod.signature.without_claims
        key, questions = self._questions.questions_of(pod)
        found = self._classes.use(key)
        if found is not None:
            if found.catch_up():
                return found
            self._classes.drop(key)
        elif signature not in self._seen:
            self._seen.add(signature)
            return None
        made = prepare_class(self._cluster, self._profile, pod, self._questions.plugins_for(pod, questions))
        if made is not None:
            self._keep(key, made)
        return made
