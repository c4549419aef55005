"""Every object that is neither a node nor a pod, by key. Implements `framework.Objects`.

Kinds of which there may be as many as pods are in maps that tell which keys changed, so that whoever keeps an index
over them pays for what changed.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, TypeVar

from kubesched.k8s.model import apps, core, resource, scheduling, storage
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.cluster.journal import ChangeLog

Known = TypeVar("Known", bound=KubeObject)


class ObjectMap(dict[str, Known]):
    """Objects by key; written through item assignment and `pop` alone, which are logged."""

    __slots__ = ("changed",)

    def __init__(self) -> None:
        super().__init__()
        self.changed: ChangeLog[str] = ChangeLog()
        """The keys of objects that came, changed or left."""

    def __setitem__(self, key: str, item: Known) -> None:
        super().__setitem__(key, item)
        self.changed.append(key)

    def pop(self, key: str, *default: Any) -> Any:
        self.changed.append(key)
        return super().pop(key, *default)


class ObjectStore:
    """Objects by kind and key."""

    def __init__(self) -> None:
        self.namespaces: dict[str, core.Namespace] = {}
        self.services: dict[str, core.Service] = {}
        self.replication_controllers: dict[str, core.ReplicationController] = {}
        self.replica_sets: dict[str, apps.ReplicaSet] = {}
        self.stateful_sets: dict[str, apps.StatefulSet] = {}
        self.pod_disruption_budgets: dict[str, core.PodDisruptionBudget] = {}
        self.priority_classes: dict[str, core.PriorityClass] = {}
        self.runtime_classes: dict[str, core.RuntimeClass] = {}
        self.pod_groups: ObjectMap[scheduling.PodGroup] = ObjectMap()
        self.composite_pod_groups: ObjectMap[scheduling.CompositePodGroup] = ObjectMap()
        self.workloads: dict[str, scheduling.Workload] = {}
        self.persistent_volumes: ObjectMap[storage.PersistentVolume] = ObjectMap()
        self.persistent_volume_claims: ObjectMap[storage.PersistentVolumeClaim] = ObjectMap()
        self.storage_classes: ObjectMap[storage.StorageClass] = ObjectMap()
        self.csi_nodes: ObjectMap[storage.CSINode] = ObjectMap()
        self.csi_drivers: dict[str, storage.CSIDriver] = {}
        self.csi_storage_capacities: ObjectMap[storage.CSIStorageCapacity] = ObjectMap()
        self.volume_attachments: ObjectMap[storage.VolumeAttachment] = ObjectMap()
        self.resource_claims: ObjectMap[resource.ResourceClaim] = ObjectMap()
        self.resource_claim_templates: dict[str, resource.ResourceClaimTemplate] = {}
        self.resource_slices: ObjectMap[resource.ResourceSlice] = ObjectMap()
        self.device_classes: dict[str, resource.DeviceClass] = {}
        self._by_kind: dict[type[KubeObject], MutableMapping[str, Any]] = {
            core.Namespace: self.namespaces,
            core.Service: self.services,
            core.ReplicationController: self.replication_controllers,
            apps.ReplicaSet: self.replica_sets,
            apps.StatefulSet: self.stateful_sets,
            core.PodDisruptionBudget: self.pod_disruption_budgets,
            core.PriorityClass: self.priority_classes,
            core.RuntimeClass: self.runtime_classes,
            scheduling.PodGroup: self.pod_groups,
            scheduling.CompositePodGroup: self.composite_pod_groups,
            scheduling.Workload: self.workloads,
            storage.PersistentVolume: self.persistent_volumes,
            storage.PersistentVolumeClaim: self.persistent_volume_claims,
            storage.StorageClass: self.storage_classes,
            storage.CSINode: self.csi_nodes,
            storage.CSIDriver: self.csi_drivers,
            storage.CSIStorageCapacity: self.csi_storage_capacities,
            storage.VolumeAttachment: self.volume_attachments,
            resource.ResourceClaim: self.resource_claims,
            resource.ResourceClaimTemplate: self.resource_claim_templates,
            resource.ResourceSlice: self.resource_slices,
            resource.DeviceClass: self.device_classes,
        }

    def __iter__(self) -> Iterator[KubeObject]:
        for known in self._by_kind.values():
            yield from known.values()

    def find(self, item: KubeObject) -> KubeObject | None:
        """The object of this kind and key as it is known, in whatever state."""
        found: KubeObject | None = self._by_kind[type(item)].get(item.key)
        return found

    def put(self, item: KubeObject) -> None:
        self._by_kind[type(item)][item.key] = item

    def remove(self, item: KubeObject) -> None:
        self._by_kind[type(item)].pop(item.key, None)
