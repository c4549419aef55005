"""The way in: a cluster's objects, a pod and a configuration, and out comes an explanation.

`Explanation` has the decision; everything else about it (`failures`, `numbers`, `changes`, the text) is worked out when
it is first asked for.

A scheduler of an older version answers the same questions as of then. Its `to_dict()` has the form of the older test
vectors (tests/vectors/older/FORMAT.md): only what such a scheduler knew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from kubesched.explanation.answer import COMPLETE_SEARCH, Explanation
from kubesched.explanation.record import Record, preemption_record, scored_records, status_record
from kubesched.framework.handle import Registry
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod, PriorityClass, RuntimeClass
from kubesched.k8s.model.manifests import collector_paused
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import AmountError
from kubesched.k8s.workloads.admission import AdmissionError, with_defaults, with_priority, with_runtime_class
from kubesched.older.config import Emulation, emulate
from kubesched.older.config.emulated import RefusedConfigurationError
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import Generation
from kubesched.older.engine.build import build_older_schedulers
from kubesched.older.engine.scheduler import OlderScheduler, RejectionsByNode
from kubesched.scheduler import config as configuration
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.scheduling_gates import SchedulingGates

__all__ = [
    "COMPLETE_SEARCH",
    "Explanation",
    "NotExplainableError",
    "build_cluster",
    "explain_as_of_then",
    "explain_emulated",
    "explain_pending",
    "explain_pod",
    "pod_key",
]

_NAMESAKES_SHOWN = 3


class NotExplainableError(KubeschedError, ValueError):
    """There is nothing to explain: the pod is not there, or has finished."""


def explain_emulated(
    found: manifests.Manifests, pod: str, given: GivenConfiguration, generation: Generation
) -> Explanation:
    """As the scheduler of a version would have decided. A configuration that it refused is explained as that."""
    cluster, info, placed_on = _cluster_and_pod(found, pod)
    try:
        emulation = given.as_of(generation)
    except RefusedConfigurationError as refused:
        return explain_refusal(cluster, info, generation, refused)
    return explain_as_of_then(cluster, info, emulation, placed_on)


def explain_pod(
    found: manifests.Manifests,
    pod: str,
    config: configuration.KubeSchedulerConfiguration,
    source: str = "",
    registry: Registry | None = None,
) -> Explanation:
    """`registry` has the plugins, if it is not the in-tree ones alone."""
    cluster, info, placed_on = _cluster_and_pod(found, pod)
    scheduler = _scheduler_for(cluster, info, config, source, registry)
    return explain_pending(cluster, scheduler, info, config, placed_on=placed_on)


def _cluster_and_pod(found: manifests.Manifests, pod: str) -> tuple[Cluster, PodInfo, str]:
    """The cluster, the pod as it waits, and the node that it is on, if it does not wait."""
    cluster = build_cluster(found)
    key = pod_key(pod)
    info = cluster.pending.get(key)
    if info is not None:
        return cluster, info, ""
    placed = cluster.find_pod(key)
    if placed is None:
        raise NotExplainableError(_why_not(found, key))
    return cluster, taken_off(cluster, placed), placed.spec.node_name


def taken_off(cluster: Cluster, placed: PodInfo) -> PodInfo:
    """The pod as if it had never got its node, and waited; the cluster without it there."""
    waiting = replace(placed.pod, spec=replace(placed.pod.spec, node_name=""))
    cluster.remove(placed.pod)
    cluster.put(waiting)
    return cluster.pending[placed.key]


def explain_pending(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    info: PodInfo,
    config: configuration.KubeSchedulerConfiguration | None = None,
    *,
    placed_on: str = "",
    recorded: Mapping[str, Any] | None = None,
) -> Explanation:
    """Explains a pod that is known to the cluster, by a scheduler that stands; `config` is what it was built from.

    A pod that was taken off its node was `placed_on` it, by a decision of which this much is `recorded`.
    """
    explanation = Explanation(cluster, scheduler, info, config=config, placed_on=placed_on, recorded=recorded)
    gate = checked_pre_enqueue(scheduler.profile, info)
    if not gate.is_success:
        explanation.gate = gate
        if gate.plugin == SchedulingGates.name:
            without = replace(info.pod, spec=replace(info.pod.spec, scheduling_gates=None))
            explanation.without_gates = explain_pending(cluster, scheduler, cluster.signatures.info(without), config)
    else:
        explanation.decision = scheduler.decide(info, complete=True)
    return explanation


def build_cluster(found: manifests.Manifests) -> Cluster:
    """The cluster of these objects. An amount or a selector that cannot be read is an error that names source, object
    and field."""
    cluster = Cluster()
    classes = {item.name: item for item in found.objects if isinstance(item, PriorityClass)}
    runtimes = {item.name: item for item in found.objects if isinstance(item, RuntimeClass)}
    with collector_paused():
        for item in Cluster.in_order(found.objects):
            try:
                cluster.put(_admitted(item, classes, runtimes))
            except AmountError as problem:
                where = f"{type(item).__name__} {item.key}"
                text = str(problem) if isinstance(problem, AmountError) else f"spec.affinity: {problem}"
                raise manifests.ManifestError(found.source_of(item), where, text) from None
    return cluster


def _admitted(
    item: KubeObject, classes: Mapping[str, PriorityClass], runtimes: Mapping[str, RuntimeClass]
) -> KubeObject:
    """A pod that no API server has seen yet is as one would store it: requests from limits, host ports, label keys,
    what its runtime class adds; and with the priority that it would get. One whose class is missing has none."""
    if not isinstance(item, Pod):
        return item
    pod = item
    if not item.metadata.uid:
        with suppress(AdmissionError):
            pod = with_runtime_class(pod, runtimes)
        pod = with_defaults(pod)
    if pod.spec.priority is not None:
        return pod
    try:
        return with_priority(pod, classes)
    except AdmissionError:
        return pod


def pod_key(pod: str) -> PodKey:
    namespace, _, name = pod.rpartition("/")
    return PodKey(f"{namespace or 'default'}/{name}")


def _scheduler_for(
    cluster: Cluster,
    info: PodInfo,
    config: configuration.KubeSchedulerConfiguration,
    source: str,
    registry: Registry | None,
) -> ProfileScheduler:
    """The profile the pod asks for; the first one stands in for a scheduler that is not configured here."""
    schedulers = build_schedulers(
        cluster, config, ByName(), registry=registry, percentage=COMPLETE_SEARCH, source=source
    )
    return schedulers.get(info.spec.scheduler_name) or next(iter(schedulers.values()))


def _why_not(found: manifests.Manifests, key: PodKey) -> str:
    pods = [item.pod_key for item in found.objects if isinstance(item, Pod)]
    if key in pods:
        return f"pod {key} has finished: a pod in phase Succeeded or Failed is not scheduled"
    namesakes = sorted(other for other in pods if other.partition("/")[2] == key.partition("/")[2])
    hint = f"; there is {', '.join(namesakes[:_NAMESAKES_SHOWN])}" if namesakes else ""
    if not pods:
        return f"there is no pod {key}: no pods were read"
    return f"pod {key} is not among the {len(pods)} pods that were read{hint}"


@dataclass
class EmulatedExplanation(Explanation):
    """Why a pod would have gone where it went then."""

    @property
    def generation(self) -> Generation:
        assert isinstance(self.scheduler, OlderScheduler)
        return self.scheduler.generation

    @property
    def highest_score(self) -> int:
        return self.generation.highest_score

    @property
    def preamble(self) -> str:
        return f"As kube-scheduler v{self.generation.version} decides."

    @property
    def error_cause(self) -> str:
        """Errors were nothing out of the ordinary then: a claim that is missing made one, and no plugin broke."""
        assert self.decision is not None
        is_early = self.decision.filtered is None
        return f"the search ended in an error{' before any node was looked at' if is_early else ''}"

    def to_dict(self) -> dict[str, Any]:
        if self.refusal:
            return {"configError": self.refusal, **_nothing()}
        assert self.decision is not None
        return _decision_record(self.decision, self.generation)


def explain_as_of_then(
    cluster: Cluster, pod: PodInfo, emulation: Emulation, placed_on: str = ""
) -> EmulatedExplanation:
    scheduler = _older_scheduler_for(cluster, pod, emulation)
    decision = scheduler.decide(pod, complete=True)
    return EmulatedExplanation(cluster, scheduler, pod, decision=decision, config=emulation.config, placed_on=placed_on)


def explain_refusal(
    cluster: Cluster, pod: PodInfo, generation: Generation, refused: RefusedConfigurationError
) -> EmulatedExplanation:
    """For a configuration that the scheduler refused: nothing was decided."""
    scheduler = _older_scheduler_for(cluster, pod, emulate(generation))
    return EmulatedExplanation(cluster, scheduler, pod, refusal=refused.text)


def _older_scheduler_for(cluster: Cluster, pod: PodInfo, emulation: Emulation) -> OlderScheduler:
    schedulers = build_older_schedulers(cluster, emulation, ByName(), percentage=COMPLETE_SEARCH)
    return schedulers.get(pod.spec.scheduler_name) or next(iter(schedulers.values()))


def _nothing() -> Record:
    return {"prefilter": None, "nodes": {}, "message": None, "best": [], "preemption": None}


def _decision_record(decision: Decision, generation: Generation) -> Record:
    record = _nothing()
    prefilter = decision.prefilter
    if prefilter is not None and not prefilter.status.is_success:
        record["prefilter"] = status_record(prefilter.status)
    if decision.filtered is not None:
        record["nodes"] = dict(_nodes(decision))
    record["best"] = sorted(decision.best)
    if not decision.node_name:
        is_cut = generation.message_limit is not None
        record["message"] = for_event(decision.message) if is_cut else decision.message
    if decision.error:
        record["error"] = True
    if decision.post_filter is not None:
        record["preemption"] = preemption_record(decision.preemption, decision.post_filter)
    return record


def _nodes(decision: Decision) -> Iterator[tuple[str, Record]]:
    filtered = decision.filtered
    assert filtered is not None
    scored = {} if decision.scored is None else scored_records(decision.scored)
    rejections = decision.cycle.get(RejectionsByNode).found
    names = filtered.nodes.names
    for position in np.arange(len(names)).tolist():
        name = names[position]
        if filtered.fits[position]:
            yield name, scored.get(name, {"fit": True})
            continue
        record = {"fit": False, **status_record(filtered.status(position))}
        if len(rejections[position]) > 1:
            record["plugins"] = [status_record(status) for status in rejections[position]]
        yield name, record
