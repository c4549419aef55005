"""Filters that look at a node alone: its name, labels, taints, ports, conditions."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model import selectors, taints
from kubesched.k8s.model.core import Node, PodSpec
from kubesched.k8s.model.requests import CPU, MEMORY, to_nanos
from kubesched.older.plugins.rejection import Reason, ReasonedFilter, unresolvable

UNSCHEDULABLE = unresolvable("node(s) were unschedulable")
WRONG_HOST = unresolvable("node(s) didn't match the requested hostname")
NO_FREE_PORTS = Reason("node(s) didn't have free ports for the requested pod ports")
WRONG_LABELS = unresolvable("node(s) didn't match node selector")
SOME_TAINT = unresolvable("node(s) had taints that the pod didn't tolerate")
LABEL_PRESENCE = unresolvable("node(s) didn't have the requested labels")
NOT_READY = unresolvable("node(s) were not ready")
OUT_OF_DISK = unresolvable("node(s) were out of disk space")
NO_NETWORK = unresolvable("node(s) had unavailable network")


class OlderNodeUnschedulable(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        if not node.node.spec.unschedulable or taints.is_tolerated(taints.UNSCHEDULABLE_TAINT, pod.tolerations):
            return ()
        return (UNSCHEDULABLE,)


class OlderNodeName(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        wanted = pod.spec.node_name
        return (WRONG_HOST,) if wanted and wanted != node.name else ()


class OlderNodePorts(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        ports = pod.host_ports
        return (NO_FREE_PORTS,) if ports and node.has_conflicting_ports(ports) else ()


def fits_selector_and_affinity(spec: PodSpec, node: Node) -> bool:
    """Whether the pod's node selector and its required node affinity let it onto the node."""
    if not selectors.from_labels(spec.node_selector).matches(node.labels):
        return False
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    return required is None or selectors.from_node_selector(required).matches(node)


class TaintFilter(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        taint = taints.find_untolerated(node.node.spec.taints or (), pod.tolerations)
        if taint is None:
            return ()
        if not self.generation.names_the_taint:
            return (SOME_TAINT,)
        return (unresolvable(f"node(s) had taint {{{taint.key}: {taint.value}}}, that the pod didn't tolerate"),)


class CheckNodeCondition(ReasonedFilter):
    """Before taints said it: is the node ready, connected, and open for pods?"""

    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        found = []
        for condition in node.node.status.conditions or ():
            if condition.type == "Ready" and condition.status != "True":
                found.append(NOT_READY)
            elif condition.type == "OutOfDisk" and condition.status != "False" and self.generation.reads_out_of_disk:
                found.append(OUT_OF_DISK)
            elif condition.type == "NetworkUnavailable" and condition.status != "False":
                found.append(NO_NETWORK)
        if node.node.spec.unschedulable:
            found.append(UNSCHEDULABLE)
        return found


_PRESSURES = {
    "CheckNodeMemoryPressure": ("MemoryPressure", "node(s) had memory pressure"),
    "CheckNodeDiskPressure": ("DiskPressure", "node(s) had disk pressure"),
    "CheckNodePIDPressure": ("PIDPressure", "node(s) had pid pressure"),
}


class CheckNodePressure(ReasonedFilter):
    """One of the three; memory pressure keeps only pods away that ask for nothing."""

    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        condition, text = _PRESSURES[self.name]
        if condition == "MemoryPressure" and not is_best_effort(pod.spec):
            return ()
        states = {known.type: known.status for known in node.node.status.conditions or ()}
        return (unresolvable(text),) if states.get(condition) == "True" else ()


def is_best_effort(spec: PodSpec) -> bool:
    for container in spec.containers:
        if container.resources is not None:
            for amounts in (container.resources.requests, container.resources.limits):
                found = to_nanos(amounts, "resources")
                if any(found.get(name, 0) > 0 for name in (CPU, MEMORY)):
                    return False
    return True
