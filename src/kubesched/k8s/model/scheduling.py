"""Pods that belong together (`scheduling.k8s.io`): workloads, pod groups, and groups of pod groups.

A PodGroup is one group of pods that are scheduled together; a Workload is what controllers make groups from, and no
scheduler reads it. v1.36 serves both as v1alpha2; v1.37 as v1beta1 and v1alpha3, with CompositePodGroup beside them.
A pod names its group in `spec.schedulingGroup`.

Where v1.37 writes a field in another way, both are read: `disruptionMode` is a word in v1alpha2, and since then a
union; `podGroupTemplateRef` became `workloadRef`.
"""

from __future__ import annotations

from kubesched.k8s.model.core import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.k8s.model.meta import Int32, Int64, KubeObject, KubeStruct

GROUP = "scheduling.k8s.io"
GROUP_VERSION = "v1alpha2"
POD_GROUP_SCHEDULED = "PodGroupScheduled"
POD_GROUP_INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""The same condition since v1.37."""

PROTECTION_FINALIZER = "scheduling.k8s.io/podgroup-protection"
"""Keeps a deleted PodGroup until its last pod is gone."""

MODE_POD = "Pod"
MODE_POD_GROUP = "PodGroup"


class BasicSchedulingPolicy(KubeStruct, frozen=True):
    """Pods are scheduled together as far as they fit."""


class GangSchedulingPolicy(KubeStruct, frozen=True):
    """At least so many pods, or none."""

    min_count: Int32 = 0


class CompositeGangSchedulingPolicy(KubeStruct, frozen=True):
    """At least so many groups, or none."""

    min_group_count: Int32 = 0


class PodGroupSchedulingPolicy(KubeStruct, frozen=True):
    """One of the two."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class CompositePodGroupSchedulingPolicy(KubeStruct, frozen=True):
    basic: BasicSchedulingPolicy | None = None
    gang: CompositeGangSchedulingPolicy | None = None


class TopologyConstraint(KubeStruct, frozen=True):
    """All pods on nodes with one value of this label."""

    key: str = ""


class PodGroupSchedulingConstraints(KubeStruct, frozen=True):
    topology: tuple[TopologyConstraint, ...] | None = None


class WholeOrSingle(KubeStruct, frozen=True):
    """Has no field."""


class DisruptionMode(KubeStruct, frozen=True):
    """Whom an eviction takes, as v1.37 writes it: one pod, or all of the group."""

    single: WholeOrSingle | None = None
    all: WholeOrSingle | None = None


class WorkloadPodGroupTemplateReference(KubeStruct, frozen=True):
    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(KubeStruct, frozen=True):
    workload: WorkloadPodGroupTemplateReference | None = None


class WorkloadReference(KubeStruct, frozen=True):
    """The same since v1.37."""

    workload_name: str = ""
    template_name: str = ""


class PodGroupSpec(KubeStruct, frozen=True):
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    disruption_mode: str | DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    pod_group_template_ref: PodGroupTemplateReference | None = None
    workload_ref: WorkloadReference | None = None
    parent_composite_pod_group_name: str = ""


class GroupCondition(KubeStruct, frozen=True):
    """As Kubernetes' general conditions are."""

    type: str = ""
    status: str = ""
    observed_generation: Int64 = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(KubeStruct, frozen=True):
    conditions: tuple[GroupCondition, ...] | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None


class PodGroup(KubeObject, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def group_key(self) -> str:
        """What it is known by among groups of either kind."""
        return self.key

    @property
    def min_count(self) -> int:
        """How many pods a gang needs; 0 for a group that takes what it gets."""
        gang = self.spec.scheduling_policy.gang
        return 0 if gang is None else gang.min_count

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def is_evicted_whole(self) -> bool:
        """Whether whoever evicts one of its pods has to evict all."""
        return _is_evicted_whole(self.spec.disruption_mode)

    @property
    def topology_key(self) -> str:
        """The label of which its pods' nodes need one value; empty if there is none."""
        return _topology_key(self.spec.scheduling_constraints)

    def condition(self, type_: str) -> GroupCondition | None:
        return next((one for one in self.status.conditions or () if one.type == type_), None)


def _is_evicted_whole(mode: str | DisruptionMode | None) -> bool:
    return mode.all is not None if isinstance(mode, DisruptionMode) else mode == MODE_POD_GROUP


def _topology_key(constraints: PodGroupSchedulingConstraints | None) -> str:
    topology = constraints.topology if constraints is not None else None
    return topology[0].key if topology else ""


class TypedLocalReference(KubeStruct, frozen=True):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class PodGroupTemplate(KubeStruct, frozen=True):
    name: str = ""
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    disruption_mode: str | DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class WorkloadSpec(KubeStruct, frozen=True):
    controller_ref: TypedLocalReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] | None = None


