"""Which kinds a dump of a cluster holds, and what follows if one of them was left out of it.

A dump tells a kind that was not dumped from one that the cluster has none of in three ways. A snapshot names what it
holds. Some kinds every cluster has objects of. And objects name others: a claim without its StorageClass in a dump that
has no StorageClass at all was not left alone by the cluster. Where a dump shows by one of these that somebody chose
fewer kinds, the kinds it cannot tell about are named, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kubesched.k8s.client.resources import COMPOSITE_POD_GROUPS, NEXT_POD_GROUPS, RESOURCES, Resource
from kubesched.k8s.model import apps, autoscaling, core, limits, resource, scheduling, storage
from kubesched.k8s.model.manifests import Manifests
from kubesched.k8s.model.meta import KubeObject, controller_of

_BEYOND_SCHEDULING = (
    Resource(core.PriorityClass, "scheduling.k8s.io", "v1", "priorityclasses", False),
    Resource(core.RuntimeClass, "node.k8s.io", "v1", "runtimeclasses", False),
    Resource(apps.Deployment, "apps", "v1", "deployments", True),
    Resource(apps.DaemonSet, "apps", "v1", "daemonsets", True),
    Resource(apps.Job, "batch", "v1", "jobs", True),
    Resource(apps.CronJob, "batch", "v1", "cronjobs", True),
    Resource(limits.ResourceQuota, "", "v1", "resourcequotas", True),
    Resource(limits.LimitRange, "", "v1", "limitranges", True),
    Resource(limits.HorizontalPodAutoscaler, "autoscaling", "v2", "horizontalpodautoscalers", True, ("v1",)),
    Resource(resource.ResourceClaimTemplate, "resource.k8s.io", "v1", "resourceclaimtemplates", True, ("v1beta2",)),
)

READ_RESOURCES: tuple[Resource, ...] = (*RESOURCES, *_BEYOND_SCHEDULING)
"""All that decisions, simulations and plans depend on, and every server has."""

GATED_RESOURCES: tuple[Resource, ...] = (
    NEXT_POD_GROUPS,
    replace(NEXT_POD_GROUPS, type=scheduling.Workload, plural="workloads"),
    COMPOSITE_POD_GROUPS,
)
"""What servers have only behind a feature gate: read where it is there, and not missed where it is not."""

AUTOSCALING_RESOURCES: tuple[Resource, ...] = (
    Resource(autoscaling.NodePool, "karpenter.sh", "v1", "nodepools", False, ("v1beta1",)),
    Resource(autoscaling.NodeClaim, "karpenter.sh", "v1", "nodeclaims", False, ("v1beta1",)),
    Resource(autoscaling.NodeOverlay, "karpenter.sh", "v1alpha1", "nodeoverlays", False),
    Resource(autoscaling.ProvisioningRequest, "autoscaling.x-k8s.io", "v1", "provisioningrequests", True, ("v1beta1",)),
    Resource(autoscaling.PodTemplate, "", "v1", "podtemplates", True),
)
"""What autoscalers of nodes work by: read for plans, where it is there."""

ALL_RESOURCES: tuple[Resource, ...] = (*READ_RESOURCES, *GATED_RESOURCES)
"""What a snapshot holds."""

_SHORT_NAMES: dict[type[KubeObject], str] = {
    core.Service: "svc",
    core.ReplicationController: "rc",
    apps.ReplicaSet: "rs",
    apps.Deployment: "deploy",
    apps.StatefulSet: "sts",
    apps.DaemonSet: "ds",
    core.PodDisruptionBudget: "pdb",
    core.PriorityClass: "pc",
    limits.ResourceQuota: "quota",
    limits.LimitRange: "limits",
    limits.HorizontalPodAutoscaler: "hpa",
    storage.PersistentVolume: "pv",
    storage.PersistentVolumeClaim: "pvc",
    storage.StorageClass: "sc",
}


def kubectl_names(resources: Iterable[Resource] = READ_RESOURCES) -> str:
    """What `kubectl get` is to be asked for. Kinds of devices come last: servers before v1.34 do not have them."""
    in_order = sorted(resources, key=lambda known: (known.group == "resource.k8s.io", known.type is not core.Node))
    return ",".join(_SHORT_NAMES.get(known.type, known.plural) for known in in_order)


# -- what is missing ---------------------------------------------------------------------------------------------------

ByKind = dict[type[KubeObject], list[KubeObject]]
Named = Callable[[ByKind], Iterator[str]]
"""Objects that name one of the kind, in words."""


@dataclass(frozen=True, slots=True)
class Absence:
    """What follows if the kind is not in a dump; for `simulation` alone, or for every decision."""

    kind: type[KubeObject]
    follows: str
    is_always_there: bool = False
    named: Named | None = None
    simulation: bool = False


def missing_in(found: Manifests, source: str, *, is_simulation: bool) -> list[str]:
    """As `missing_kinds`, of what was read from files; `source` is what they are called, if it is not known where the
    nodes came from."""
    nodes_from = next((found.source_of(item) for item in found.objects if isinstance(item, core.Node)), "")
    return missing_kinds(found.objects, found.dumped, nodes_from or source, is_simulation=is_simulation)


def missing_kinds(
    objects: Sequence[KubeObject], dumped: set[str] | None, source: str, *, is_simulation: bool
) -> list[str]:
    """A line for each kind that was not dumped, with what follows; none for objects that are no dump: those of a
    cluster have uids, on nodes too. `dumped` is what the dump itself says that it holds."""
    by_kind: ByKind = {}
    for item in objects:
        by_kind.setdefault(type(item), []).append(item)
    if not any(node.metadata.uid for node in by_kind.get(core.Node, ())):
        return []
    absent = [one for one in ABSENCES if one.kind not in by_kind and (is_simulation or not one.simulation)]
    if dumped is not None:
        gone = [one for one in absent if _HOMES[one.kind].full_name not in dumped]
        return [f"{source}: {_plural(one)} were not dumped: {one.follows}" for one in gone]
    told: list[str] = []
    unclear: list[Absence] = []
    for one in absent:
        naming = None if one.named is None else next(one.named(by_kind), None)
        if one.is_always_there:
            told.append(f"{source}: no {_plural(one)}, although every cluster has some: not dumped; {one.follows}")
        elif naming is not None:
            told.append(f"{source}: no {_plural(one)}, although {naming}: not dumped; {one.follows}")
        elif one.named is None:
            unclear.append(one)
    if told and unclear:
        told.append(f"{source}: {_listed(unclear)} may be missing, too: none are assumed")
    if told:
        told.append("to dump all kinds: kubesched snapshot -o FILE, or see docs/guides/dump.md")
    return told


def _plural(absence: Absence) -> str:
    name = absence.kind.__name__
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _listed(absences: Sequence[Absence]) -> str:
    names = [_plural(one) for one in absences]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _owned_by(owner: type[KubeObject], *kinds: type[KubeObject]) -> Named:
    def named(by_kind: ByKind) -> Iterator[str]:
        for kind in kinds:
            for item in by_kind.get(kind, ()):
                reference = controller_of(item.metadata)
                if reference is not None and reference.kind == owner.__name__:
                    yield f"{kind.__name__} {item.key} belongs to {owner.__name__} {reference.name}"

    return named


def _claims_of_pods(by_kind: ByKind) -> Iterator[str]:
    for pod in _pods(by_kind):
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is not None:
                yield f"Pod {pod.key} names claim {volume.persistent_volume_claim.claim_name}"


def _volumes_of_claims(by_kind: ByKind) -> Iterator[str]:
    for claim in _claims(by_kind):
        if claim.spec.volume_name:
            yield f"PersistentVolumeClaim {claim.key} is bound to {claim.spec.volume_name}"


def _classes_of_storage(by_kind: ByKind) -> Iterator[str]:
    for claim in _claims(by_kind):
        if claim.spec.storage_class_name:
            yield f"PersistentVolumeClaim {claim.key} names {claim.spec.storage_class_name}"


def _drivers_of_volumes(by_kind: ByKind) -> Iterator[str]:
    for volume in by_kind.get(storage.PersistentVolume, ()):
        if isinstance(volume, storage.PersistentVolume) and volume.spec.csi is not None:
            yield f"PersistentVolume {volume.name} is of driver {volume.spec.csi.driver}"


def _drivers_with_capacity(by_kind: ByKind) -> Iterator[str]:
    for driver in by_kind.get(storage.CSIDriver, ()):
        if isinstance(driver, storage.CSIDriver) and driver.spec.storage_capacity:
            yield f"CSIDriver {driver.name} publishes some"


def _runtime_classes_of_pods(by_kind: ByKind) -> Iterator[str]:
    yield from (f"Pod {pod.key} names {name}" for pod in _pods(by_kind) if (name := pod.spec.runtime_class_name))


def _device_claims_of_pods(by_kind: ByKind) -> Iterator[str]:
    yield from (f"Pod {pod.key} names some" for pod in _pods(by_kind) if pod.spec.resource_claims)


def _claim_templates_of_pods(by_kind: ByKind) -> Iterator[str]:
    for pod in _pods(by_kind):
        if any(claim.resource_claim_template_name for claim in pod.spec.resource_claims or ()):
            yield f"Pod {pod.key} names one"


def _device_classes_of_claims(by_kind: ByKind) -> Iterator[str]:
    for claim in _device_claims(by_kind):
        for request in claim.spec.devices.requests or ():
            if request.exactly is not None and request.exactly.device_class_name:
                yield f"ResourceClaim {claim.key} names {request.exactly.device_class_name}"


def _devices_of_claims(by_kind: ByKind) -> Iterator[str]:
    yield from (f"ResourceClaim {claim.key} asks for devices" for claim in _device_claims(by_kind))


def _pods(by_kind: ByKind) -> Iterator[core.Pod]:
    return (item for item in by_kind.get(core.Pod, ()) if isinstance(item, core.Pod))


def _claims(by_kind: ByKind) -> Iterator[storage.PersistentVolumeClaim]:
    known = by_kind.get(storage.PersistentVolumeClaim, ())
    return (item for item in known if isinstance(item, storage.PersistentVolumeClaim))


def _device_claims(by_kind: ByKind) -> Iterator[resource.ResourceClaim]:
    return (item for item in by_kind.get(resource.ResourceClaim, ()) if isinstance(item, resource.ResourceClaim))


_HOMES = {known.type: known for known in READ_RESOURCES}
_SPREADING = "default spreading does not know which pods belong together"
_NOT_REPLACED = "pods of theirs that go are not replaced"

ABSENCES: tuple[Absence, ...] = (
    Absence(core.Namespace, "namespace selectors match nothing", is_always_there=True),
    Absence(core.Service, _SPREADING, is_always_there=True),
    Absence(core.ReplicationController, _SPREADING, named=_owned_by(core.ReplicationController, core.Pod)),
    Absence(apps.ReplicaSet, _SPREADING, named=_owned_by(apps.ReplicaSet, core.Pod)),
    Absence(apps.StatefulSet, _SPREADING, named=_owned_by(apps.StatefulSet, core.Pod)),
    Absence(
        apps.Deployment,
        "they are neither scaled nor rolled out",
        named=_owned_by(apps.Deployment, apps.ReplicaSet),
        simulation=True,
    ),
    Absence(
        apps.DaemonSet,
        "new nodes get no pods of theirs, and drains delete those there are",
        named=_owned_by(apps.DaemonSet, core.Pod),
        simulation=True,
    ),
    Absence(apps.Job, _NOT_REPLACED, named=_owned_by(apps.Job, core.Pod), simulation=True),
    Absence(apps.CronJob, "they start no more jobs", named=_owned_by(apps.CronJob, apps.Job), simulation=True),
    Absence(core.PriorityClass, "new pods that name one are refused", is_always_there=True, simulation=True),
    Absence(
        core.RuntimeClass,
        "new pods that name one lack its overhead and its node selector",
        named=_runtime_classes_of_pods,
        simulation=True,
    ),
    Absence(core.PodDisruptionBudget, "preemption and drains ignore disruption budgets"),
    Absence(storage.PersistentVolumeClaim, "pods that name claims fit nowhere", named=_claims_of_pods),
    Absence(storage.PersistentVolume, "pods with bound claims fit nowhere", named=_volumes_of_claims),
    Absence(storage.StorageClass, "claims cannot be provisioned", named=_classes_of_storage),
    Absence(storage.CSINode, "limits of volumes per node are not checked", named=_drivers_of_volumes),
    Absence(storage.CSIDriver, "capacities of storage are not checked"),
    Absence(storage.CSIStorageCapacity, "their drivers seem to have no storage left", named=_drivers_with_capacity),
    Absence(storage.VolumeAttachment, "volumes still attached to nodes that no pod uses are not counted"),
    Absence(resource.ResourceClaim, "pods that name them fit nowhere", named=_device_claims_of_pods),
    Absence(
        resource.ResourceClaimTemplate,
        "new pods that name one wait for their claims",
        named=_claim_templates_of_pods,
        simulation=True,
    ),
    Absence(resource.DeviceClass, "claims that name one cannot be allocated", named=_device_classes_of_claims),
    Absence(resource.ResourceSlice, "no node has a device", named=_devices_of_claims),
)
"""In the order in which they are reported. Quotas, limit ranges and autoscalers are for plans: no decision changes."""
