"""The way in: a cluster's objects, a pod, perhaps a configuration, and out comes an explanation.

`Explanation` has the decision; everything else about it (`failures`, `numbers`, `changes`, the text) is worked out when
it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kubesched import config as configuration
from kubesched.cluster import Cluster
from kubesched.engine.build import build_schedulers
from kubesched.engine.cycle import Decision, Scheduler
from kubesched.engine.enqueue import checked_pre_enqueue
from kubesched.engine.select import ByName
from kubesched.explanation.changes import Change, smallest_changes
from kubesched.explanation.failing import Failures, find_failures
from kubesched.explanation.numbers import Numbers, hard_constraints
from kubesched.explanation.record import decision_record, gated_record
from kubesched.explanation.report import full_report
from kubesched.explanation.text import render
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.model import manifests
from kubesched.model.collector import collector_paused
from kubesched.model.core import Pod
from kubesched.model.meta import PodKey
from kubesched.model.requests import AmountError
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.plugins.pod_topology_spread.constraints import SpreadConstraint
from kubesched.plugins.registry import capabilities

COMPLETE_SEARCH = 100
"""Percent of nodes looked at: an explanation is about all of them."""


_NAMESAKES_SHOWN = 3


class NotExplainableError(ValueError):
    """There is nothing to explain: the pod is not there, or already has its node."""


@dataclass
class Explanation:
    """Why a pod goes where it goes. `to_dict()` and `report()` are for machines, `str()` for people."""

    cluster: Cluster
    scheduler: Scheduler
    pod: PodInfo
    gate: Status | None = None
    decision: Decision | None = None
    config: configuration.KubeSchedulerConfiguration | None = None

    @property
    def fits(self) -> bool:
        return self.decision is not None and bool(self.decision.node_name)

    def to_dict(self) -> dict[str, Any]:
        if self.gate is not None:
            return gated_record(self.gate)
        assert self.decision is not None
        return decision_record(self.decision, list(self.cluster.table.names))

    def report(self) -> dict[str, Any]:
        """All that is known, for machines: `to_dict()` under `explanation`, and the rest beside it."""
        return full_report(self)

    def __str__(self) -> str:
        return render(self)

    @cached_property
    def failures(self) -> Failures | None:
        """Every filter's verdict on every node; None where no filter was asked about any."""
        if self.decision is None or self.decision.filtered is None:
            return None
        return find_failures(self.cluster, self.scheduler.profile, self.pod)

    @cached_property
    def numbers(self) -> Numbers | None:
        """What stands behind the rejections; None where there is no rejection by a filter."""
        if self.failures is None:
            return None
        return Numbers(self.cluster, self.pod, self.failures, self._hard_constraints)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The smallest changes that would make the pod fit, if it does not; each was tried out."""
        decision = self.decision
        if decision is None or self.fits or decision.error or decision.prefilter is None:
            return ()
        return smallest_changes(self.cluster, self.scheduler, self.pod, decision, self.failures, self._hard_constraints)

    @cached_property
    def _hard_constraints(self) -> tuple[SpreadConstraint, ...]:
        name = self.scheduler.profile.scheduler_name
        profiles = [] if self.config is None else configuration.resolve_profiles(self.config, capabilities())
        args = next((p.plugin_args.get(PodTopologySpread.name) for p in profiles if p.scheduler_name == name), None)
        return hard_constraints(self.cluster, self.pod, args)


def explain(objects: Iterable[Mapping[str, Any]], pod: str, config: dict[str, Any] | str | None = None) -> Explanation:
    """Explains the pod `namespace/name` on a cluster given as manifests, under a KubeSchedulerConfiguration."""
    found = manifests.from_dicts(objects)
    loaded = configuration.default() if config is None else configuration.load(config, "config")
    return explain_pod(found, pod, loaded)


def explain_pod(
    found: manifests.Manifests, pod: str, config: configuration.KubeSchedulerConfiguration, source: str = ""
) -> Explanation:
    cluster = build_cluster(found)
    key = pod_key(pod)
    info = cluster.pending.get(key)
    if info is None:
        raise NotExplainableError(_why_not(cluster, found, key))
    scheduler = _scheduler_for(cluster, info, config, source)
    return explain_pending(cluster, scheduler, info, config)


def explain_pending(
    cluster: Cluster,
    scheduler: Scheduler,
    info: PodInfo,
    config: configuration.KubeSchedulerConfiguration | None = None,
) -> Explanation:
    """Explains a pod that is known to the cluster, by a scheduler that stands; `config` is what it was built from."""
    explanation = Explanation(cluster, scheduler, info, config=config)
    gate = checked_pre_enqueue(scheduler.profile, info)
    if not gate.is_success:
        explanation.gate = gate
    else:
        explanation.decision = scheduler.decide(info, complete=True)
    return explanation


def build_cluster(found: manifests.Manifests) -> Cluster:
    """The cluster of these objects. An amount or a selector that cannot be read is an error that names source, object
    and field."""
    cluster = Cluster()
    with collector_paused():
        for item in Cluster.in_order(found.objects):
            try:
                cluster.put(item)
            except AmountError as problem:
                where = f"{type(item).__name__} {item.key}"
                text = str(problem) if isinstance(problem, AmountError) else f"spec.affinity: {problem}"
                raise manifests.ManifestError(found.source_of(item), where, text) from None
    return cluster


def pod_key(pod: str) -> PodKey:
    namespace, _, name = pod.rpartition("/")
    return PodKey(f"{namespace or 'default'}/{name}")


def _scheduler_for(
    cluster: Cluster, info: PodInfo, config: configuration.KubeSchedulerConfiguration, source: str
) -> Scheduler:
    """The profile the pod asks for; the first one stands in for a scheduler that is not configured here."""
    schedulers = build_schedulers(cluster, config, ByName(), percentage=COMPLETE_SEARCH, source=source)
    return schedulers.get(info.spec.scheduler_name) or next(iter(schedulers.values()))


def _why_not(cluster: Cluster, found: manifests.Manifests, key: PodKey) -> str:
    known = cluster.find_pod(key)
    if known is not None:
        return f"pod {key} is already bound to node {known.spec.node_name}"
    pods = [item.pod_key for item in found.objects if isinstance(item, Pod)]
    if key in pods:
        return f"pod {key} has finished: a pod in phase Succeeded or Failed is not scheduled"
    namesakes = sorted(other for other in pods if other.partition("/")[2] == key.partition("/")[2])
    hint = f"; there is {', '.join(namesakes[:_NAMESAKES_SHOWN])}" if namesakes else ""
    return f"pod {key} is not among the {len(pods)} pods that were read{hint}"
