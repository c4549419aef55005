"""The operations of a workload, as its file writes them, and the error that says what is wrong with one.

Field names are those of scheduler_perf. A number can be given directly or as a parameter of the workload (`count: 5`,
`countParam: $initNodes`). Fields that are ours say so.

Next: `workload_file` reads them, `runner` runs them.
"""

from __future__ import annotations

import msgspec

from kubesched.k8s.errors import KubeschedError


class WorkloadError(KubeschedError, ValueError):
    """A workload cannot be read or run as it is written."""

    def __init__(self, source: str, where: str, problem: str) -> None:
        super().__init__(source, where, problem)
        self.source = source
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.where, self.problem) if part)


class Operation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One step of a workload."""

    opcode: str

    @property
    def is_measured(self) -> bool:
        """Whether a window of measurement opens here."""
        return False


class LabelNodePrepareStrategy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One label for every node; of several values, nodes take turns."""

    label_key: str
    label_value: str = ""
    label_values: tuple[str, ...] = ()


class UniqueNodeLabelStrategy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A label with another value on every node."""

    label_key: str


class CSINodeAllocatable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int | None = None


class NodeAllocatableStrategy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """More resources on every node, and a CSINode with these drivers."""

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, CSINodeAllocatable] = {}
    migrated_plugins: tuple[str, ...] = ()


class CreateNodesOp(Operation, frozen=True):
    count: int = 0
    count_param: str = ""
    node_template_path: str = ""
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None


class CreateNamespacesOp(Operation, frozen=True):
    """Namespaces `prefix-0`, `prefix-1` and so on."""

    prefix: str
    count: int = 0
    count_param: str = ""
    namespace_template_path: str = ""


class CreatePodsOp(Operation, frozen=True):
    """Without a namespace, pods go to one of their own: `namespace-` and the operation's number."""

    count: int = 0
    count_param: str = ""
    count_per_node_param: str = ""
    """Ours: the number of pods as a multiple of the number of nodes."""
    namespace: str | None = None
    pod_template_path: str = ""
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template_path: str = ""
    """With a volume template, claims are bound from the beginning; ours: without one, a volume is made for each claim
    once the scheduler has chosen a node."""
    skip_wait_to_completion: bool = False
    collect_metrics: bool = False
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = ""
    duration_param: str = ""

    @property
    def is_measured(self) -> bool:
        return self.collect_metrics


class CreatePodSetsOp(Operation, frozen=True):
    """The same pods in each of the namespaces `namespacePrefix-0`, `namespacePrefix-1` and so on."""

    namespace_prefix: str
    create_pods_op: CreatePodsOp
    count: int = 0
    count_param: str = ""

    @property
    def is_measured(self) -> bool:
        return self.create_pods_op.collect_metrics


class ArrivePodsOp(Operation, frozen=True):
    """Ours: pods arrive one by one at random times, and beside them others, a bunch at a time. What is measured is how
    long each pod of the first kind waits from its arrival until its binding is sent, if work takes as long as it took
    the processor here."""

    namespace: str
    beside_namespace: str
    count: int = 0
    count_param: str = ""
    per_second: int = 0
    per_second_param: str = ""
    pod_template_path: str = ""
    beside_pod_template_path: str = ""
    beside_bunch: int = 0
    beside_bunch_param: str = ""
    besides_per_second: int = 0
    besides_per_second_param: str = ""

    @property
    def is_measured(self) -> bool:
        return True


class DeletePodsOp(Operation, frozen=True):
    namespace: str
    label_selector: dict[str, str] = {}
    delete_pods_per_second: int = 0
    skip_wait_to_completion: bool = False


class CreateAnyOp(Operation, frozen=True):
    template_path: str
    namespace: str = ""
    count: int | None = None
    count_param: str = ""


class UpdateAnyOp(Operation, frozen=True):
    template_path: str
    namespace: str = ""
    count: int | None = None
    count_param: str = ""
    update_per_second: int = 0
    subresources: tuple[str, ...] = ()


class ChurnOp(Operation, frozen=True):
    """Goes on until the workload ends: `create` adds objects, `recreate` adds and deletes by turns."""

    template_paths: tuple[str, ...]
    mode: str = "create"
    number: int = 0
    namespace: str | None = None
    interval_milliseconds: int = 500


class BarrierOp(Operation, frozen=True):
    """Waits for the pods that no operation has waited for: until they are scheduled, or (`Attempted`) tried once."""

    namespaces: tuple[str, ...] = ()
    label_selector: dict[str, str] = {}
    stage_requirement: str = "Scheduled"


class SleepOp(Operation, frozen=True):
    duration: str = ""
    duration_param: str = ""


class StartCollectingMetricsOp(Operation, frozen=True):
    """Opens a window in which pods of these namespaces and labels count."""

    namespaces: tuple[str, ...]
    name: str = ""
    label_selector: dict[str, str] = {}

    @property
    def is_measured(self) -> bool:
        return True


class StopCollectingMetricsOp(Operation, frozen=True):
    """Closes the window."""


class CreateResourceDriverOp(Operation, frozen=True):
    """A slice of devices on each node whose name matches the pattern."""

    driver_name: str
    nodes: str
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""


class AllocResourceClaimsOp(Operation, frozen=True):
    """Allocates the claims of a namespace, or all, without pods that use them."""

    namespace: str = ""


OPERATIONS: dict[str, type[Operation]] = {
    "createNodes": CreateNodesOp,
    "createNamespaces": CreateNamespacesOp,
    "createPods": CreatePodsOp,
    "createPodSets": CreatePodSetsOp,
    "arrivePods": ArrivePodsOp,
    "deletePods": DeletePodsOp,
    "createAny": CreateAnyOp,
    "updateAny": UpdateAnyOp,
    "churn": ChurnOp,
    "barrier": BarrierOp,
    "sleep": SleepOp,
    "startCollectingMetrics": StartCollectingMetricsOp,
    "stopCollectingMetrics": StopCollectingMetricsOp,
    "createResourceDriver": CreateResourceDriverOp,
    "allocResourceClaims": AllocResourceClaimsOp,
}
