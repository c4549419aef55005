"""What autoscalers of nodes read: Karpenter's NodePools, NodeClaims and NodeOverlays (v1 and v1beta1), the node class
of its provider for KWOK, and Cluster Autoscaler's ProvisioningRequests.

Scheduling looks at none of them. They say which nodes may come, which are on their way, and which may go, so whoever
plans for a cluster reads them.
"""

from __future__ import annotations

from kubesched.k8s.model.core import PodTemplateSpec, Taint
from kubesched.k8s.model.manifests import Kinds
from kubesched.k8s.model.meta import Amount, Int32, KubeObject, KubeStruct, ObjectMeta, ResourceList

NODE_POOL_LABEL = "karpenter.sh/nodepool"
"""The label of a node that says of which NodePool it is."""


class MachineRequirement(KubeStruct, frozen=True):
    """As in a node selector, with more operators, and of how many values there must be a choice."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None
    min_values: Int32 | None = None


class NodeClaimSpec(KubeStruct, frozen=True):
    taints: tuple[Taint, ...] | None = None
    startup_taints: tuple[Taint, ...] | None = None
    requirements: tuple[MachineRequirement, ...] | None = None


class NodeClaimTemplate(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeClaimSpec = NodeClaimSpec()


class NodePoolBudget(KubeStruct, frozen=True):
    """How many nodes may be disrupted at a time, for some reasons or any, always or at certain times."""

    nodes: str | int = "10%"
    reasons: tuple[str, ...] | None = None
    schedule: str | None = None
    duration: str | None = None


class NodePoolDisruption(KubeStruct, frozen=True):
    consolidation_policy: str = ""
    consolidate_after: str | None = None
    budgets: tuple[NodePoolBudget, ...] | None = None


class NodePoolSpec(KubeStruct, frozen=True):
    template: NodeClaimTemplate = NodeClaimTemplate()
    disruption: NodePoolDisruption = NodePoolDisruption()
    limits: ResourceList | None = None
    weight: Int32 | None = None
    replicas: Int32 | None = None


class NodePool(KubeObject, frozen=True):
    spec: NodePoolSpec = NodePoolSpec()


class ClaimCondition(KubeStruct, frozen=True):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class NodeClaimStatus(KubeStruct, frozen=True):
    node_name: str = ""
    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    conditions: tuple[ClaimCondition, ...] | None = None
    last_pod_event_time: str | None = None


class NodeClaim(KubeObject, frozen=True):
    spec: NodeClaimSpec = NodeClaimSpec()
    status: NodeClaimStatus = NodeClaimStatus()


class NodeOverlaySpec(KubeStruct, frozen=True):
    requirements: tuple[MachineRequirement, ...] | None = None
    price: Amount | None = None
    price_adjustment: Amount | None = None
    capacity: ResourceList | None = None
    weight: Int32 | None = None


class NodeOverlay(KubeObject, frozen=True):
    spec: NodeOverlaySpec = NodeOverlaySpec()


class KWOKNodeClass(KubeObject, frozen=True):
    """Says only how long nodes take to come, which matters to no plan of a cluster at rest."""


_OVER = ("Failed", "BookingExpired", "CapacityRevoked")


class TemplateName(KubeStruct, frozen=True):
    name: str = ""


class RequestedPods(KubeStruct, frozen=True):
    pod_template_ref: TemplateName = TemplateName()
    count: Int32 = 0


class ProvisioningRequestSpec(KubeStruct, frozen=True):
    provisioning_class_name: str = ""
    pod_sets: tuple[RequestedPods, ...] | None = None


class ProvisioningRequestStatus(KubeStruct, frozen=True):
    conditions: tuple[ClaimCondition, ...] | None = None


class ProvisioningRequest(KubeObject, frozen=True):
    """Asks for room for all of its pods together."""

    spec: ProvisioningRequestSpec = ProvisioningRequestSpec()
    status: ProvisioningRequestStatus = ProvisioningRequestStatus()

    @property
    def is_over(self) -> bool:
        """Whether nobody looks for room for it any more."""
        return any(one.type in _OVER and one.status == "True" for one in self.status.conditions or ())


class PodTemplate(KubeObject, frozen=True):
    template: PodTemplateSpec = PodTemplateSpec()


NODE_POOL_KINDS: Kinds = {
    ("karpenter.sh", "NodePool"): NodePool,
    ("karpenter.sh", "NodeClaim"): NodeClaim,
    ("karpenter.sh", "NodeOverlay"): NodeOverlay,
    ("karpenter.kwok.sh", "KWOKNodeClass"): KWOKNodeClass,
}
"""By API group and kind, as `manifests.KINDS` has the others."""

AUTOSCALING_KINDS: Kinds = {
    **NODE_POOL_KINDS,
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): ProvisioningRequest,
    ("", "PodTemplate"): PodTemplate,
}
