"""Filters and scores that look at a node alone: its name, labels, taints, ports, conditions, images, annotations.

NodeAffinity and TaintToleration score like today's, on the scale of their version. NodeLabel: nodes must have some
labels and lack others, or are better if they do. ImageLocality counts the containers' images alone, between fixed
bounds. NodePreferAvoidPods: nodes whose annotation asks that pods of some controllers go elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import Scores, default_normalize_score
from kubesched.k8s.model import selectors, taints
from kubesched.k8s.model.core import Node, PodSpec, Toleration
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.requests import CPU, MEMORY, to_nanos
from kubesched.k8s.model.taints import PREFER_NO_SCHEDULE
from kubesched.older.plugins.rejection import OlderPlugin, Reason, ReasonedFilter, unresolvable

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


class OlderNodeAffinity(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        return () if fits_selector_and_affinity(pod.spec, node.node) else (WRONG_LABELS,)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
        preferred = None if affinity is None else affinity.preferred_during_scheduling_ignored_during_execution
        total = 0
        for term in preferred or ():
            if not term.weight:
                continue
            compiled = selectors.compile_node_term(term.preference)
            if compiled.error is not None:
                raise ValueError(compiled.error)
            # Fields are not looked at, and a preference without expressions matches no node.
            labels = node.node.labels
            if compiled.labels and all(r.matches(labels.get(r.key)) for r in compiled.labels):
                total += term.weight
        return total

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=False, highest=self.generation.highest_score)


class OlderTaintToleration(TaintFilter):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Taints that the pod would rather avoid."""
        tolerations = [known for known in pod.tolerations if _is_about_preference(known)]
        return sum(
            taint.effect == PREFER_NO_SCHEDULE and not taints.is_tolerated(taint, tolerations)
            for taint in node.node.spec.taints or ()
        )

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=True, highest=self.generation.highest_score)


def _is_about_preference(toleration: Toleration) -> bool:
    return toleration.effect in ("", PREFER_NO_SCHEDULE)


class NodeLabel(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        labels = node.node.labels
        has_all = all(label in labels for label in self.args.get("presentLabels") or ())
        lacks_all = all(label not in labels for label in self.args.get("absentLabels") or ())
        return () if has_all and lacks_all else (LABEL_PRESENCE,)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The share of preferences that are met; without any there is nothing to share, and the plugin breaks."""
        labels = node.node.labels
        present = self.args.get("presentLabelsPreference") or ()
        absent = self.args.get("absentLabelsPreference") or ()
        met = sum(label in labels for label in present) + sum(label not in labels for label in absent)
        return met * self.generation.highest_score // (len(present) + len(absent))


_MIB = 1024 * 1024
_LEAST_BYTES = 23 * _MIB
_MOST_BYTES = 1000 * _MIB


class OlderImageLocality(OlderPlugin):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        nodes = self.handle.nodes
        present = 0
        for container in pod.spec.containers:
            image = _with_tag(container.image)
            size_bytes = node.image_size(image)
            if size_bytes:
                present += int(float(size_bytes) * (nodes.image_node_count(image) / len(nodes)))
        most = _MOST_BYTES * (len(pod.spec.containers) if self.generation.images_by_container else 1)
        counted = _LEAST_BYTES if present < _LEAST_BYTES else min(present, most)
        return self.generation.highest_score * (counted - _LEAST_BYTES) // (most - _LEAST_BYTES)


def _with_tag(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


PREFER_AVOID_PODS_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_AVOIDED_KINDS = ("ReplicationController", "ReplicaSet")


class NodePreferAvoidPods(OlderPlugin):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        owner = controller_of(pod.pod.metadata)
        if owner is None or owner.kind not in _AVOIDED_KINDS:
            return self.generation.highest_score
        avoided = _avoided(node)
        return 0 if (owner.kind, owner.uid) in avoided else self.generation.highest_score


def _avoided(node: NodeInfo) -> set[tuple[str, str]]:
    """Kind and uid of the controllers; an annotation that cannot be read names none."""
    text = (node.node.metadata.annotations or {}).get(PREFER_AVOID_PODS_ANNOTATION)
    try:
        entries = (json.loads(text).get("preferAvoidPods") or []) if text else []
        controllers = [(entry.get("podSignature") or {}).get("podController") or {} for entry in entries]
        return {(controller.get("kind", ""), controller.get("uid", "")) for controller in controllers}
    except (ValueError, AttributeError, TypeError):
        return set()
