"""The workloads of a cluster at rest: which of them a pod belongs to, and more replicas as a controller makes them.

Plain pods of given amounts are made here, too.

Labels and owner of replicas are those of the workload's pods, so that spread and affinity count them together. A
replica of a StatefulSet comes with its volume claims.

Next: `copies`, which places them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.apps import Deployment, Job, ReplicaSet, StatefulSet, StatefulSetOrdinals
from kubesched.k8s.model.core import Container, Pod, PodSpec, ReplicationController, ResourceRequirements
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, OwnerReference, controller_of
from kubesched.k8s.model.quantity import QuantityError, parse
from kubesched.k8s.model.spelling import did_you_mean
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.actions import CreateObject
from kubesched.k8s.workloads.admission import admit_claim, admit_pod
from kubesched.k8s.workloads.deployments import find_current
from kubesched.k8s.workloads.replicas import n_wanted, scale_behind
from kubesched.k8s.workloads.stateful_sets import PARALLEL, sync_stateful_set
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, Revisions, pod_from_template
from kubesched.simulator.trial import LoadedWorld, copies_of

_SHORT = {"deploy": "deployment", "rs": "replicaset", "sts": "statefulset", "rc": "replicationcontroller"}
_SCALABLE = Deployment | ReplicaSet | ReplicationController | StatefulSet | Job


class NoSuchWorkloadError(KubeschedError, ValueError):
    """There is no such workload, or it has no replicas to add to."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A pod, and the volume claims that are made for it alone."""

    pod: Pod
    claims: tuple[PersistentVolumeClaim, ...] = ()


class ShapeError(KubeschedError, ValueError):
    """The text names no amounts."""


def find_workload(world: LoadedWorld, name: str) -> KubeObject:
    """The workload `KIND/NAMESPACE/NAME`; the kind in any case, in the plural, or short (`deploy`). Raises
    NoSuchWorkloadError."""
    if name.count("/") != 2:
        raise NoSuchWorkloadError(
            f'workload "{name}" is not of the form KIND/NAMESPACE/NAME, such as deployment/shop/web'
        )
    kind, _, key = name.partition("/")
    kind = _SHORT.get(kind.lower(), kind.lower().removesuffix("s"))
    known = {f"{type(item).__name__.lower()}/{item.key}": item for item in world.workloads}
    found = known.get(f"{kind}/{key}")
    if found is None:
        raise NoSuchWorkloadError(f"there is no {name}{did_you_mean(f'{kind}/{key}', known)}")
    if not isinstance(found, _SCALABLE):
        raise NoSuchWorkloadError(f"{name}: a {type(found).__name__} has no replicas to add to")
    return found


def scaled_workloads(world: LoadedWorld) -> list[KubeObject]:
    """Those whose number of replicas somebody chooses: not those that belong to another workload, and not jobs."""
    return [
        item
        for item in world.workloads
        if isinstance(item, _SCALABLE) and not isinstance(item, Job) and controller_of(item.metadata) is None
    ]


def n_replicas(workload: KubeObject) -> int:
    """How many it wants; a job is not asked."""
    assert isinstance(workload, _SCALABLE) and not isinstance(workload, Job)
    return n_wanted(workload)


def title_of(workload: KubeObject) -> str:
    return f"{type(workload).__name__} {workload.key}"


def replicas_of(world: LoadedWorld, workload: KubeObject) -> Iterator[Replica]:
    """One more after another, without end; an API server has completed each."""
    if isinstance(workload, StatefulSet):
        yield from _next_in_set(world, workload)
        return
    objects = world.cluster.objects
    pod = admit_pod(_template_pod(world, workload), objects.priority_classes, objects.runtime_classes)
    for copy in copies_of(pod, sys.maxsize):
        yield Replica(copy)


def _template_pod(world: LoadedWorld, workload: KubeObject) -> Pod:
    assert isinstance(workload, _SCALABLE)
    maker = workload
    if isinstance(workload, Deployment):
        maker = find_current(workload, world.replica_sets.get(workload.metadata.uid, ())) or workload
    return pod_from_template(maker.spec.template or EMPTY_TEMPLATE, maker, f"{workload.name}-more")


