"""From a changed object to cluster events, for an update as specific as possible.

`events_of(old, new)` takes any object; without `old` it was added, without `new` deleted.

Next: `scheduling_queue`, whose `move_all` takes the events one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_UPDATE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
    ActionType,
    ClusterEvent,
    EventResource,
)
from kubesched.k8s.model.core import Node, NodeCondition, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.requests import effective_requests, is_resize_infeasible, to_nanos
from kubesched.k8s.model.resource import DeviceClass, ResourceClaim, ResourceSlice
from kubesched.k8s.model.scheduling import CompositePodGroup, PodGroup
from kubesched.k8s.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

Events = tuple[ClusterEvent, ...]

_ASSIGNED_UPDATE: Events = (ASSIGNED_POD_UPDATE,)
_UNSCHEDULED_UPDATE: Events = (UNSCHEDULED_POD_UPDATE,)

_OTHER_RESOURCES: Mapping[type[object], EventResource] = {
    PersistentVolume: EventResource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: EventResource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: EventResource.STORAGE_CLASS,
    CSINode: EventResource.CSI_NODE,
    CSIDriver: EventResource.CSI_DRIVER,
    CSIStorageCapacity: EventResource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: EventResource.VOLUME_ATTACHMENT,
    ResourceClaim: EventResource.RESOURCE_CLAIM,
    ResourceSlice: EventResource.RESOURCE_SLICE,
    DeviceClass: EventResource.DEVICE_CLASS,
    PodGroup: EventResource.POD_GROUP,
    CompositePodGroup: EventResource.COMPOSITE_POD_GROUP,
}


def events_of(old: KubeObject | None, new: KubeObject | None) -> Events:
    """Empty where no pod could care: an update of a node that changes nothing that counts, or an object of another
    kind."""
    if old is None and new is None:
        return ()
    if isinstance(old, Pod | None) and isinstance(new, Pod | None):
        return pod_events(old, new)
    if isinstance(old, Node | None) and isinstance(new, Node | None):
        return node_events(old, new)
    resource = _OTHER_RESOURCES.get(type(old or new))
    return () if resource is None else (ClusterEvent(resource, _plain_action(old, new)),)


def pod_events(old: Pod | None, new: Pod | None) -> Events:
    """A pod that gets its node counts as added: it was not there for other pods before."""
    if new is None:
        return () if old is None else (ASSIGNED_POD_DELETE if old.spec.node_name else UNSCHEDULED_POD_DELETE,)
    is_assigned = bool(new.spec.node_name)
    if old is None or (is_assigned and not old.spec.node_name):
        return (ASSIGNED_POD_ADD if is_assigned else UNSCHEDULED_POD_ADD,)
    if _says_only_something_else(old, new):
        return _ASSIGNED_UPDATE if is_assigned else _UNSCHEDULED_UPDATE
    resource = EventResource.ASSIGNED_POD if is_assigned else EventResource.UNSCHEDULABLE_POD
    changed = (
        (ActionType.UPDATE_POD_LABEL, old.labels != new.labels),
        (ActionType.UPDATE_POD_SCALE_DOWN, _asks_for_less(old, new)),
        (ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _lost_its_gates(old, new)),
        (ActionType.UPDATE_POD_TOLERATION, len(old.spec.tolerations or ()) != len(new.spec.tolerations or ())),
        (ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _claims(old) != _claims(new)),
    )
    actions = [action for action, did_change in changed if did_change]
    return tuple(ClusterEvent(resource, action) for action in actions or (ActionType.UPDATE,))


def node_events(old: Node | None, new: Node | None) -> Events:
    """An update that only renews heartbeats, images or the like makes no event at all."""
    if old is None or new is None:
        return (ClusterEvent(EventResource.NODE, _plain_action(old, new)),)
    changed = (
        (ActionType.UPDATE_NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (ActionType.UPDATE_NODE_ALLOCATABLE, _allocatable(old) != _allocatable(new)),
        (ActionType.UPDATE_NODE_LABEL, old.labels != new.labels),
        (ActionType.UPDATE_NODE_TAINT, (old.spec.taints or ()) != (new.spec.taints or ())),
        (ActionType.UPDATE_NODE_CONDITION, _conditions(old) != _conditions(new)),
        (ActionType.UPDATE_NODE_ANNOTATION, (old.metadata.annotations or {}) != (new.metadata.annotations or {})),
        (
            ActionType.UPDATE_NODE_DECLARED_FEATURE,
            (old.status.declared_features or ()) != (new.status.declared_features or ()),
        ),
    )
    return tuple(ClusterEvent(EventResource.NODE, action) for action, did_change in changed if did_change)


def _plain_action(old: object | None, new: object | None) -> ActionType:
    if old is None:
        return ActionType.ADD
    return ActionType.DELETE if new is None else ActionType.UPDATE


def _asks_for_less(old: Pod, new: Pod) -> bool:
    """Of any resource, in thousandths."""
    if _amount_fields(old) == _amount_fields(new):
        return False
    after = effective_requests(new)
    return any(
        name not in after or Quantity(nanos).milli_value > Quantity(after[name]).milli_value
        for name, nanos in effective_requests(old).items()
    )


def _amount_fields(pod: Pod) -> tuple[object, ...]:
    """All that the effective requests follow from."""
    spec, status = pod.spec, pod.status
    return (
        spec.containers,
        spec.init_containers,
        spec.resources,
        spec.overhead,
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        is_resize_infeasible(pod),
    )


def _says_only_something_else(old: Pod, new: Pod) -> bool:
    """Most updates do: a condition, an address. Seen at once where the rest is not even another object."""
    before, after = old.status, new.status
    return (
        old.spec is new.spec
        and old.metadata.labels is new.metadata.labels
        and before.container_statuses is after.container_statuses
        and before.init_container_statuses is after.init_container_statuses
        and before.resources is after.resources
        and before.allocated_resources is after.allocated_resources
        and before.resource_claim_statuses is after.resource_claim_statuses
        and before.extended_resource_claim_status is after.extended_resource_claim_status
        and is_resize_infeasible(old) == is_resize_infeasible(new)
    )


def _lost_its_gates(old: Pod, new: Pod) -> bool:
    return bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates


def _claims(pod: Pod) -> tuple[object, ...]:
    """The resource claims that controllers made for the pod."""
    extended = pod.status.extended_resource_claim_status
    return (
        pod.status.resource_claim_statuses or (),
        extended and (extended.resource_claim_name, extended.request_mappings or ()),
    )


def _allocatable(node: Node) -> dict[str, int]:
    return to_nanos(node.status.allocatable, "status.allocatable")


def _conditions(node: Node) -> dict[str, str]:
    conditions: tuple[NodeCondition, ...] = node.status.conditions or ()
    return {condition.type: condition.status for condition in conditions}