class Workload(KubeObject, frozen=True):
    """What groups are made from. Of v1.37's nested templates none is kept here: only controllers read them."""

    spec: WorkloadSpec = WorkloadSpec()


class CompositePodGroupSpec(KubeStruct, frozen=True):
    parent_composite_pod_group_name: str = ""
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroupStatus(KubeStruct, frozen=True):
    conditions: tuple[GroupCondition, ...] | None = None


class CompositePodGroup(KubeObject, frozen=True):
    """A group of groups (v1.37), which name it as their parent."""

    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: CompositePodGroupStatus = CompositePodGroupStatus()

    @property
    def group_key(self) -> str:
        """What it is known by among groups of either kind."""
        return composite_key(self.metadata.namespace, self.name)

    @property
    def min_count(self) -> int:
        """How many groups a gang needs; 0 for one that takes what it gets."""
        gang = self.spec.scheduling_policy.gang
        return 0 if gang is None else gang.min_group_count

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def is_evicted_whole(self) -> bool:
        """Whether whoever evicts a pod of one of its groups has to evict all of all."""
        return _is_evicted_whole(self.spec.disruption_mode)

    @property
    def topology_key(self) -> str:
        """The label of which the nodes of all its pods need one value; empty if there is none."""
        return _topology_key(self.spec.scheduling_constraints)


AnyGroup = PodGroup | CompositePodGroup

_MODES = ("Pod", MODE_POD_GROUP)


def problem_of_group(group: AnyGroup) -> str:
    """The field that no API server takes, and why; empty if there is none."""
    policy, constraints, mode = (
        group.spec.scheduling_policy,
        group.spec.scheduling_constraints,
        group.spec.disruption_mode,
    )
    if (policy.basic is None) == (policy.gang is None):
        return "spec.schedulingPolicy: exactly one of basic and gang is required"
    if policy.gang is not None and group.min_count < 1:
        field = "minCount" if isinstance(group, PodGroup) else "minGroupCount"
        return f"spec.schedulingPolicy.gang.{field}: must be at least 1"
    topology = (constraints.topology if constraints is not None else None) or ()
    if len(topology) > 1:
        return f"spec.schedulingConstraints.topology: must have at most 1 item, not {len(topology)}"
    if topology and not topology[0].key:
        return "spec.schedulingConstraints.topology[0].key: a label is required"
    if isinstance(mode, DisruptionMode) and (mode.single is None) == (mode.all is None):
        return "spec.disruptionMode: exactly one of single and all is required"
    if isinstance(mode, str) and mode and mode not in _MODES:
        return f"spec.disruptionMode: {mode} is none of {', '.join(_MODES)}"
    return ""


_COMPOSITE = "compositepodgroup/"


def composite_key(namespace: str, name: str) -> str:
    """What a group of groups is known by among groups; a PodGroup is known by `namespace/name` alone."""
    return f"{_COMPOSITE}{namespace}/{name}"


def is_composite(group_key: str) -> bool:
    return group_key.startswith(_COMPOSITE)


def plain_key(group_key: str) -> str:
    """`namespace/name` of a group of either kind."""
    return group_key.removeprefix(_COMPOSITE)


def has_fields_of_next_version(item: PodGroup | Workload) -> bool:
    """Whether it is written as v1.37 writes it, where that is not as before."""
    if isinstance(item, Workload):
        modes = [one.disruption_mode for one in item.spec.pod_group_templates or ()]
        return any(isinstance(mode, DisruptionMode) for mode in modes)
    spec = item.spec
    return isinstance(spec.disruption_mode, DisruptionMode) or spec.workload_ref is not None


def group_key_of(pod: Pod) -> str:
    """`namespace/name` of the PodGroup that the pod names; empty if it names none."""
    group = pod.spec.scheduling_group
    return f"{pod.metadata.namespace}/{group.pod_group_name}" if group is not None and group.pod_group_name else ""
