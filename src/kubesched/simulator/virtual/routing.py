"""Whose controllers care about a change: the object itself, its owner, and whoever depends on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, ReplicationController
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.policy import PodDisruptionBudget, PriorityClass
from kubesched.k8s.model.resource import ResourceClaimTemplate
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.volume_claims import is_fully_bound
from kubesched.k8s.model.workloads import CronJob, DaemonSet, Deployment, Job
from kubesched.k8s.workloads.pod_claims import needs_claims
from kubesched.simulator.virtual.store import ClusterStore

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
    """The objects to look at again. Some may be gone by now."""
    item = before if after is None else after
    if isinstance(item, Pod):
        yield from _of_pod(store, item, is_gone=after is None)
    elif isinstance(item, Node):
        if _looks_different(before, after):
            yield from store.of(DaemonSet).values()
    elif isinstance(item, PersistentVolume | PersistentVolumeClaim | StorageClass):
        yield from _of_storage(store, item, is_gone=after is None)
    elif isinstance(item, PriorityClass):
        yield from _all_of(store, MAKES_PODS)
    elif isinstance(item, ResourceClaimTemplate):
        yield from (pod for pod in store.of(Pod).values() if not pod.spec.node_name and needs_claims(pod))
    elif item is not None and isinstance(item, (*MAKES_PODS, PodDisruptionBudget)):
        if after is not None:
            yield after
        yield from store.owners_of(item)


def _of_pod(store: ClusterStore, pod: Pod, *, is_gone: bool) -> Iterator[KubeObject]:
    yield from store.owners_of(pod)  # a deployment cares about the pods of its replica sets
    if not is_gone and not pod.spec.node_name and needs_claims(pod):
        yield pod
    budgets = store.of(PodDisruptionBudget).values()
    yield from (budget for budget in budgets if budget.namespace == pod.namespace)


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


def _all_of(store: ClusterStore, kinds: Iterable[type[KubeObject]]) -> Iterator[KubeObject]:
    for kind in kinds:
        yield from store.of(kind).values()
