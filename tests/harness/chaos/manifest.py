"""Objects from the settings of a step: `pod p0 cpu=2 priority=5 claim=c1` and the like.

Pods and nodes are few and small, so that they get in each other's way.
"""

from __future__ import annotations

from harness.chaos.api_server import NAMESPACE
from harness.chaos.trace import ChaosStep
from harness.chaos.turnstile import PERMIT_LABEL
from kubesched.k8s.model.core import (
    Affinity,
    Container,
    ContainerPort,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SchedulingGroup,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from kubesched.k8s.model.meta import LabelSelector, ObjectMeta
from kubesched.k8s.model.scheduling import (
    MODE_POD,
    MODE_POD_GROUP,
    BasicSchedulingPolicy,
    CompositeGangSchedulingPolicy,
    CompositePodGroup,
    CompositePodGroupSchedulingPolicy,
    CompositePodGroupSpec,
    DisruptionMode,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    TopologyConstraint,
    WholeOrSingle,
)
from kubesched.k8s.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from kubesched.k8s.model.volumes import (
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Volume,
    VolumeResourceRequirements,
)
from kubesched.testing.make import HOSTNAME, ZONE

_MODES = ("ReadWriteOnce",)

STORAGE_CLASSES = (
    StorageClass(
        metadata=ObjectMeta(name="local"),
        provisioner="kubernetes.io/no-provisioner",
        volume_binding_mode="WaitForFirstConsumer",
    ),
    StorageClass(
        metadata=ObjectMeta(name="made"),
        provisioner="disk.example.com",
        volume_binding_mode="WaitForFirstConsumer",
    ),
)
"""Volumes that lie ready on nodes, and volumes that are made where the pod goes."""


def pod_of(step: ChaosStep) -> Pod:
    labels = {"app": step.get("app", "web")}
    if step.get("permit"):
        labels[PERMIT_LABEL] = step.get("permit")
    claim = step.get("claim")
    return Pod(
        metadata=ObjectMeta(name=step.names[0], namespace=NAMESPACE, labels=labels),
        spec=PodSpec(
            containers=(_container(step),),
            priority=step.number("priority"),
            scheduler_name=step.get("scheduler", "default-scheduler"),
            preemption_policy="Never" if step.get("never") else None,
            scheduling_group=SchedulingGroup(step.get("group")) if step.get("group") else None,
            scheduling_gates=(PodSchedulingGate("hold"),) if step.get("gate") else None,
            node_selector={ZONE: step.get("zone")} if step.get("zone") else None,
            tolerations=(Toleration("spot", "Exists"),) if step.get("tolerates") else None,
            affinity=_affinity(step),
            topology_spread_constraints=_spread(step),
            volumes=(Volume("data", PersistentVolumeClaimVolumeSource(claim)),) if claim else None,
        ),
        status=PodStatus(phase="Pending"),
    )


def _container(step: ChaosStep) -> Container:
    port = step.number("port")
    return Container(
        "main",
        resources=ResourceRequirements(requests={"cpu": step.get("cpu", "1")}),
        ports=(ContainerPort(port, port),) if port else None,
    )


def _affinity(step: ChaosStep) -> Affinity | None:
    apart, near = step.get("apart"), step.get("near")
    if not apart and not near:
        return None
    return Affinity(
        pod_affinity=PodAffinity((_term(near, ZONE),)) if near else None,
        pod_anti_affinity=PodAntiAffinity((_term(apart, HOSTNAME),)) if apart else None,
    )


def _term(app: str, key: str) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, label_selector=LabelSelector({"app": app}))


def _spread(step: ChaosStep) -> tuple[TopologySpreadConstraint, ...] | None:
    app = step.get("spread")
    if not app:
        return None
    return (TopologySpreadConstraint(1, HOSTNAME, "DoNotSchedule", LabelSelector({"app": app})),)


def node_of(step: ChaosStep) -> Node:
    name = step.names[0]
    return Node(
        metadata=ObjectMeta(name=name, labels={HOSTNAME: name, ZONE: step.get("zone", "a")}),
        spec=NodeSpec(
            unschedulable=bool(step.get("cordoned")),
            taints=(Taint("spot", "NoSchedule"),) if step.get("tainted") else None,
        ),
        status=NodeStatus(allocatable={"cpu": step.get("cpu", "4"), "pods": step.get("pods", "10")}),
    )


def claim_of(step: ChaosStep) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=step.names[0], namespace=NAMESPACE),
        spec=PersistentVolumeClaimSpec(
            storage_class_name=step.get("class", "made"),
            access_modes=_MODES,
            resources=VolumeResourceRequirements(requests={"storage": "1Gi"}),
        ),
        status=PersistentVolumeClaimStatus("Pending"),
    )


def volume_of(name: str, node_name: str, class_name: str = "local") -> PersistentVolume:
    """On one node."""
    here = NodeSelectorTerm((NodeSelectorRequirement(HOSTNAME, "In", (node_name,)),))
    return PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            capacity={"storage": "1Gi"},
            access_modes=_MODES,
            storage_class_name=class_name,
            node_affinity=VolumeNodeAffinity(NodeSelector((here,))),
        ),
        status=PersistentVolumeStatus("Available"),
    )


def group_of(step: ChaosStep) -> PodGroup:
    """A gang of at least so many; `whole`: it is evicted whole; `near`: in one zone."""
    gang = step.number("gang")
    policy = PodGroupSchedulingPolicy(
        basic=None if gang else BasicSchedulingPolicy(), gang=GangSchedulingPolicy(gang) if gang else None
    )
    near = PodGroupSchedulingConstraints((TopologyConstraint(ZONE),)) if step.get("near") else None
    return PodGroup(
        metadata=ObjectMeta(name=step.names[0], namespace=NAMESPACE),
        spec=PodGroupSpec(
            policy,
            scheduling_constraints=near,
            disruption_mode=MODE_POD_GROUP if step.get("whole") else MODE_POD,
            priority=step.number("priority"),
            parent_composite_pod_group_name=step.get("parent"),
        ),
    )


def composite_of(step: ChaosStep) -> CompositePodGroup:
    """The same for groups."""
    gang = step.number("gang")
    policy = CompositePodGroupSchedulingPolicy(
        basic=None if gang else BasicSchedulingPolicy(), gang=CompositeGangSchedulingPolicy(gang) if gang else None
    )
    near = PodGroupSchedulingConstraints((TopologyConstraint(ZONE),)) if step.get("near") else None
    whole = WholeOrSingle()
    return CompositePodGroup(
        metadata=ObjectMeta(name=step.names[0], namespace=NAMESPACE),
        spec=CompositePodGroupSpec(
            step.get("parent"),
            scheduling_policy=policy,
            scheduling_constraints=near,
            disruption_mode=DisruptionMode(all=whole) if step.get("whole") else DisruptionMode(single=whole),
            priority=step.number("priority"),
        ),
    )


def budget_of(step: ChaosStep) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=step.names[0], namespace=NAMESPACE),
        spec=PodDisruptionBudgetSpec(LabelSelector({"app": step.get("app", "web")})),
        status=PodDisruptionBudgetStatus(step.number("allowed")),
    )
