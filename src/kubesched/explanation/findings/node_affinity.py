"""Behind NodeAffinity: which labels and terms a node does not meet, and what it has in their place."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.explanation.findings.finding import HOSTNAME_LABEL, Fact
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, NodeTerm, Requirement, compile_node_term
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_affinity import NodeAffinity, node_selector_of

_Key = tuple[str | None, ...]


class UnmetNodeAffinity:
    """Facts by row; nodes with the same values of the labels in question share them."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._nodes = cluster.table.nodes
        self._selector = sorted((pod.spec.node_selector or {}).items())
        required = node_selector_of(pod.spec)
        self._has_terms = required is not None
        self._terms = [] if required is None else [compile_node_term(term) for term in required.node_selector_terms]
        self._labels = [key for key, _ in self._selector]
        self._labels.extend(requirement.key for term in self._terms for requirement in term.labels)
        self._asks_for_name = any(term.fields for term in self._terms)
        self._known: dict[_Key, tuple[Fact, ...]] = {}

    def of(self, row: int) -> tuple[Fact, ...]:
        node = self._nodes[row]
        labels = node.labels
        key = (node.name if self._asks_for_name else None, *(labels.get(label) for label in self._labels))
        if key not in self._known:
            self._known[key] = (*self._unmet_labels(node), *self._unmet_terms(node))
        return self._known[key]

    def _unmet_labels(self, node: Node) -> Iterator[Fact]:
        for key, value in self._selector:
            found = node.labels.get(key)
            if found != value:
                fields = {"nodeSelector": {key: value}, "found": found}
                yield Fact(NodeAffinity.name, f"nodeSelector {key}={value}{_has(key, found)}", fields)

    def _unmet_terms(self, node: Node) -> Iterator[Fact]:
        if not self._has_terms or any(
            (term.labels or term.fields) and term.matches(node.labels, node.name) for term in self._terms
        ):
            return
        for index, term in enumerate(self._terms):
            where = "required node affinity" if len(self._terms) == 1 else f"required node affinity, term {index + 1}"
            if term.error is not None:
                yield Fact(NodeAffinity.name, f"{where}: {term.error}", {"term": index, "error": term.error})
            for requirement, found in unmet(term, node):
                fields = {"term": index, "requirement": str(requirement), "found": found}
                yield Fact(NodeAffinity.name, f"{where}: {requirement}{_has(requirement.key, found)}", fields)
        if not self._terms:
            yield Fact(NodeAffinity.name, "the required node affinity has no term, and so matches no node")


def unmet(term: NodeTerm, node: Node) -> list[tuple[Requirement, str | None]]:
    """The requirements of a term that the node does not meet, each with what the node has."""
    labels = [(requirement, node.labels.get(requirement.key)) for requirement in term.labels]
    fields = [(requirement, node.name if requirement.key == NODE_NAME_FIELD else "") for requirement in term.fields]
    return [(requirement, found) for requirement, found in [*labels, *fields] if not requirement.matches(found)]


def _has(key: str, value: str | None) -> str:
    """What the node has instead. Not said of names: nodes of which the same is true should share a sentence."""
    if key in (NODE_NAME_FIELD, HOSTNAME_LABEL):
        return ""
    return f": the node has no label {key}" if value is None else f": the node has {key}={value}"
