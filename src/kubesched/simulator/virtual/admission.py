"""Objects on their way in: from files, from controllers, by a scenario. Fills in what an API server would."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.apps import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Namespace, Pod, PodSpec, PriorityClass, ReplicationController, RuntimeClass
from kubesched.k8s.model.limits import LimitRange, ResourceQuota
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import PersistentVolumeClaim, StorageClass
from kubesched.k8s.workloads.admission import (
    AdmissionError,
    QuotaAccount,
    admit_claim,
    admit_pod,
    refuse_claim_out_of_range,
    with_object_defaults,
    within_limit_ranges,
)
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.k8s.workloads.templates import same_template
from kubesched.simulator.virtual.store import ClusterStore

Item = TypeVar("Item", bound=KubeObject)


MOST_PODS = 1_000_000
"""How many pods a run keeps in memory, those that have ended or gone among them."""


_MOST_COMPLETED = 10_000
_NO_STATUS = Pod().status
_PENDING = replace(_NO_STATUS, phase=POD_PENDING)


class AlreadyExistsError(KubeschedError, ValueError):
    """There is an object of this name."""


class TooManyPodsError(Exception):
    """The run has had as many pods as it keeps."""


class ObjectAdmission:
    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._n_pods = 0
        self._quotas = NamespaceQuotas(store)
        self._completed: dict[int, tuple[PodSpec, PodSpec]] = {}
        """By the identity of a spec, which is kept with it: the spec as it is stored. Pods of a template share one."""
        store.listen(lambda before, after: self._completed.clear(), PriorityClass, RuntimeClass)

    def create(self, item: KubeObject) -> KubeObject:
        """Raises AdmissionError, AlreadyExistsError, TooManyPodsError."""
        if item.key in self._store.of(type(item)):
            raise AlreadyExistsError(f'{plural(item)} "{item.name}" already exists')
        if isinstance(item, Pod):
            if self._n_pods >= MOST_PODS:
                raise TooManyPodsError
            self._n_pods += 1
        self._make_namespace(item.namespace)
        return self._store.create(self._admitted(item))

    def apply(self, item: KubeObject) -> KubeObject:
        """Creates the object, or changes what is there into it; its status stays, unless it brings one. What a pod is
        to run cannot be changed: only its labels and annotations are taken over. A workload that says nothing about its
        size keeps it, and one whose template makes the same pods keeps its template. Raises AdmissionError."""
        known = self._store.find(type(item), item.key)
        if known is None:
            return self.create(item)
        if isinstance(known, Pod):
            metadata = replace(known.metadata, labels=item.metadata.labels, annotations=item.metadata.annotations)
            return self._store.update(replace(known, metadata=metadata))
        item = _over(known, self._admitted(item))
        metadata = replace(item.metadata, owner_references=known.metadata.owner_references)
        changed = replace(item, metadata=replace(metadata, generation=known.metadata.generation + 1))
        return self._store.update(_with_status_of(known, changed))

    def _admitted(self, item: KubeObject) -> KubeObject:
        if isinstance(item, Pod):
            return self._admitted_pod(item)
        if isinstance(item, PersistentVolumeClaim):
            item = admit_claim(item, self._store.of(StorageClass).values())
            if not item.metadata.uid and self._store.find(PersistentVolumeClaim, item.key) is None:
                refuse_claim_out_of_range(item, self._limit_ranges(item.namespace))
                self._quotas.refuse(item)
            return item
        return with_object_defaults(item)

    def _admitted_pod(self, pod: Pod) -> Pod:
        is_bound = bool(pod.spec.node_name) or pod.is_terminal
        try:
            pod = self._complete(pod)
        except AdmissionError:
            if not is_bound:
                raise
            return pod  # it was admitted long ago, by a server that knew its class
        if not is_bound and not pod.metadata.uid:
            ranges = self._limit_ranges(pod.namespace)
            if ranges:
                pod = within_limit_ranges(pod, ranges)
            self._quotas.refuse(pod)
        status = pod.status
        if status.phase:
            return pod
        return replace(pod, status=_PENDING if status is _NO_STATUS else replace(status, phase=POD_PENDING))

    def _complete(self, pod: Pod) -> Pod:
        """Raises AdmissionError."""
        spec = pod.spec
        known = self._completed.get(id(spec))
        if known is not None:
            return replace(pod, spec=known[1])
        admitted = admit_pod(pod, self._store.of(PriorityClass), self._store.of(RuntimeClass))
        if spec.affinity is None and spec.topology_spread_constraints is None:  # these take over labels of the pod
            if len(self._completed) >= _MOST_COMPLETED:
                self._completed.clear()
            self._completed[id(spec)] = (spec, admitted.spec)
        return admitted

    def _limit_ranges(self, namespace: str) -> list[LimitRange]:
        if not self._store.of(LimitRange):
            return []
        return [one for one in self._store.of(LimitRange).values() if one.namespace == namespace]

    def _make_namespace(self, name: str) -> None:
        """Files seldom have the namespaces they use."""
        if name and self._store.find(Namespace, name) is None:
            self._store.create(with_object_defaults(Namespace(metadata=ObjectMeta(name=name))))


class NamespaceQuotas:
    """What the pods and claims that are there take of the quotas, recounted when a quota changes."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._accounts: dict[str, dict[str, QuotaAccount]] = {}
        store.listen(self._on_quota, ResourceQuota)

    def refuse(self, item: KubeObject) -> None:
        """Raises AdmissionError."""
        for account in self._accounts.get(item.namespace, {}).values():
            account.refuse(item)

    def _on_quota(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if not self._accounts:  # most clusters have no quota, and their pods cost nothing here
            self._store.listen(self._on_charged, Pod, PersistentVolumeClaim)
        item = before if after is None else after
        assert isinstance(item, ResourceQuota)
        self._count_anew(item, is_gone=after is None)

    def _on_charged(self, before: KubeObject | None, after: KubeObject | None) -> None:
        item = before if after is None else after
        assert item is not None
        is_over = after is None or (isinstance(item, Pod) and item.is_terminal)
        for account in self._accounts.get(item.namespace, {}).values():
            if is_over:
                account.give_back(item)
            else:
                account.charge(item)

    def _count_anew(self, quota: ResourceQuota, *, is_gone: bool) -> None:
        accounts = self._accounts.setdefault(quota.namespace, {})
        accounts.pop(quota.name, None)
        if is_gone:
            return
        account = QuotaAccount(quota)
        claims = self._store.of(PersistentVolumeClaim).values()
        for item in (*self._store.pods_in(quota.namespace), *claims):
            if item.namespace == quota.namespace:
                account.charge(item)
        self._accounts[quota.namespace] = dict(sorted({**accounts, quota.name: account}.items()))


_Replicated = Deployment | ReplicaSet | ReplicationController | StatefulSet
_NOT_APPLIED = ("kubectl.kubernetes.io/restartedAt",)
"""Annotations of a template that a command wrote and no manifest has; applying a manifest leaves them there."""
_OF_THE_JOB = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
"""Labels that an API server adds to the template of a job."""


def _over(known: KubeObject, item: KubeObject) -> KubeObject:
    """A workload after a manifest of it was applied: fields that the manifest does not set stay."""
    if isinstance(item, _Replicated) and isinstance(known, _Replicated):
        spec = item.spec
        if same_template(known.spec.template, spec.template, without=_NOT_APPLIED):
            spec = replace(spec, template=known.spec.template)
        if spec.replicas is None:
            spec = replace(spec, replicas=known.spec.replicas)
        return replace(item, spec=replace(spec, selector=spec.selector or known.spec.selector))
    if isinstance(item, DaemonSet) and isinstance(known, DaemonSet):
        if same_template(known.spec.template, item.spec.template, without=_NOT_APPLIED):
            return replace(item, spec=replace(item.spec, template=known.spec.template))
    elif isinstance(item, Job) and isinstance(known, Job):
        if not same_template(known.spec.template, item.spec.template, without=_OF_THE_JOB):
            raise AdmissionError(f'Job.batch "{item.name}" is invalid: spec.template: field is immutable')
        return replace(item, spec=replace(item.spec, template=known.spec.template, selector=known.spec.selector))
    return item


def _with_status_of(known: Item, changed: Item) -> Item:
    status = getattr(known, "status", None)
    if status is None or getattr(changed, "status", None) != type(status)():
        return changed
    return replace(changed, status=status)


def plural(item: KubeObject) -> str:
    """How Kubernetes' messages call objects of this kind."""
    return f"{type(item).__name__.lower()}s"
