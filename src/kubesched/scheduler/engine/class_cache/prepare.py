"""Prepares a class from one of its pods: asks every plugin about every node, once."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.caching import Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.class_cache.claims import NO_CLAIMS, ClaimPlugins
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
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.profile import Profile, ScoreStep
from kubesched.scheduler.engine.score import run_pre_score

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
