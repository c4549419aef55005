"""ServiceAffinity: pods of a service go to nodes with the same values of some labels, or are spread over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PreFilterResult, Scores
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.selectors import from_labels
from kubesched.older.plugins.rejection import Reason, ReasonedFilter
from kubesched.older.plugins.selector_spread import services_of

VIOLATED = Reason("node(s) didn't match service affinity")


@dataclass(frozen=True, slots=True)
class ServiceMates:
    """Pods with all labels of the pod, in its namespace, and the names of their nodes."""

    has_services: bool
    nodes_of_pods: Mapping[str, str]


class ServiceAffinity(ReasonedFilter):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        mates: dict[str, str] = {}
        for position in range(len(nodes)):
            node = nodes.at(position)
            mates |= {other.uid: node.name for other in node.pods if _is_mate(pod, other)}
        cycle.put(ServiceMates(bool(services_of(pod.pod, self.handle.objects)), mates))
        return PreFilterResult()

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        mates = cycle.get(ServiceMates)
        if _is_mate(pod, added):
            cycle.put(replace(mates, nodes_of_pods={**mates.nodes_of_pods, added.uid: node.name}))
        return OK

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        mates = cycle.get(ServiceMates)
        left = {uid: name for uid, name in mates.nodes_of_pods.items() if uid != removed.uid}
        cycle.put(replace(mates, nodes_of_pods=left))
        return OK

    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        labels: Sequence[str] = self.args.get("affinityLabels") or ()
        selected = pod.spec.node_selector or {}
        wanted = {label: selected[label] for label in labels if label in selected}
        mates = cycle.get(ServiceMates)
        if len(wanted) < len(labels) and mates.has_services:
            model = self._model_node(mates, node)
            found = {label: model[label] for label in labels if label in model}
            wanted = {**found, **wanted}
        return () if from_labels(wanted).matches(node.node.labels) else (VIOLATED,)

    def _model_node(self, mates: ServiceMates, node: NodeInfo) -> Mapping[str, str]:
        """The labels of a node where such a pod runs already."""
        here = {other.uid for other in node.pods}
        for uid, name in mates.nodes_of_pods.items():
            if name != node.name or uid in here:
                row = self.handle.nodes.row_of(name)
                return {} if row is None else self.handle.nodes.whole.at(row).node.labels
        return {}

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How many pods of the pod's first service the node has."""
        services = services_of(pod.pod, self.handle.objects)
        selector = from_labels(services[0].spec.selector) if services else None
        if selector is None or (not selector.requirements and not self.generation.has_predicates):
            return 0
        return sum(
            other.namespace == pod.namespace and not other.pod.is_terminating and selector.matches(other.labels)
            for other in node.pods
        )

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        labels: Sequence[str] = self.args.get("antiAffinityLabelsPreference") or ()
        found = [0.0] * len(nodes)
        for label in labels:
            for position, score in enumerate(self._by_label(label, nodes, scores.tolist())):
                found[position] += score / float(len(labels))
        return np.array([int(score) for score in found], dtype=np.int64)

    def _by_label(self, label: str, nodes: NodeTable, counts: list[int]) -> list[float]:
        """The fewer pods of the service share a node's value, the better; a node without a value is worst."""
        values = [nodes.at(position).node.labels.get(label) for position in range(len(nodes))]
        by_value: dict[str, int] = {}
        for value, count in zip(values, counts, strict=True):
            if value is not None:
                by_value[value] = by_value.get(value, 0) + count
        total = sum(counts)
        top = float(self.generation.highest_score)
        return [
            0.0 if value is None else top * ((total - by_value[value]) / total) if total > 0 else top
            for value in values
        ]


def _is_mate(pod: PodInfo, other: PodInfo) -> bool:
    return other.namespace == pod.namespace and from_labels(pod.labels).matches(other.labels)
