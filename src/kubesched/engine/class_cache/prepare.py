"""Prepares a class from one of its pods: asks every plugin about every node, once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeGuard

import numpy as np

from kubesched.cluster import Cluster
from kubesched.engine.class_cache.pod_class import KeptScores, PodClass
from kubesched.engine.filter import ask
from kubesched.engine.prefilter import run_pre_filter
from kubesched.engine.profile import Profile
from kubesched.engine.score import run_pre_score
from kubesched.engine.steps import FilterStep, ScoreStep
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import IntArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.stages import Scope
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray


@dataclass(slots=True)
class _Sorted:
    """The plugins that have something to say about this pod, by what their answers depend on."""

    node_filters: list[FilterStep] = field(default_factory=list)
    row_filters: list[FilterStep] = field(default_factory=list)
    cluster_filters: list[FilterStep] = field(default_factory=list)
    node_scores: list[ScoreStep] = field(default_factory=list)
    row_scores: list[ScoreStep] = field(default_factory=list)
    cluster_scores: list[ScoreStep] = field(default_factory=list)


def prepare_class(cluster: Cluster, profile: Profile, pod: PodInfo) -> PodClass | None:
    """None if the pod is one whose answers cannot be kept, or fits nowhere now."""
    nodes = cluster.nodes
    cycle = Cycle()
    prefilter = run_pre_filter(profile, cycle, pod, nodes)
    if not prefilter.status.is_success or prefilter.node_names is not None:
        return None
    steps = _Sorted()
    if not _sort_filters(profile, cycle, pod, steps):
        return None
    n = len(nodes)
    fits_by_node = _passing(cluster, cycle, pod, steps.node_filters, np.ones(n, dtype=np.bool_))
    fits = _passing(cluster, cycle, pod, steps.row_filters, fits_by_node)
    if not fits.any():
        return None
    run_pre_score(profile, cycle, pod, nodes.take(fits))
    if not _sort_scores(profile, cycle, pod, steps):
        return None
    return _assemble(cluster, profile, cycle, pod, steps, fits_by_node, fits)


def _assemble(
    cluster: Cluster,
    profile: Profile,
    cycle: Cycle,
    pod: PodInfo,
    steps: _Sorted,
    fits_by_node: BoolArray,
    fits: BoolArray,
) -> PodClass:
    journal = cluster.table.journal
    order = cluster.rows_in_order
    position_of = np.empty_like(order)
    position_of[order] = np.arange(len(order))
    score_by_node, kept = _node_scores(cluster, cycle, pod, steps.node_scores)
    plain = [step for step in steps.row_scores if step.normalize is None]
    row_kept = [
        KeptScores(step, np.array(step.score(cycle, pod, cluster.nodes)))
        for step in steps.row_scores
        if step.normalize is not None
    ]
    score = score_by_node.copy()
    for step in plain:
        score += step.score(cycle, pod, cluster.nodes) * step.weight
    row_kept = [KeptScores(scores.step, scores.raw[order]) for scores in row_kept]
    kept = [KeptScores(scores.step, scores.raw[order]) for scores in kept]
    return PodClass(
        cluster=cluster,
        pod=pod,
        cycle=cycle,
        order=order,
        position_of=position_of,
        fits_by_node=fits_by_node[order],
        fits=fits[order],
        score_by_node=score_by_node[order],
        score=score[order],
        row_filters=steps.row_filters,
        row_scores=plain,
        cluster_filters=steps.cluster_filters,
        cluster_scores=steps.cluster_scores,
        kept_scores=[*kept, *row_kept],
        row_kept_scores=row_kept,
        followers=list(profile.followers.values()),
        nodes_version=journal.nodes_version,
        objects_version=journal.objects_version,
        position=journal.position,
    )


def _sort_filters(profile: Profile, cycle: Cycle, pod: PodInfo, steps: _Sorted) -> bool:
    """False if one of the plugins has to be asked anew for every pod: also one that has nothing to say about this one,
    because of the pods there are now perhaps."""
    for step in profile.filter:
        scope = step.scope_for(pod)
        if not _can_be_kept(scope, step.name, profile):
            return False
        if step.name in cycle.skip_filter:
            continue
        if scope is Scope.ROW and step.filter_node is None:
            return False
        kinds = {Scope.NODE: steps.node_filters, Scope.ROW: steps.row_filters, Scope.CLUSTER: steps.cluster_filters}
        kinds[scope].append(step)
    return True


def _sort_scores(profile: Profile, cycle: Cycle, pod: PodInfo, steps: _Sorted) -> bool:
    for step in profile.score:
        scope = step.scope_for(pod)
        if not _can_be_kept(scope, step.name, profile):
            return False
        if step.name in cycle.skip_score:
            continue
        if scope is Scope.ROW and step.score_node is None:
            return False
        kinds = {Scope.NODE: steps.node_scores, Scope.ROW: steps.row_scores, Scope.CLUSTER: steps.cluster_scores}
        kinds[scope].append(step)
    return True


def _can_be_kept(scope: Scope | None, plugin: str, profile: Profile) -> TypeGuard[Scope]:
    """Whether it is known when the plugin's answer goes stale."""
    return scope is not None and (scope is not Scope.CLUSTER or plugin in profile.followers)


def _passing(cluster: Cluster, cycle: Cycle, pod: PodInfo, filters: list[FilterStep], among: BoolArray) -> BoolArray:
    """(n,) by row: which of these nodes pass the filters."""
    passing = among.copy()
    for step in filters:
        verdicts = ask(step, cycle, pod, cluster.nodes)
        if verdicts is not ACCEPT_ALL:
            passing &= ~verdicts.rejected
    return passing


def _node_scores(
    cluster: Cluster, cycle: Cycle, pod: PodInfo, scores: list[ScoreStep]
) -> tuple[IntArray, list[KeptScores]]:
    """The sum of what does not depend on other nodes, and the raw scores of what does.

    Raw scores that are the same everywhere normalise to the same on any set of nodes: they are part of the sum.
    """
    nodes = cluster.nodes
    total = np.zeros(len(nodes), dtype=np.int64)
    kept = []
    for step in scores:
        raw = step.score(cycle, pod, nodes)
        if step.normalize is None:
            total += raw * step.weight
        elif (raw == raw[0]).all():
            total += step.normalize(cycle, pod, nodes, np.array(raw)) * step.weight
        else:
            kept.append(KeptScores(step, np.array(raw)))
    return total, kept
