"""One look of a controller at one object: gathers what the rules of `expansion` ask for, and gives their plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, ReplicationController
from kubesched.k8s.model.meta import KubeObject, OwnerReference
from kubesched.k8s.model.policy import PodDisruptionBudget
from kubesched.k8s.model.resource import ResourceClaimTemplate
from kubesched.k8s.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.times import parse_instant
from kubesched.k8s.model.workloads import CronJob, DaemonSet, Deployment, Job
from kubesched.k8s.workloads.actions import Plan
from kubesched.k8s.workloads.budgets import sync_budget
from kubesched.k8s.workloads.bursts import Bursts
from kubesched.k8s.workloads.cron_jobs import sync_cron_job
from kubesched.k8s.workloads.daemon_sets import sync_daemon_set
from kubesched.k8s.workloads.deployments import sync_deployment
from kubesched.k8s.workloads.job_failures import JobFailures
from kubesched.k8s.workloads.jobs import sync_job
from kubesched.k8s.workloads.names import NameSource
from kubesched.k8s.workloads.pod_claims import sync_pod_claims
from kubesched.k8s.workloads.replicas import scale_behind, sync_replicas
from kubesched.k8s.workloads.revisions import Revisions
from kubesched.k8s.workloads.stateful_sets import sync_stateful_set
from kubesched.k8s.workloads.volume_claims import StorageState, sync_claim, sync_volume
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.store import ClusterStore


class ControllerRules:
    """Remembers what controllers keep in memory: template revisions and failures of jobs."""

    def __init__(self, clock: VirtualClock, store: ClusterStore, names: NameSource, bursts: Bursts) -> None:
        self._clock = clock
        self._store = store
        self._names = names
        self._bursts = bursts
        self._revisions = Revisions()
        self._failures = JobFailures()
        self._plans: dict[type[KubeObject], Callable[[Any], Plan]] = {
            Deployment: self._deployment,
            ReplicaSet: self._replicas,
            ReplicationController: self._replicas,
            StatefulSet: self._stateful_set,
            DaemonSet: self._daemon_set,
            Job: self._job,
            CronJob: self._cron_job,
            Pod: self._pod,
            PodDisruptionBudget: self._budget,
            PersistentVolume: self._volume,
            PersistentVolumeClaim: self._claim,
        }

    def plan(self, item: KubeObject) -> Plan:
        return self._plans[type(item)](item)

    def _pods_of(self, owner: KubeObject) -> list[Pod]:
        return self._store.owned(owner.metadata.uid, Pod)

    # -- what makes pods -----------------------------------------------------------------------------------------------

    def _deployment(self, owner: Deployment) -> Plan:
        replica_sets = self._store.owned(owner.metadata.uid, ReplicaSet)
        pods = {known.metadata.uid: self._pods_of(known) for known in replica_sets}
        return sync_deployment(owner, sorted(replica_sets, key=lambda known: known.name), pods)

    def _replicas(self, owner: ReplicaSet | ReplicationController) -> Plan:
        return sync_replicas(owner, self._pods_of(owner), self._names, self._bursts)

    def _stateful_set(self, owner: StatefulSet) -> Plan:
        claims = self._store.of(PersistentVolumeClaim)
        return sync_stateful_set(owner, self._pods_of(owner), claims, self._revisions, self._bursts)

    def _daemon_set(self, owner: DaemonSet) -> Plan:
        nodes = self._store.of(Node).values()
        return sync_daemon_set(owner, self._pods_of(owner), nodes, self._names, self._revisions)

    def _job(self, owner: Job) -> Plan:
        return sync_job(owner, self._pods_of(owner), self._names, self._failures, self._clock.now_s, self._bursts)

    def _cron_job(self, owner: CronJob) -> Plan:
        jobs = self._store.owned(owner.metadata.uid, Job)
        created = owner.metadata.creation_timestamp
        since_s = max(self._clock.start_s, parse_instant(created) if created else 0.0)
        return sync_cron_job(owner, jobs, since_s, self._clock.now_s)

    # -- what pods need ------------------------------------------------------------------------------------------------

    def _pod(self, pod: Pod) -> Plan:
        claims, templates = self._store.of(PersistentVolumeClaim), self._store.of(ResourceClaimTemplate)
        return sync_pod_claims(pod, claims, templates, self._names)

    def _volume(self, volume: PersistentVolume) -> Plan:
        named = volume.spec.claim_ref
        key = "" if named is None else f"{named.namespace}/{named.name}"
        return sync_volume(volume, self._store.find(PersistentVolumeClaim, key))

    def _claim(self, claim: PersistentVolumeClaim) -> Plan:
        state = StorageState(
            volumes=self._store.of(PersistentVolume),
            classes=self._store.of(StorageClass),
            nodes=self._store.of(Node),
            csi_nodes=self._store.of(CSINode),
        )
        return sync_claim(claim, state)

    def _budget(self, budget: PodDisruptionBudget) -> Plan:
        return sync_budget(budget, self._store.pods_in(budget.namespace), self._scale_of)

    def _scale_of(self, reference: OwnerReference) -> tuple[str, int] | None:
        return scale_behind(reference, self._store.by_uid)
