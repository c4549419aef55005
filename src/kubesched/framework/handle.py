"""What plugins are built with: the handle that each is given, and the registry of their factories.

The handle gives access to what is beside the pod and the nodes (other objects of the cluster) and to what a plugin may
set going: preemption, pods that wait at Permit, pods to be tried again. The in-tree registry is
`kubesched.scheduler.plugins.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Plugin
from kubesched.framework.groups import GroupCycle, GroupFeatures, PodGroupMembers, TrySchedule
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult
from kubesched.framework.status import Status
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import apps, core, resource, scheduling, storage
from kubesched.k8s.model.scheduling import AnyGroup


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
    def pod_disruption_budgets(self) -> Mapping[str, core.PodDisruptionBudget]: ...
    @property
    def pod_groups(self) -> Mapping[str, scheduling.PodGroup]: ...
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
    @property
    def stops_at_broken_budget(self) -> bool:
        """Whether a victim is taken off no further disruption budget once one had nothing left for it."""
        ...


class HeldPod(Protocol):
    """A pod that has its node, and that Permit plugins asked to wait."""

    @property
    def info(self) -> PodInfo: ...
    @property
    def node_name(self) -> str: ...


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

    @property
    def group_features(self) -> GroupFeatures:
        """What is on about pod groups."""
        ...

    def group_members(self, key: str) -> PodGroupMembers | None:
        """The pods that name the group of this key; None if none does, or groups are off. Of a group of groups, the
        pods of all groups below."""
        ...

    def group(self, key: str) -> AnyGroup | None:
        """The group of this key, of either kind."""
        ...

    def root_group(self, key: str) -> str:
        """The key of the group that it belongs to in the end: its own, where groups have no parents. Empty if a group
        on the way is not there."""
        ...

    def child_groups(self, key: str) -> Sequence[AnyGroup]:
        """The groups that name this one as their parent."""
        ...

    def is_preempting(self, uid: str) -> bool:
        """Whether victims of this pod, or of this group, are still being evicted."""
        ...

    def preempt_for_group(self, cycle: CycleState, group: GroupCycle, pod_group: AnyGroup, fits: TrySchedule) -> Status:
        """Looks for victims of lower priority without whom the group would fit; the cycle keeps who they are."""
        ...

    def preempt(
        self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses, limits: PreemptionLimits
    ) -> PostFilterResult:
        """Looks for a node where the pod would fit if pods of lower priority were evicted."""
        ...

    def waiting_pods(self) -> Sequence[HeldPod]:
        """The pods that Permit plugins asked to wait, in the order in which they began to."""
        ...

    def allow(self, uid: str, plugin_name: str) -> bool:
        """This plugin no longer asks the pod to wait; once none does, the pod is bound. False if it does not wait."""
        ...

    def reject(self, uid: str, plugin_name: str, message: str) -> bool:
        """A waiting pod is rejected; it goes back to the queue. False if it does not wait."""
        ...

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Pods that wait for another attempt are tried as soon as possible, whatever is left of their backoff."""
        ...

    def activate_group(self, key: str) -> None:
        """The same for all pods of a group that have no node when it comes to that."""
        ...


PluginFactory = Callable[[Any, Handle], Plugin]
"""(validated arguments or None, handle) -> plugin. A class whose constructor takes these two is one."""


class DuplicatePluginError(KubeschedError, ValueError):
    """Two plugins want the same name."""


class Registry(Mapping[str, PluginFactory]):
    """Factories by plugin name; a name stands for one plugin only."""

    def __init__(self, factories: Mapping[str, PluginFactory] | None = None) -> None:
        self._factories: dict[str, PluginFactory] = dict(factories or {})

    def __getitem__(self, name: str) -> PluginFactory:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    def merged_with(self, others: Mapping[str, PluginFactory]) -> Registry:
        twice = sorted(self._factories.keys() & others.keys())
        if twice:
            raise DuplicatePluginError(f"a plugin named {twice[0]} already exists")
        return Registry({**self._factories, **others})
