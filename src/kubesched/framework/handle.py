"""What a plugin may look at beside the pod and the nodes: other objects of the cluster, and the preemption service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult
from kubesched.model import apps, core, policy, resource, storage


class Objects(Protocol):
    """Objects by key: `namespace/name`, or the bare name of cluster-wide ones. Read only."""

    @property
    def namespaces(self) -> Mapping[str, core.Namespace]: ...
    @property
    def services(self) -> Mapping[str, core.Service]: ...
    @property
    def replication_controllers(self) -> Mapping[str, core.ReplicationController]: ...
    @property
    def replica_sets(self) -> Mapping[str, apps.ReplicaSet]: ...
    @property
    def stateful_sets(self) -> Mapping[str, apps.StatefulSet]: ...
    @property
    def pod_disruption_budgets(self) -> Mapping[str, policy.PodDisruptionBudget]: ...
    @property
    def persistent_volumes(self) -> Mapping[str, storage.PersistentVolume]: ...
    @property
    def persistent_volume_claims(self) -> Mapping[str, storage.PersistentVolumeClaim]: ...
    @property
    def storage_classes(self) -> Mapping[str, storage.StorageClass]: ...
    @property
    def csi_nodes(self) -> Mapping[str, storage.CSINode]: ...
    @property
    def csi_drivers(self) -> Mapping[str, storage.CSIDriver]: ...
    @property
    def csi_storage_capacities(self) -> Mapping[str, storage.CSIStorageCapacity]: ...
    @property
    def volume_attachments(self) -> Mapping[str, storage.VolumeAttachment]: ...
    @property
    def resource_claims(self) -> Mapping[str, resource.ResourceClaim]: ...
    @property
    def resource_slices(self) -> Mapping[str, resource.ResourceSlice]: ...
    @property
    def device_classes(self) -> Mapping[str, resource.DeviceClass]: ...


class PreemptionLimits(Protocol):
    """How many candidate nodes a dry run of preemption looks for."""

    @property
    def min_candidate_nodes_percentage(self) -> int: ...
    @property
    def min_candidate_nodes_absolute(self) -> int: ...


class Handle(Protocol):
    @property
    def objects(self) -> Objects: ...

    @property
    def nodes(self) -> NodeTable:
        """The table of all nodes."""
        ...

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Labels of a namespace; empty if it is not known."""
        ...

    def is_preempting(self, uid: str) -> bool:
        """Whether evictions for this pod are still being asked for."""
        ...

    def preempt(self, cycle: Cycle, pod: PodInfo, statuses: NodeStatuses, limits: PreemptionLimits) -> PostFilterResult:
        """Looks for a node where evicting pods of lower priority makes room."""
        ...
