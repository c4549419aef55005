"""Preempt: extenders may drop candidate nodes and change who is evicted there, one extender after another.

Next: `kubesched.scheduler.engine.preemption`, which goes on with what they leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.extender import wire
from kubesched.scheduler.engine.extender.http_extender import Consultation, ExtenderError, HTTPExtender, body_of
from kubesched.scheduler.engine.preemption import Candidate


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
        body = wire.preemption_args(pod.pod, left, names_only=extender.config.node_cache_capable)
        (answer,) = yield [extender.call(verb, body)]
        try:
            left = _candidates(extender, cluster, wire.preemption_result(body_of(answer)), victims)
        except ExtenderError as failure:
            if extender.is_ignorable:
                continue
            return Status.error(failure.message)
    return left


def _candidates(
    extender: HTTPExtender,
    cluster: Cluster,
    result: Mapping[str, wire.MetaVictims],
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
