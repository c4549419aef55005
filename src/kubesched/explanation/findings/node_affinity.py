"""Behind NodeAffinity: which labels and terms a node does not meet, and what it has in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from kubesched.explanation.findings.finding import HOSTNAME_LABEL, NEAR, CauseKind, Fact
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, NodeTerm, Requirement, compile_node_term
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_affinity import NodeAffinity, node_selector_of

_Key = tuple[str | None, ...]

BUILT_IN_LABELS = frozenset(
    {
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "node.kubernetes.io/windows-build",
    }
)
"""Labels that say which programs can run on a node."""
BUILT_IN = 3 * NEAR
LIKENESS = 0.75
"""From which share of equal letters on two words may be the same."""
_ARCHITECTURES = {"aarch64": "arm64", "arm": "arm64", "x86_64": "amd64", "x86-64": "amd64", "x64": "amd64"}
"""Names that others have for what Kubernetes, as Go does, calls otherwise."""
_ALIKE_BY_NATURE = frozenset({"zone", "region", "hostname", "instance-type", "zone-id"})


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
                asked = f"nodeSelector {key}={value}"
                fields = {"nodeSelector": {key: value}, "label": key, "found": found}
                yield _fact(f"{asked}{_has(key, found)}", fields, _distance(key, [value], found), asked)

    def _unmet_terms(self, node: Node) -> Iterator[Fact]:
        if not self._has_terms or any(
            (term.labels or term.fields) and term.matches(node.labels, node.name) for term in self._terms
        ):
            return
        for index, term in enumerate(self._terms):
            where = "required node affinity" if len(self._terms) == 1 else f"required node affinity, term {index + 1}"
            if term.error is not None:
                yield _fact(f"{where}: {term.error}", {"term": index, "error": term.error})
            for requirement, found in unmet(term, node):
                asked = f"{where}: {requirement}"
                fields = {"term": index, "requirement": str(requirement), "label": requirement.key, "found": found}
                distance = _distance(requirement.key, requirement.values, found) / len(self._terms)
                yield _fact(f"{asked}{_has(requirement.key, found)}", fields, distance, asked)
        if not self._terms:
            yield _fact("the required node affinity has no term, and so matches no node")


def requirements_of(pod: PodInfo) -> dict[str, Requirement]:
    """What the pod requires of labels, by how it is told."""
    required = node_selector_of(pod.spec)
    terms = [] if required is None else [compile_node_term(term) for term in required.node_selector_terms]
    return {str(requirement): requirement for term in terms for requirement in term.labels}


def unmet(term: NodeTerm, node: Node) -> list[tuple[Requirement, str | None]]:
    """The requirements of a term that the node does not meet, each with what the node has."""
    labels = [(requirement, node.labels.get(requirement.key)) for requirement in term.labels]
    fields = [(requirement, node.name if requirement.key == NODE_NAME_FIELD else "") for requirement in term.fields]
    return [(requirement, found) for requirement, found in [*labels, *fields] if not requirement.matches(found)]


def _fact(text: str, fields: dict[str, Any] | None = None, distance: float = NEAR, general: str = "") -> Fact:
    return Fact(NodeAffinity.name, text, fields or {}, distance, "", CauseKind.NODE_AFFINITY, general=general)


def _distance(label: str, wanted: Iterable[str], found: str | None) -> float:
    """What a machine is made of does not change; what somebody called it does, and may be a slip."""
    if label in BUILT_IN_LABELS:
        return BUILT_IN
    return NEAR / 2 if found is not None and any(is_slip(label, value, found) for value in wanted) else NEAR


@cache
def is_slip(label: str, wanted: str, found: str) -> bool:
    """Whether somebody who wrote the one may have meant the other. Places and machines have names that look alike."""
    _, _, name = label.rpartition("/")
    if label in BUILT_IN_LABELS or name in _ALIKE_BY_NATURE or wanted == found:
        return False
    return SequenceMatcher(None, wanted, found).ratio() >= LIKENESS


def meant_value(label: str, wanted: str, values: Iterable[str]) -> str | None:
    """The one value that may have been meant; None if there is none, or several are as near."""
    values = list(values)
    for known in (_ARCHITECTURES.get(wanted.lower()) if label in BUILT_IN_LABELS else None, wanted.lower()):
        if known != wanted and known in values:
            return known
    near = sorted(
        ((SequenceMatcher(None, wanted, value).ratio(), value) for value in values if is_slip(label, wanted, value)),
        reverse=True,
    )
    if not near or (len(near) > 1 and near[0][0] == near[1][0]):
        return None
    return near[0][1]


def _has(key: str, value: str | None) -> str:
    """What the node has instead. Not said of names: nodes of which the same is true should share a sentence."""
    if key in (NODE_NAME_FIELD, HOSTNAME_LABEL):
        return ""
    return f": the node has no label {key}" if value is None else f": the node has {key}={value}"
