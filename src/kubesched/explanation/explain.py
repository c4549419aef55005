"""The way in: a cluster's objects, a pod and a configuration, and out comes an explanation.

`Explanation` has the decision; everything else about it (`failures`, `numbers`, `changes`, the text) is worked out when
it is first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kubesched.explanation.answer import COMPLETE_SEARCH, Explanation
from kubesched.explanation.emulated import explain_as_of_then, explain_refusal
from kubesched.framework.handle import Registry
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod, PriorityClass
from kubesched.k8s.model.manifests import collector_paused
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import AmountError
from kubesched.k8s.workloads.admission import AdmissionError, with_priority
from kubesched.older.config.algorithm_source import RefusedConfigurationError
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import Generation
from kubesched.scheduler import config as configuration
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.scheduling_gates import SchedulingGates

__all__ = [
    "COMPLETE_SEARCH",
    "Explanation",
    "NotExplainableError",
    "build_cluster",
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
    with collector_paused():
        for item in Cluster.in_order(found.objects):
            try:
                cluster.put(_admitted(item, classes))
            except AmountError as problem:
                where = f"{type(item).__name__} {item.key}"
                text = str(problem) if isinstance(problem, AmountError) else f"spec.affinity: {problem}"
                raise manifests.ManifestError(found.source_of(item), where, text) from None
    return cluster


def _admitted(item: KubeObject, classes: Mapping[str, PriorityClass]) -> KubeObject:
    """A pod that no API server has seen yet has the priority that it would get; one whose class is missing, none."""
    if not isinstance(item, Pod) or item.spec.priority is not None:
        return item
    try:
        return with_priority(item, classes)
    except AdmissionError:
        return item


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
    return f"pod {key} is not among the {len(pods)} pods that were read{hint}"