def _next_in_set(world: LoadedWorld, owner: StatefulSet) -> Iterator[Replica]:
    objects, revisions = world.cluster.objects, Revisions()
    start = owner.spec.ordinals.start if owner.spec.ordinals else 0
    for ordinal in count(start + n_wanted(owner)):
        alone = replace(owner.spec, replicas=1, ordinals=StatefulSetOrdinals(ordinal), pod_management_policy=PARALLEL)
        plan = sync_stateful_set(replace(owner, spec=alone), (), objects.persistent_volume_claims, revisions)
        made = [action.item for action in plan.actions if isinstance(action, CreateObject)]
        claims = tuple(
            admit_claim(item, objects.storage_classes.values())
            for item in made
            if isinstance(item, PersistentVolumeClaim)
        )
        pod = next(item for item in made if isinstance(item, Pod))
        yield Replica(admit_pod(pod, objects.priority_classes, objects.runtime_classes), claims)


def pod_of_shape(shape: str) -> Pod:
    """A plain pod that requests this much: `500m/1Gi`, or `cpu=500m,memory=1Gi`. Raises ShapeError."""
    if "=" in shape:
        requests = {name: amount for name, _, amount in (part.partition("=") for part in shape.split(","))}
    else:
        requests = dict(zip(("cpu", "memory"), shape.split("/"), strict=False))
    for name, amount in requests.items():
        try:
            is_amount = bool(name) and parse(amount).nanos >= 0
        except QuantityError:
            is_amount = False
        if not is_amount or (shape.count("/") > 1 and "=" not in shape):
            raise ShapeError(f'shape "{shape}" is not of the form 500m/1Gi or cpu=500m,memory=1Gi')
    container = Container(name="copy", resources=ResourceRequirements(requests={**requests}))
    return Pod(
        ObjectMeta(shape.replace("/", "-").replace("=", "-").replace(",", "-"), "default"),
        PodSpec(containers=(container,)),
    )


class PodOwners:
    def __init__(self, workloads: Iterable[KubeObject]) -> None:
        known = tuple(workloads)
        self._by_uid = {item.metadata.uid: item for item in known}
        self._there = {(type(item).__name__, item.namespace, item.name) for item in known}
        self._kinds = {kind for kind, _, _ in self._there}
        self._names: dict[str, str] = {}

    def workload_of(self, pod: Pod) -> str:
        """The kind and name of the topmost owner, as far as owners are known: `Deployment web`; `Pod x` for a pod of
        nobody."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return f"Pod {pod.name}"
        name = self._names.get(owner.uid)
        if name is None or not owner.uid:
            name = self._names[owner.uid] = self._topmost(owner)
        return name

    def scale_of(self, reference: OwnerReference) -> tuple[str, int] | None:
        """As disruption budgets ask."""
        return scale_behind(reference, self._by_uid.get)

    def is_gone(self, namespace: str, owner: OwnerReference) -> bool:
        """Whether others of its kind are known, but not this one."""
        return owner.kind in self._kinds and (owner.kind, namespace, owner.name) not in self._there

    def ordered_set_of(self, pod: Pod) -> str | None:
        """The uid of the StatefulSet that makes the pod when the one before it runs; None if nothing waits so."""
        owner = controller_of(pod.metadata)
        known = None if owner is None else self._by_uid.get(owner.uid)
        is_ordered = isinstance(known, StatefulSet) and known.spec.pod_management_policy != "Parallel"
        return known.metadata.uid if known is not None and is_ordered else None

    def _topmost(self, owner: OwnerReference) -> str:
        for _ in range(len(self._by_uid) + 1):
            known = self._by_uid.get(owner.uid)
            above = None if known is None else controller_of(known.metadata)
            if above is None:
                break
            owner = above
        return f"{owner.kind} {owner.name}"
