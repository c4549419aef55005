"""Correct what: a label or a resource that no node has, and that looks like a slip for one that some have.

Where it is no slip, the label may be missing from the nodes: `label_node` puts it on one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kubesched.explanation.changes.change import (
    Change,
    ChangeKind,
    PatchNode,
    PatchOperation,
    PatchPod,
    Proposal,
    Reluctance,
    put,
    remove,
)
from kubesched.explanation.changes.what_if import Situation
from kubesched.explanation.evidence import LEFT_OUT
from kubesched.explanation.findings.finding import HOSTNAME_LABEL, meant_resource, offered_resources
from kubesched.explanation.findings.node_affinity import BUILT_IN_LABELS, meant_value
from kubesched.explanation.layout import all_of
from kubesched.k8s.model.core import Node, ResourceRequirements
from kubesched.k8s.model.selectors import compile_node_term
from kubesched.scheduler.plugins.node_affinity import NodeAffinity, node_selector_of

_NODE_AFFINITY = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_OF_PROVIDERS = ("amazonaws.com", "karpenter.sh", "k8s.aws", "azure.com", "google.com", "kubernetes.io", "k8s.io")
"""Domains of labels that say what a machine is or where it stands: putting one on by hand would be a lie."""

Correction = tuple[str, list[PatchOperation]]
"""What is corrected to what, in words and as operations."""


def correct_slips(situation: Situation) -> list[Change]:
    """Labels and resources that no node has; nothing if one of them is no slip."""
    found: list[Correction] = []
    for corrections in (_selector(situation), _affinity(situation), _resources(situation)):
        for correction in corrections:
            if correction is None:
                return []
            found.append(correction)
    if not found:
        return []
    texts = [text for text, _ in found]
    proposal = Proposal(
        kind=ChangeKind.CORRECT,
        description=f"correct {' and '.join(texts)}",
        node=situation.name(0),
        actions=(PatchPod(situation.pod.key, tuple(operation for _, several in found for operation in several)),),
        details={"correct": texts},
        n_edits=len(texts),
        reluctance=Reluctance.NONE,
        cost_to_others="costs nobody anything, if that was meant",
    )
    change = situation.what_if.first_that_helps([proposal])
    return [] if change is None else [replace(change, proposal=replace(proposal, node=change.node))]


def _selector(situation: Situation) -> Iterator[Correction | None]:
    nodes = situation.cluster.table.nodes
    for key, value in sorted((situation.pod.spec.node_selector or {}).items()):
        if any(node.labels.get(key) == value for node in nodes):
            continue
        meant = meant_label(nodes, key, value)
        if meant is None:
            yield None
            continue
        operations = [remove("spec", "nodeSelector", key)] if meant[0] != key else []
        operations.append(put("spec", "nodeSelector", meant[0], value=meant[1]))
        yield f"nodeSelector {key}={value} to {meant[0]}={meant[1]}", operations


def _affinity(situation: Situation) -> Iterator[Correction | None]:
    """Of an affinity with one term, the values that no node has."""
    nodes = situation.cluster.table.nodes
    required = node_selector_of(situation.pod.spec)
    if required is None or len(required.node_selector_terms) != 1:
        return
    for position, requirement in enumerate(compile_node_term(required.node_selector_terms[0]).labels):
        if requirement.operator != "In" or any(requirement.matches(node.labels.get(requirement.key)) for node in nodes):
            continue
        values = {node.labels[requirement.key] for node in nodes if requirement.key in node.labels}
        meant = meant_value(requirement.key, requirement.values[0], values)
        if meant is None:
            yield None
            continue
        path = (*_NODE_AFFINITY, "nodeSelectorTerms", 0, "matchExpressions", position, "values")
        yield f"node affinity {requirement} to {requirement.key}={meant}", [put(*path, value=[meant])]


def _resources(situation: Situation) -> Iterator[Correction | None]:
    offered = offered_resources(situation.cluster)
    spec = situation.pod.spec
    for resource in sorted(situation.pod.resources.wanted):
        meant = meant_resource(resource, offered)
        if not meant:
            continue
        operations: list[PatchOperation] = []
        for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or ())):
            for index, container in enumerate(containers):
                asked = container.resources or ResourceRequirements()
                for kind, amounts in (("requests", asked.requests), ("limits", asked.limits)):
                    if amounts and resource in amounts:
                        path = ("spec", field, index, "resources", kind)
                        operations.append(remove(*path, resource))
                        operations.append(put(*path, meant, value=amounts[resource]))
        yield f"the resource {resource} to {meant}", operations


def meant_label(nodes: Sequence[Node], key: str, value: str) -> tuple[str, str] | None:
    """The label that nodes have and that this one may be a slip for; None if there is none, or several are as near."""
    values = {node.labels[key] for node in nodes if key in node.labels}
    if values:
        near = meant_value(key, value, values)
        return None if near is None else (key, near)
    keys = {label for node in nodes if value in node.labels.values() for label in node.labels}
    meant = meant_value("", key, keys)
    if meant is None or not any(node.labels.get(meant) == value for node in nodes):
        return None
    return meant, value


# -- labels that nodes could have --------------------------------------------------------------------------------------


def label_node(situation: Situation) -> list[Change]:
    """Puts the labels on a node that no node has, and that nothing but somebody's hand puts there."""
    nodes = situation.cluster.table.nodes
    wanted = dict(_asked_for(situation))
    absent = {key: value for key, value in wanted.items() if not any(node.labels.get(key) == value for node in nodes)}
    if not absent or not all(_is_put_by_hand(key) for key in absent):
        return []
    rows = situation.failures.only({NodeAffinity.name, LEFT_OUT}).tolist()
    unmarked = (row for row in rows if absent.keys().isdisjoint(nodes[row].labels))  # another value is not a gap
    change = situation.what_if.first_that_helps(_labelled(situation, row, absent) for row in unmarked)
    return [] if change is None else [change]


def _labelled(situation: Situation, row: int, labels: dict[str, str]) -> Proposal:
    name = situation.name(row)
    return Proposal(
        kind=ChangeKind.LABEL_NODE,
        description=f"label {name} with {all_of([f'{key}={value}' for key, value in labels.items()])}",
        node=name,
        actions=(PatchNode(name, tuple(put("metadata", "labels", key, value=v) for key, v in labels.items())),),
        details={"labels": labels},
        n_edits=len(labels),
        reluctance=Reluctance.OTHERS,
        cost_to_others="see that it is true of the node; other pods that ask for it may come, too",
    )


def _asked_for(situation: Situation) -> Iterator[tuple[str, str]]:
    yield from (situation.pod.spec.node_selector or {}).items()
    required = node_selector_of(situation.pod.spec)
    for term in () if required is None else required.node_selector_terms[:1]:
        for requirement in compile_node_term(term).labels:
            if requirement.operator == "In":
                yield requirement.key, requirement.values[0]


def _is_put_by_hand(label: str) -> bool:
    domain, slash, _ = label.rpartition("/")
    is_of_provider = bool(slash) and any(domain == known or domain.endswith(f".{known}") for known in _OF_PROVIDERS)
    return label not in BUILT_IN_LABELS and label != HOSTNAME_LABEL and not is_of_provider
