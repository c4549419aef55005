"""Classes by the signature of their pods; when there are too many, the one used longest ago is evicted.

A class that is not there yet is prepared from one of its pods (`prepare_class`): every plugin is asked about every
node, once.

Next: `pod_class`, which keeps what they answered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.caching import Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.class_cache.claims import NO_CLAIMS, ClaimPlugins, QuestionBook, has_claims
from kubesched.scheduler.engine.class_cache.failed_class import FailedClass, failed_class
from kubesched.scheduler.engine.class_cache.layers import (
    KeptScores,
    Layers,
    LevelScore,
    following,
    needs_reserve,
    passing,
    weighted_sum,
)
from kubesched.scheduler.engine.class_cache.pod_class import PodClass
from kubesched.scheduler.engine.filter import FilterOutcome
from kubesched.scheduler.engine.prefilter import PreFilterOutcome, run_pre_filter
from kubesched.scheduler.engine.profile import Profile, ScoreStep
from kubesched.scheduler.engine.score import run_pre_score

Kept = TypeVar("Kept")


class RecentlyUsed(Generic[Kept]):
    """What was used last, at most so many."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: OrderedDict[Hashable, Kept] = OrderedDict()
        """In the order of their last use."""
        self._last: tuple[Hashable, Kept] | None = None
        """The one used last: pods of a workload often come one after another."""

    def __len__(self) -> int:
        return len(self.kept)

    def use(self, key: Hashable) -> Kept | None:
        """What is kept for this signature (or with what claims ask), which counts as used now."""
        last = self._last
        if last is not None and last[0] is key:
            return last[1]
        found = self.kept.get(key)
        if found is not None:
            self.kept.move_to_end(key)
            self._last = key, found
        return found

    def keep(self, key: Hashable, value: Kept) -> None:
        """Counts as used now."""
        self.kept[key] = value
        self.kept.move_to_end(key)
        self._last = key, value
        while len(self.kept) > self.most:
            self.kept.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        self.kept.pop(key, None)
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
        if not self._failed.kept or self._cluster.nominations.has(pod):
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

    def find(self, pod: PodInfo, *, at_once: bool = False) -> PodClass | None:
        """The pod's class, up to date; None if its answers cannot be kept. What it says does not take into account that
        the pod may be pinned to a node. `at_once`: more of its kind are known to come."""
        signature = pod.signature
        found = self._classes.use(signature)
        if found is not None:
            if found.catch_up():
                return found
            self._classes.drop(signature)
        elif has_claims(pod):
            return self._find_with_claims(pod)
        elif not at_once and signature not in self._seen:
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


Number = TypeVar("Number", bound=np.generic)

_BY_ROW = (Scope.AMOUNTS, Scope.ROW)
"""What is asked again for single rows, and so must be answered for a single node."""


def prepare_class(
    cluster: Cluster, profile: Profile, pod: PodInfo, claims: ClaimPlugins = NO_CLAIMS
) -> PodClass | None:
    """None if the pod is one whose answers cannot be kept, or fits nowhere now."""
    if not _can_be_asked_alone(profile, pod):
        return None
    nodes = cluster.nodes
    cycle = CycleState()
    prefilter = run_pre_filter(profile, cycle, pod, nodes)
    if not prefilter.status.is_success or prefilter.node_names is not None:
        return None
    for plugin in claims.answering:
        plugin.generalize(cycle, pod)
    layers = Layers()
    if not _sort_filters(profile, cycle, pod, layers, claims):
        return None
    fits_by_node = passing(layers.node.filters, cycle, pod, nodes, np.ones(len(nodes), dtype=np.bool_))
    fits = passing((*layers.amounts.filters, *layers.row.filters), cycle, pod, nodes, fits_by_node)
    if not fits.any():
        return None
    run_pre_score(profile, cycle, pod, nodes.take(fits))
    if not _sort_scores(profile, cycle, pod, layers, claims):
        return None
    capacity = cluster.table.capacity
    layers.node.fits = _column(fits_by_node, capacity)
    return PodClass(
        cluster=cluster,
        profile=profile,
        pod=pod,
        cycle=cycle,
        layers=layers,
        claims=claims,
        needs_reserve=needs_reserve(profile, pod),
        followers=following(profile.followers.values(), cycle, pod),
        places=cluster.table.journal.places,
        fits=_column(fits, capacity),
        score=_fill_scores(layers, cycle, pod, nodes, capacity),
    )


