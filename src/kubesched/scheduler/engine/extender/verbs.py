"""What extenders are asked at each extension point, and what follows from their answers.

Filter: one after another, each about the nodes that the ones before left. Prioritize: all at once, scores from 0 to 10;
one that fails gives no score. Preempt: they may drop candidate nodes and change who is evicted there, one after
another. Bind: an extender that binds goes before the bind plugins.

Next: `cycle`, which asks; `http_extender` for what is said.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import MAX_NODE_SCORE, Scores
from kubesched.framework.status import OK, SKIP, Status
from kubesched.k8s.model.core import Node
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.extender import http_extender
from kubesched.scheduler.engine.extender.http_extender import (
    EXTENDER,
    Consultation,
    ExtenderError,
    HTTPExtender,
    body_of,
)
from kubesched.scheduler.engine.preemption import Candidate
from kubesched.scheduler.engine.score import PluginScores, ScoreOutcome


@dataclass(slots=True)
class ExtenderVerdicts:
    """The nodes that all extenders let pass, and why others did not."""

    names: Sequence[str]
    statuses: dict[str, Status] = field(default_factory=dict)
    """Reasons by node. A node may have been dropped without one."""
    was_asked: bool = False
    """Whether any extender was called: time has passed."""


def ask_to_filter(
    extenders: Sequence[HTTPExtender], cluster: Cluster, pod: PodInfo, names: Sequence[str]
) -> Consultation[ExtenderVerdicts]:
    """Raises ExtenderError when an extender fails that the pod cannot do without."""
    found = ExtenderVerdicts(names)
    for extender in extenders:
        verb = extender.config.filter_verb
        if not verb or not found.names:
            continue
        found.was_asked = True
        nodes = nodes_called(cluster, found.names)
        body = http_extender.node_args(pod.pod, nodes, names_only=extender.config.node_cache_capable)
        (answer,) = yield [extender.call(verb, body)]
        try:
            result = http_extender.filter_result(body_of(answer))
            found.names = _passed(extender, result, found.names)
        except ExtenderError:
            if extender.is_ignorable:
                continue
            raise
        found.statuses.update({name: Status.unschedulable(why) for name, why in result.failed.items()})
        found.statuses.update({name: Status.unresolvable(why) for name, why in result.failed_and_unresolvable.items()})
    return found


def nodes_called(cluster: Cluster, names: Sequence[str]) -> list[Node]:
    """Those that are still there."""
    table = cluster.table
    return [table.nodes[row] for name in names if (row := table.rows.get(name)) is not None]


def _passed(extender: HTTPExtender, result: http_extender.ExtenderFilterResult, sent: Sequence[str]) -> list[str]:
    if result.error:
        raise ExtenderError(result.error)
    known = set(sent)
    if extender.config.node_cache_capable and result.node_names is not None:
        for name in result.node_names:
            if name not in known:
                raise ExtenderError(
                    f'extender "{extender.name}" claims a filtered node "{name}" which is not found in the input '
                    "node list"
                )
        return list(dict.fromkeys(result.node_names))
    return [name for name in dict.fromkeys(result.nodes or ()) if name in known]


MAX_EXTENDER_PRIORITY = 10
_SCALE = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
_HIGHEST = 2**62


@dataclass(frozen=True, slots=True)
class ExtenderScores:
    """What one extender gave, by node."""

    extender: str
    weight: int
    by_node: dict[str, int]


def ask_to_prioritize(
    extenders: Sequence[HTTPExtender], cluster: Cluster, pod: PodInfo, names: Sequence[str]
) -> Consultation[list[ExtenderScores]]:
    asked = [extender for extender in extenders if extender.config.prioritize_verb]
    if not asked:
        return []
    nodes = nodes_called(cluster, names)
    answers = yield [
        extender.call(
            extender.config.prioritize_verb,
            http_extender.node_args(pod.pod, nodes, names_only=extender.config.node_cache_capable),
        )
        for extender in asked
    ]
    found = []
    for extender, answer in zip(asked, answers, strict=True):
        try:
            given = http_extender.host_priorities(body_of(answer))
        except ExtenderError:
            continue
        by_node: dict[str, int] = {}
        for name, score in given:
            by_node[name] = by_node.get(name, 0) + score
        found.append(ExtenderScores(extender.name, extender.config.weight, by_node))
    return found


def add_scores(scored: ScoreOutcome, given: Sequence[ExtenderScores]) -> ScoreOutcome:
    """The plugins' scores with the extenders' on top, brought to the plugins' scale."""
    by_plugin = [*scored.by_plugin, *(_as_scores(scores, scored.nodes.names) for scores in given)]
    total = scored.total + sum((scores.weighted for scores in by_plugin[len(scored.by_plugin) :]), start=np.int64(0))
    return ScoreOutcome(scored.nodes, by_plugin, total)


