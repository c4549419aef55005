"""Every object that is neither a node nor a pod, by key. Implements `framework.Objects`."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from kubesched.k8s.model import apps, core, resource, scheduling, storage
from kubesched.k8s.model.meta import KubeObject


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
        self.pod_groups: dict[str, scheduling.PodGroup] = {}
        self.workloads: dict[str, scheduling.Workload] = {}
        self.persistent_volumes: dict[str, storage.PersistentVolume] = {}
        self.persistent_volume_claims: dict[str, storage.PersistentVolumeClaim] = {}
        self.storage_classes: dict[str, storage.StorageClass] = {}
        self.csi_nodes: dict[str, storage.CSINode] = {}
        self.csi_drivers: dict[str, storage.CSIDriver] = {}
        self.csi_storage_capacities: dict[str, storage.CSIStorageCapacity] = {}
        self.volume_attachments: dict[str, storage.VolumeAttachment] = {}
        self.resource_claims: dict[str, resource.ResourceClaim] = {}
        self.resource_claim_templates: dict[str, resource.ResourceClaimTemplate] = {}
        self.resource_slices: dict[str, resource.ResourceSlice] = {}
        self.device_classes: dict[str, resource.DeviceClass] = {}
        self._by_kind: dict[type[KubeObject], MutableMapping[str, Any]] = {
            core.Namespace: self.namespaces,
            core.Service: self.services,
            core.ReplicationController: self.replication_controllers,
            apps.ReplicaSet: self.replica_sets,
            apps.StatefulSet: self.stateful_sets,
            core.PodDisruptionBudget: self.pod_disruption_budgets,
            core.PriorityClass: self.priority_classes,
            scheduling.PodGroup: self.pod_groups,
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