def _fill_scores(layers: Layers, cycle: CycleState, pod: PodInfo, nodes: TableView, capacity: int) -> IntArray:
    """Fills the layers' columns; gives the sum of all of them."""
    node, row = layers.node, layers.row
    node.level, node.kept = _normalized_scores(node.scores, cycle, pod, nodes, capacity)
    row.kept = [
        KeptScores(step, _column(step.score(cycle, pod, nodes), capacity))
        for step in row.scores
        if step.normalize is not None
    ]
    node.scores, row.scores = _plain(node.scores), _plain(row.scores)
    score = weighted_sum(node.scores, cycle, pod, nodes) + sum(level.weighted for level in node.level)
    node.score = _column(score, capacity)
    added = layers.nodes.refresh(cycle, pod, nodes, capacity)
    if added is not None:
        score = score + added
    return _column(score + weighted_sum((*layers.amounts.scores, *row.scores), cycle, pod, nodes), capacity)


def _can_be_asked_alone(profile: Profile, pod: PodInfo) -> bool:
    """Whether those that do not say what they look at prepare nothing, so that they can be asked about the next pod
    without that."""
    preparing = {plugin.name for plugin in profile.pre_filter} | {plugin.name for plugin in profile.pre_score}
    return all(step.name not in preparing or step.scope_for(pod) is not None for step in profile.filter) and all(
        step.name not in preparing or step.scope_for(pod) is not None for step in profile.score
    )


def _sort_filters(profile: Profile, cycle: CycleState, pod: PodInfo, layers: Layers, claims: ClaimPlugins) -> bool:
    """False if it is not known when the answer of one of the plugins goes stale: also of one that has nothing to say
    about this pod, because of the pods there are now perhaps."""
    kinds = {
        Scope.NODE: layers.node.filters,
        Scope.AMOUNTS: layers.amounts.filters,
        Scope.ROW: layers.row.filters,
        Scope.CLUSTER: layers.cluster.filters,
    }
    for step in profile.filter:
        question = claims.questions.get(step.name)
        if question is None and step.name in claims.names:
            layers.own.filters.append(step)
            continue
        scope = step.scope_for(pod) if question is None else question.filter_scope
        if scope is None:
            layers.fresh.filters.append(step)
            continue
        if not _can_be_kept(scope, step.name, profile) or scope not in kinds:
            return False
        if step.name in cycle.skip_filter:
            continue
        if scope in _BY_ROW and step.filter_node is None:
            return False
        kinds[scope].append(step)
    return True


def _sort_scores(profile: Profile, cycle: CycleState, pod: PodInfo, layers: Layers, claims: ClaimPlugins) -> bool:
    kinds = {
        Scope.NODE: layers.node.scores,
        Scope.NODES: layers.nodes.scores,
        Scope.AMOUNTS: layers.amounts.scores,
        Scope.ROW: layers.row.scores,
        Scope.CLUSTER: layers.cluster.scores,
    }
    for step in profile.score:
        question = claims.questions.get(step.name)
        if question is None and step.name in claims.names:
            layers.own.scores.append(step)
            continue
        scope = step.scope_for(pod) if question is None else question.score_scope
        if scope is None:
            layers.fresh.scores.append(step)
            continue
        if not _can_be_kept(scope, step.name, profile):
            return False
        if step.name in cycle.skip_score:
            continue
        if scope in _BY_ROW and step.score_node is None:
            return False
        if scope in (Scope.NODES, Scope.AMOUNTS) and step.normalize is not None:
            return False
        kinds[scope].append(step)
    return True


def _can_be_kept(scope: Scope, plugin: str, profile: Profile) -> bool:
    """Whether it is known when the plugin's answer goes stale."""
    return scope is not Scope.CLUSTER or plugin in profile.followers


def _column(values: NDArray[Number], capacity: int) -> NDArray[Number]:
    """A copy with room for rows to come."""
    column = np.zeros(capacity, dtype=values.dtype)
    column[: len(values)] = values
    return column


def _plain(scores: list[ScoreStep]) -> list[ScoreStep]:
    return [step for step in scores if step.normalize is None]


def _normalized_scores(
    scores: list[ScoreStep], cycle: CycleState, pod: PodInfo, nodes: TableView, capacity: int
) -> tuple[list[LevelScore], list[KeptScores]]:
    """Of the scores that are normalised, those whose raw scores are the same everywhere: they normalise to the same on
    any set of nodes; and the raw scores of the others."""
    level: list[LevelScore] = []
    kept: list[KeptScores] = []
    for step in scores:
        if step.normalize is None:
            continue
        raw = step.score(cycle, pod, nodes)
        if (raw == raw[0]).all():
            weighted = step.normalize(cycle, pod, nodes, np.array(raw))[0] * step.weight
            level.append(LevelScore(step, int(raw[0]), int(weighted)))
        else:
            kept.append(KeptScores(step, _column(raw, capacity)))
    return level, kept