def _as_scores(given: ExtenderScores, names: Sequence[str]) -> PluginScores:
    raw: Scores = np.array([_within(given.by_node.get(name, 0)) for name in names], dtype=np.int64)
    factor = given.weight * _SCALE
    weighted: Scores = np.array([_within(given.by_node.get(name, 0) * factor) for name in names], dtype=np.int64)
    return PluginScores(given.extender, raw, weighted, factor)


def _within(score: int) -> int:
    return max(-_HIGHEST, min(score, _HIGHEST))


def ask_to_preempt(
    extenders: Sequence[HTTPExtender], cluster: Cluster, pod: PodInfo, candidates: Sequence[Candidate]
) -> Consultation[tuple[Candidate, ...] | Status]:
    """The candidates that are left, or an error."""
    left = tuple(candidates)
    victims = {victim.uid: victim for candidate in candidates for victim in candidate.victims}
    for extender in extenders:
        verb = extender.config.preempt_verb
        if not verb or not left:
            continue
        body = http_extender.preemption_args(pod.pod, left, names_only=extender.config.node_cache_capable)
        (answer,) = yield [extender.call(verb, body)]
        try:
            left = _candidates(extender, cluster, http_extender.preemption_result(body_of(answer)), victims)
        except ExtenderError as failure:
            if extender.is_ignorable:
                continue
            return Status.error(failure.message)
    return left


def _candidates(
    extender: HTTPExtender,
    cluster: Cluster,
    result: Mapping[str, http_extender.MetaVictims],
    proposed: Mapping[str, PodInfo],
) -> tuple[Candidate, ...]:
    """The extender's answer with pods for uids. `proposed` victims count even if they have gone since."""
    found = []
    for node_name, meta in sorted(result.items()):
        row = cluster.table.rows.get(node_name)
        if row is None:
            raise ExtenderError(f'nodeinfo not found for node name "{node_name}"')
        there = {info.uid: info for info in cluster.table.pods.on(row)}
        victims = []
        for uid in meta.uids:
            victim = there.get(uid) or _proposed_there(proposed.get(uid), node_name)
            if victim is None:
                raise ExtenderError(
                    f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node_name}, "
                    "but the pod is not found on that node"
                )
            victims.append(victim)
        if victims:
            found.append(Candidate(node_name, tuple(victims), meta.n_budget_violations))
        elif not extender.is_ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{node_name}"')
    return tuple(found)


def _proposed_there(victim: PodInfo | None, node_name: str) -> PodInfo | None:
    return victim if victim is not None and victim.spec.node_name == node_name else None


def bind_by_extender(
    extenders: Sequence[HTTPExtender], pod: PodInfo, node_name: str
) -> Generator[object, object, Status]:
    """SKIP leaves the pod to the bind plugins: no extender wants it, or one that can be done without failed."""
    for extender in extenders:
        verb = extender.config.bind_verb
        if not verb or not extender.is_interested(pod):
            continue
        answer = yield extender.call(verb, http_extender.binding_args(pod, node_name))
        try:
            error = http_extender.binding_error(body_of(answer))
        except ExtenderError as failure:
            error = failure.message
        if not error:
            return OK
        if not extender.is_ignorable:
            return Status.error(error).by(EXTENDER)
    return SKIP
