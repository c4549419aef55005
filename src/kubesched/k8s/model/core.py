"""Pods, nodes, namespaces, services, disruption budgets, priority classes, as far as scheduling looks at them.

That is the core API group, and with it the small ones: policy and scheduling.

Next: `requests` for what a pod asks for, `selectors` and `taints` for who may go where.
"""

from __future__ import annotations

import msgspec

from kubesched.k8s.model.meta import (
    Int32,
    Int64,
    KubeObject,
    KubeStruct,
    LabelSelector,
    ObjectMeta,
    PodKey,
    ResourceList,
)
from kubesched.k8s.model.volumes import Volume

# -- Pods ------------------------------------------------------------------------------------------------------------


class ResourceClaimUse(KubeStruct, frozen=True):
    name: str
    request: str = ""


class ResourceRequirements(KubeStruct, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: tuple[ResourceClaimUse, ...] | None = None


class ContainerPort(KubeStruct, frozen=True):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerResizePolicy(KubeStruct, frozen=True):
    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRule(KubeStruct, frozen=True):
    action: str = ""


class EnvVarFileSource(KubeStruct, frozen=True):
    path: str = ""


class EnvVarSource(KubeStruct, frozen=True):
    file_key_ref: EnvVarFileSource | None = None


class EnvVar(KubeStruct, frozen=True):
    """Only where a value comes from: the value itself is never kept."""

    name: str = ""
    value_from: EnvVarSource | None = None


class Container(KubeStruct, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] | None = None
    resize_policy: tuple[ContainerResizePolicy, ...] | None = None
    env: tuple[EnvVar, ...] | None = None


class NodeSelectorRequirement(KubeStruct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(KubeStruct, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(KubeStruct, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(KubeStruct, frozen=True):
    weight: Int32
    preference: NodeSelectorTerm


class NodeAffinity(KubeStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None


class PodAffinityTerm(KubeStruct, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(KubeStruct, frozen=True):
    weight: Int32
    pod_affinity_term: PodAffinityTerm


class PodAffinity(KubeStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = None


class PodAntiAffinity(KubeStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = None


class Affinity(KubeStruct, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(KubeStruct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(KubeStruct, frozen=True):
    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodSchedulingGate(KubeStruct, frozen=True):
    name: str


class PodResourceClaim(KubeStruct, frozen=True):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(KubeStruct, frozen=True):
    pod_group_name: str | None = None


class PodSpec(KubeStruct, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = None
    scheduling_group: SchedulingGroup | None = None
    runtime_class_name: str | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    host_network: bool = False
    host_users: bool | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None


class PodTemplateSpec(KubeStruct, frozen=True):
    """What a controller makes its pods from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class PodCondition(KubeStruct, frozen=True):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerStatus(KubeStruct, frozen=True):
    name: str = ""
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(KubeStruct, frozen=True):
    name: str
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(KubeStruct, frozen=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(KubeStruct, frozen=True):
    resource_claim_name: str = ""
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] | None = None


class PodStatus(KubeStruct, frozen=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(KubeObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def pod_key(self) -> PodKey:
        return PodKey(f"{self.metadata.namespace}/{self.metadata.name}")

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def priority(self) -> int:
        """What the admission plugin resolved; a pod that never passed it counts as 0."""
        return self.spec.priority or 0

    @property
    def is_terminal(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None


# -- Nodes -----------------------------------------------------------------------------------------------------------


class Taint(KubeStruct, frozen=True):
    key: str
    effect: str
    value: str = ""


class NodeSpec(KubeStruct, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class ContainerImage(KubeStruct, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: Int64 = 0


class NodeCondition(KubeStruct, frozen=True):
    type: str
    status: str = ""


class NodeStatus(KubeStruct, frozen=True):
    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    images: tuple[ContainerImage, ...] | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(KubeObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}


# -- The rest of the group ---------------------------------------------------------------------------------------------


class Namespace(KubeObject, frozen=True):
    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}


class ServiceSpec(KubeStruct, frozen=True):
    selector: dict[str, str] | None = None


class Service(KubeObject, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(KubeStruct, frozen=True):
    replicas: Int32 | None = None
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None
    min_ready_seconds: Int32 = 0


class ReplicationController(KubeObject, frozen=True):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class PodDisruptionBudgetSpec(KubeStruct, frozen=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(KubeStruct, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(KubeObject, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class RuntimeClassOverhead(KubeStruct, frozen=True):
    pod_fixed: ResourceList | None = None


class RuntimeClassScheduling(KubeStruct, frozen=True):
    node_selector: dict[str, str] | None = None
    tolerations: tuple[Toleration, ...] | None = None


class RuntimeClass(KubeObject, frozen=True):
    """What an API server adds to pods that name it: what running them costs by itself, and where they can run."""

    overhead: RuntimeClassOverhead | None = None
    scheduling: RuntimeClassScheduling | None = None


class PriorityClass(KubeObject, frozen=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
