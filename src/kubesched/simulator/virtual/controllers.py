"""Runs controllers on what changed, and carries out what they plan.

A change marks those objects whose controllers care: the object itself, its owner, and whoever depends on it. `sync`
lets each of them look once, by the rules of `kubesched.k8s.workloads`. They act at the instant of the change, but after
the scheduler has done all it could: many changes make one look. Claims for devices are given back when their pods have
ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, PodDisruptionBudget, PriorityClass, ReplicationController, RuntimeClass
from kubesched.k8s.model.limits import LimitRange, ResourceQuota
from kubesched.k8s.model.meta import KubeObject, OwnerReference, controller_of
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus, ResourceClaimTemplate
from kubesched.k8s.model.scheduling import PodGroup, group_key_of
from kubesched.k8s.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, is_fully_bound
from kubesched.k8s.model.times import parse_instant
from kubesched.k8s.workloads.actions import Action, Bursts, CreateObject, NameSource, Plan, UpdateObject
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.k8s.workloads.budgets import sync_budget
from kubesched.k8s.workloads.claims import (
    StorageState,
    needs_claims,
    sync_claim,
    sync_group_claims,
    sync_pod_claims,
    sync_volume,
)
from kubesched.k8s.workloads.daemon_sets import sync_daemon_set
from kubesched.k8s.workloads.deployments import sync_deployment
from kubesched.k8s.workloads.job_pods import JobFailures
from kubesched.k8s.workloads.jobs import sync_cron_job, sync_job
from kubesched.k8s.workloads.replicas import scale_behind, sync_replicas
from kubesched.k8s.workloads.stateful_sets import sync_stateful_set
from kubesched.k8s.workloads.templates import Revisions
from kubesched.simulator.virtual.admission import AlreadyExistsError, ObjectAdmission, plural
from kubesched.simulator.virtual.kubelets import BudgetCoverage, Deletions
from kubesched.simulator.virtual.store import ClusterStore, VirtualClock

MAKES_PODS: tuple[type[KubeObject], ...] = (
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
)


def concerned(store: ClusterStore, before: KubeObject | None, after: KubeObject | None) -> Iterator[KubeObject]:
    """The objects to look at again when another than a pod has changed. Some may be gone by now."""
    item = before if after is None else after
    if isinstance(item, Node):
        if _looks_different(before, after):
            yield from store.of(DaemonSet).values()
    elif isinstance(item, PersistentVolume | PersistentVolumeClaim | StorageClass):
        yield from _of_storage(store, item, is_gone=after is None)
    elif isinstance(item, PriorityClass | RuntimeClass):
        yield from _all_of(store, MAKES_PODS)
    elif isinstance(item, ResourceClaimTemplate):
        yield from (group for group in store.of(PodGroup).values() if group.spec.resource_claims)
        yield from (pod for pod in store.of(Pod).values() if not pod.spec.node_name and needs_claims(pod))
    elif isinstance(after, PodGroup):
        if after.spec.resource_claims:
            yield after
            members = (pod for pod in store.of(Pod).values() if group_key_of(pod) == after.key)
            yield from (pod for pod in members if not pod.spec.node_name)
    elif item is not None and isinstance(item, (*MAKES_PODS, PodDisruptionBudget)):
        if after is not None:
            yield after
        yield from store.owners_of(item)


def _of_storage(store: ClusterStore, item: KubeObject, *, is_gone: bool) -> Iterator[KubeObject]:
    claims = store.of(PersistentVolumeClaim)
    if isinstance(item, PersistentVolumeClaim):
        if not is_gone:
            yield item
        elif item.spec.volume_name and (volume := store.find(PersistentVolume, item.spec.volume_name)) is not None:
            yield volume
        return
    if isinstance(item, PersistentVolume) and not is_gone:
        yield item
        reference = item.spec.claim_ref
        if reference is not None:
            named = claims.get(f"{reference.namespace}/{reference.name}")
            yield from () if named is None else (named,)
            return
    yield from (claim for claim in claims.values() if not is_fully_bound(claim))


def _looks_different(before: KubeObject | None, after: KubeObject | None) -> bool:
    """Whether a daemon may see the node with other eyes."""
    if not isinstance(before, Node) or not isinstance(after, Node):
        return True
    return before.metadata.labels != after.metadata.labels or before.spec != after.spec


def _gives_room(item: KubeObject, *, is_gone: bool) -> bool:
    """Whether what was refused may be admitted now."""
    return isinstance(item, ResourceQuota | LimitRange) or (is_gone and isinstance(item, PersistentVolumeClaim))


def _all_of(store: ClusterStore, kinds: Iterable[type[KubeObject]]) -> Iterator[KubeObject]:
    for kind in kinds:
        yield from store.of(kind).values()


class ControllerRules:
    """Remembers what controllers keep in memory: template revisions and failures of jobs."""

    def __init__(
        self,
        clock: VirtualClock,
        store: ClusterStore,
        names: NameSource,
        bursts: Bursts,
        coverage: BudgetCoverage,
        *,
        groups_have_claims: bool = False,
    ) -> None:
        """With `groups_have_claims`, the device claims of a pod group are made, and its pods share them."""
        self._groups_have_claims = groups_have_claims
        self._clock = clock
        self._store = store
        self.coverage = coverage
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
            PodGroup: self._pod_group,
            PodDisruptionBudget: self._budget,
            PersistentVolume: self._volume,
            PersistentVolumeClaim: self._claim,
        }

    def plan(self, item: KubeObject) -> Plan:
        return self._plans[type(item)](item)

    def had(self, owner: KubeObject) -> None:
        """A set was like this before: its pods, if nothing else says so, were made from this template."""
        if isinstance(owner, StatefulSet | DaemonSet):
            self._revisions.current(owner, owner.spec.template)

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
        group = self._store.find(PodGroup, group_key_of(pod)) if self._groups_have_claims else None
        return sync_pod_claims(pod, claims, templates, self._names, group)

    def _pod_group(self, group: PodGroup) -> Plan:
        if not self._groups_have_claims:
            return Plan()
        return sync_group_claims(group, self._store.of(ResourceClaimTemplate), self._names)

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
        return sync_budget(budget, self.coverage.pods_of(budget), self._scale_of)

    def _scale_of(self, reference: OwnerReference) -> tuple[str, int] | None:
        return scale_behind(reference, self._store.by_uid)


BY_CONTROLLER = "deleted by its controller"

Mark = tuple[type[KubeObject], str]


class ControllerSet:
    def __init__(
        self,
        clock: VirtualClock,
        store: ClusterStore,
        admission: ObjectAdmission,
        deletions: Deletions,
        rules: ControllerRules,
        refused: Callable[[KubeObject, str], None],
    ) -> None:
        """`refused` hears of what a controller could not create: (owner, message)."""
        self._clock = clock
        self._store = store
        self._admission = admission
        self._deletions = deletions
        self._rules = rules
        self._refused = refused
        self._marked: dict[Mark, None] = {}
        self._looks_at_s: dict[Mark, float] = {}
        self._n_held_back: dict[Mark, int] = {}
        self._refused_in: defaultdict[str, dict[Mark, None]] = defaultdict(dict)
        """By namespace: what was refused something when its controller last looked."""
        self._owner_marks: dict[str, tuple[Mark, ...]] = {}
        """By the uid of a pod's controller: this, its own controller, and so on. As long as none of them changes."""
        store.listen(self._on_change)

    def not_created(self) -> list[tuple[KubeObject, int]]:
        """Workloads of which so many pods wait that the rest is not made yet, and how many that is."""
        known = ((self._store.find(kind, key), n) for (kind, key), n in self._n_held_back.items())
        return [(item, n) for item, n in known if item is not None]

    def sync(self) -> bool:
        """Lets every controller look that has a reason to; False if none had."""
        if not self._marked:
            return False
        marked, self._marked = self._marked, {}
        for kind, key in marked:
            item = self._store.find(kind, key)
            if item is not None:
                self._look_at(item)
        return True

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        item = before if after is None else after
        assert item is not None
        if isinstance(item, Pod):
            self._on_pod(item, is_gone=after is None)
            return
        self._owner_marks.clear()
        if before is not None and after is not None:
            self._rules.had(before)
        for known in concerned(self._store, before, after):
            self._marked[type(known), known.key] = None
        if _gives_room(item, is_gone=after is None):
            self._marked |= self._refused_in[item.namespace]

    def _on_pod(self, pod: Pod, *, is_gone: bool) -> None:
        metadata = pod.metadata
        for mark in self._marks_of_owners(pod) if metadata.owner_references else ():
            self._marked[mark] = None
        if not is_gone and not pod.spec.node_name and needs_claims(pod):
            self._marked[Pod, pod.key] = None
        for key in self._rules.coverage.budgets_of(pod):
            self._marked[PodDisruptionBudget, key] = None
        refused = self._refused_in.get(metadata.namespace)
        if refused and (is_gone or pod.is_terminal):
            self._marked |= refused

    def _marks_of_owners(self, pod: Pod) -> tuple[Mark, ...]:
        """A deployment cares about the pods of its replica sets."""
        owner = controller_of(pod.metadata)
        known = None if owner is None else self._owner_marks.get(owner.uid)
        if known is not None:
            return known
        owners = self._store.owners_of(pod)
        found = tuple((type(item), item.key) for item in owners)
        if owner is not None and owners and not any(isinstance(item, Pod) for item in owners):
            self._owner_marks[owner.uid] = found
        return found

    def _look_at(self, item: KubeObject) -> None:
        plan = self._rules.plan(item)
        mark = (type(item), item.key)
        self._refused_in[item.namespace].pop(mark, None)
        for action in plan.actions:
            is_pod = isinstance(action, CreateObject) and isinstance(action.item, Pod)
            if is_pod and mark in self._refused_in[item.namespace]:
                continue  # its pods are alike, and a controller begins with one
            self._carry_out(item, action)
        if plan.n_held_back:
            self._n_held_back[mark] = plan.n_held_back
        else:
            self._n_held_back.pop(mark, None)
        if plan.again_at_s is not None:
            self._look_again(mark, plan.again_at_s)

    def _carry_out(self, owner: KubeObject, action: Action) -> None:
        if isinstance(action, CreateObject):
            try:
                self._admission.create(action.item)
            except AlreadyExistsError as refusal:
                self._refused(owner, str(refusal))
            except AdmissionError as refusal:
                self._refused_in[owner.namespace][type(owner), owner.key] = None
                self._refused(owner, f"{plural(action.item)} is forbidden: {refusal}")
        elif isinstance(action, UpdateObject):
            self._store.update(action.item)
        else:
            self._deletions.delete(action.item, BY_CONTROLLER)

    def _look_again(self, mark: Mark, at_s: float) -> None:
        if self._looks_at_s.get(mark) == at_s:
            return  # planned already
        self._looks_at_s[mark] = at_s

        def look() -> None:
            if self._looks_at_s.get(mark) == at_s:
                del self._looks_at_s[mark]
            self._marked[mark] = None

        self._clock.at(at_s, look)


class DeviceClaims:
    def __init__(self, clock: VirtualClock, store: ClusterStore) -> None:
        self._clock = clock
        self._store = store
        self._has_claims = False
        store.listen(self._on_claim, ResourceClaim)

    def _on_claim(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if not self._has_claims:  # until there is one, pods cost nothing here
            self._has_claims = True
            self._store.listen(self._on_pod, Pod)

    def _on_pod(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if not isinstance(before, Pod) or not _uses_devices(before):
            return
        has_ended = after is None or (isinstance(after, Pod) and after.is_terminal and not before.is_terminal)
        if has_ended:
            uid = before.metadata.uid
            self._clock.after(0.0, lambda: self._give_back(uid))

    def _give_back(self, uid: str) -> None:
        for claim in list(self._store.of(ResourceClaim).values()):
            users = claim.status.reserved_for or ()
            left = tuple(user for user in users if user.uid != uid)
            if len(left) < len(users):
                status = replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
                self._store.update(replace(claim, status=status))


def _uses_devices(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None
