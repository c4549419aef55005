"""Behind TaintToleration, NodeUnschedulable and NodePorts: taints, cordoned nodes, and who holds a host port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubesched.explanation.findings.finding import NEAR, CauseKind, Fact, Nearness
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import ContainerPort, Taint, Toleration
from kubesched.k8s.model.requests import is_extended
from kubesched.k8s.model.selectors import compile_node_term
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE_TAINT, is_tolerated
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_affinity import node_selector_of
from kubesched.scheduler.plugins.node_ports import ALL_ADDRESSES, NodePorts
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.taint_toleration import TaintToleration


class TakenPorts:
    """Facts by row: one for each wanted port and the pod that holds it."""

    def __init__(self, cluster: Cluster, pod: PodInfo, nominated_pods: Mapping[int, Sequence[PodInfo]]) -> None:
        self._pods = cluster.table.pods
        self._wanted = pod.host_ports
        self._nominated_pods = nominated_pods

    def of(self, row: int) -> tuple[Fact, ...]:
        holders = [*self._pods.on(row), *self._nominated_pods.get(row, ())]
        return tuple(
            _port_fact(wanted, holder)
            for wanted in self._wanted
            for holder in holders
            if any(is_same_port(wanted, held) for held in holder.host_ports)
        )


def is_same_port(one: ContainerPort, other: ContainerPort) -> bool:
    """Whether the two cannot be held on one node at the same time."""
    if one.host_port != other.host_port or one.protocol != other.protocol:
        return False
    addresses = {one.host_ip or ALL_ADDRESSES, other.host_ip or ALL_ADDRESSES}
    return len(addresses) == 1 or ALL_ADDRESSES in addresses


def port_text(port: ContainerPort) -> str:
    address = f"{port.host_ip}:" if port.host_ip and port.host_ip != ALL_ADDRESSES else ""
    return f"{address}{port.host_port}/{port.protocol}"


def _port_fact(port: ContainerPort, holder: PodInfo) -> Fact:
    fields = {"hostPort": port.host_port, "protocol": port.protocol, "hostIP": port.host_ip, "pod": holder.key}
    taken = f"host port {port_text(port)} is taken"
    return Fact(
        NodePorts.name, f"{taken} by {holder.key}", fields, NEAR, "", CauseKind.HOST_PORT, Nearness.LACKS, taken
    )


_LIFECYCLE = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
LEAVING_TAINTS = frozenset(
    {
        "ToBeDeletedByClusterAutoscaler",
        "DeletionCandidateOfClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)
"""What autoscalers and cloud providers put on nodes that are about to go."""
_PASSING_KEYS = LEAVING_TAINTS | {"karpenter.sh/unregistered"}
_EMPTY_WORDS = frozenset({"", "true", "false", "yes", "no", "present", "enabled", "exists"})
_PASSING_NAMES = frozenset({"agent-not-ready", "not-ready", "uninitialized", "unreachable", "startup-taint"})


class UntoleratedTaints:
    """Facts by row; nodes with the same taints share them."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._nodes = cluster.table.nodes
        self._tolerations = pod.tolerations
        self._pod = pod
        self._known: dict[tuple[Taint, ...], tuple[Fact, ...]] = {}

    def of(self, row: int) -> tuple[Fact, ...]:
        taints = self._nodes[row].spec.taints or ()
        if taints not in self._known:
            self._known[taints] = tuple(_fact(taint, self._pod) for taint in untolerated(taints, self._tolerations))
        return self._known[taints]


class Cordoned:
    """The same fact for every row."""

    _FACT = Fact(
        NodeUnschedulable.name,
        "the node is cordoned (spec.unschedulable)",
        {"unschedulable": True},
        NEAR,
        kind=CauseKind.CORDONED,
        nearness=Nearness.CLOSED,
    )

    def of(self, row: int) -> tuple[Fact, ...]:
        return (self._FACT,)


def untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> tuple[Taint, ...]:
    """All taints that keep the pod off the node."""
    return tuple(
        taint for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not is_tolerated(taint, tolerations)
    )


def taint_text(taint: Taint) -> str:
    """As kubectl writes it: `key=value:effect`."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def is_passing(taint: Taint) -> bool:
    """Whether the taint says that a node is not well, not there yet or about to go, rather than whom it is for."""
    _, slash, name = taint.key.rpartition("/")
    if taint.key.startswith(_LIFECYCLE) or taint.key in _PASSING_KEYS:
        return True
    return bool(slash) and name in _PASSING_NAMES


def is_meant_for(taint: Taint, pod: PodInfo) -> bool:
    """Whether the taint keeps what the pod asks for: a resource by its name, as `nvidia.com/gpu` does, or nodes that
    its node selector names in the same words, as `dedicated=ml` beside a taint `dedicated=ml`."""
    said = {taint.key, _last(taint.key), *({taint.value} if taint.value not in _EMPTY_WORDS else ())}
    wanted = {word for name in pod.resources.wanted if is_extended(name) for word in (name, _last(name))}
    for key, values in selected_labels(pod):
        if key == taint.key and taint.value in values:
            return True
        wanted.update(value for value in values if value not in _EMPTY_WORDS)
    return not said.isdisjoint(wanted)


def selected_labels(pod: PodInfo) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The labels that the pod asks nodes for, each with the values that do."""
    yield from ((key, (value,)) for key, value in (pod.spec.node_selector or {}).items())
    required = node_selector_of(pod.spec)
    for term in () if required is None else required.node_selector_terms:
        for requirement in compile_node_term(term).labels:
            if requirement.operator == "In":
                yield requirement.key, requirement.values


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _fact(taint: Taint, pod: PodInfo) -> Fact:
    fields = {"taint": {"key": taint.key, "value": taint.value, "effect": taint.effect}}
    kind, nearness = CauseKind.TAINT, Nearness.EXCLUDED
    if is_passing(taint):
        kind = CauseKind.CORDONED if taint.key == UNSCHEDULABLE_TAINT.key else CauseKind.NOT_READY
        nearness = Nearness.CLOSED
    distance = NEAR / 2 if is_meant_for(taint, pod) else NEAR
    text = f"taint {taint_text(taint)} is not tolerated"
    return Fact(TaintToleration.name, text, fields, distance, "", kind, nearness)
