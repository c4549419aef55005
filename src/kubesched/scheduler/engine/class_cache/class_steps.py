"""The plugins that a class asks, by what their answers depend on; and the questions that need nothing else.

Next: `pod_class`, which keeps their answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.filter import ask
from kubesched.scheduler.engine.profile import FilterStep, Profile, ScoreStep


@dataclass(frozen=True, slots=True)
class KeptScores:
    """Raw scores by position, of a plugin whose normalised scores depend on which nodes are feasible."""

    step: ScoreStep
    raw: IntArray


@dataclass(frozen=True, slots=True)
class LevelScore:
    """A score that is the same on all nodes, and stays the same when normalised on any of them: part of the sum."""

    step: ScoreStep
    raw: int
    weighted: int


@dataclass(slots=True)
class ClassSteps:
    """The plugins that have something to say about this pod, by what their answers depend on."""

    node_filters: list[FilterStep] = field(default_factory=list)
    amount_filters: list[FilterStep] = field(default_factory=list)
    row_filters: list[FilterStep] = field(default_factory=list)
    cluster_filters: list[FilterStep] = field(default_factory=list)
    fresh_filters: list[FilterStep] = field(default_factory=list)
    """Of plugins that do not say what they look at."""
    node_scores: list[ScoreStep] = field(default_factory=list)
    nodes_scores: list[ScoreStep] = field(default_factory=list)
    amount_scores: list[ScoreStep] = field(default_factory=list)
    row_scores: list[ScoreStep] = field(default_factory=list)
    cluster_scores: list[ScoreStep] = field(default_factory=list)
    fresh_scores: list[ScoreStep] = field(default_factory=list)


def objects_do_not_matter(
    profile: Profile, cycle: CycleState, pod: PodInfo, changed: Sequence[KubeObject] | None
) -> bool:
    """Whether what was prepared is as it was before these objects changed; not known without them."""
    followers = profile.object_followers
    if changed is None or followers is None:
        return False
    return all(follower.objects_changed(cycle, pod, changed) for follower in followers)


def passing(
    filters: Sequence[FilterStep], cycle: CycleState, pod: PodInfo, nodes: TableView, among: BoolArray
) -> BoolArray:
    """(n_nodes,) which of these pass the filters."""
    for step in filters:
        verdicts = ask(step, cycle, pod, nodes)
        if verdicts is not ACCEPT_ALL:
            among = among & ~verdicts.rejected
    return among


def weighted_sum(scores: Sequence[ScoreStep], cycle: CycleState, pod: PodInfo, nodes: TableView) -> IntArray:
    """(n_nodes,) of scores that need no normalising."""
    total: IntArray | None = None
    for step in scores:
        weighted = step.score(cycle, pod, nodes)
        if step.weight != 1:
            weighted = weighted * step.weight
        total = weighted if total is None else total + weighted
    return np.zeros(len(nodes), dtype=np.int64) if total is None else total
