"""Add a node of which existing shape: the smallest node there is, of which an empty copy would take the pod.

A copy has the labels, taints and amounts of its model, a name and a hostname label of its own, and nothing that
belongs to the model's life: it is not cordoned and has no taints that say a node is not well. Where no copy as it is
would do, one is tried that has what is asked for: the label, the size, no taint. What DaemonSets would run on a copy
is not free there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.explanation.changes.what_if import Change, ChangeKind, CreateNode, Proposal, Reluctance, Situation
from kubesched.explanation.findings.finding import HOSTNAME_LABEL, amount_of, comes_with_node
from kubesched.explanation.findings.node_affinity import BUILT_IN_LABELS
from kubesched.explanation.findings.taints import is_passing, taint_text, untolerated
from kubesched.explanation.findings.volumes import volume_terms
from kubesched.explanation.layout import all_of, exact, readable
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Taint
from kubesched.k8s.model.requests import CPU, MEMORY, PODS, is_extended, node_units
from kubesched.k8s.model.selectors import Requirement, compile_node_term
from kubesched.k8s.model.storage import claims_of
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_affinity import NodeAffinity, node_selector_of
from kubesched.scheduler.plugins.node_declared_features import NodeDeclaredFeatures

TRIES = 48
"""Shapes that are tried, the smallest first."""
AMENDED_TRIES = 4

_TO_STAY = (NodeAffinity.name, NodeDeclaredFeatures.name)
"""Plugins that would reject a copy for what they reject the model for."""
_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def add_node(situation: Situation) -> list[Change]:
    for proposals, n_most in ((_proposals(situation), TRIES), (_amended(situation), AMENDED_TRIES)):
        change = situation.what_if.first_that_helps(proposals, n_most)
        if change is not None and change.node == change.proposal.node:
            return [change]
    return []


def _proposals(situation: Situation) -> Iterator[Proposal]:
    name = next(unused_names(situation.cluster))
    for row in _shapes(situation):
        model = situation.cluster.table.nodes[row]
        yield _proposal(situation, row, empty_copy(model, name), [])


def taken_by_daemons(cluster: Cluster, row: int) -> dict[str, int]:
    """What pods take that run on every such node. One that is not there yet on this node is not known."""
    pods = [pod for pod in cluster.table.pods.on(row) if comes_with_node(pod)]
    resources = {PODS, *(resource for pod in pods for resource in pod.resources.requests)}
    return {resource: sum(amount_of(pod, resource) for pod in pods) for resource in sorted(resources)} if pods else {}


def _proposal(situation: Situation, row: int, copy: Node, amendments: list[str]) -> Proposal:
    model = situation.cluster.table.nodes[row]
    told = f"add a node like {model.name}"
    told += f", but {all_of(amendments)}" if amendments else f" ({machine_size(situation.cluster, row)})"
    return Proposal(
        kind=ChangeKind.ADD_NODE,
        description=told,
        node=copy.name,
        actions=(CreateNode(copy, model.name, taken_by_daemons(situation.cluster, row)),),
        details={"like": model.name, "manifest": _manifest(copy)},
        reluctance=Reluctance.OTHERS,
        cost_to_others="costs one more node",
    )


def machine_size(cluster: Cluster, row: int) -> str:
    """What a node is, for those who are to add another: its kind, if it says so, and what is allocatable."""
    kind = cluster.table.nodes[row].labels.get("node.kubernetes.io/instance-type", "")
    nodes = cluster.nodes.at(row)
    size = f"{readable(CPU, nodes.allocatable(CPU))} cpu, {readable(MEMORY, nodes.allocatable(MEMORY))} memory"
    return f"{kind}, {size}" if kind else size


def _shapes(situation: Situation) -> Iterator[int]:
    """One row for each shape that may do, by cpu, then memory, then name."""
    nodes = situation.cluster.nodes
    cpu, memory = nodes.allocatable(CPU), nodes.allocatable(MEMORY)
    wanted = situation.pod.resources.wanted
    hopeful = (cpu >= wanted.get(CPU, 0)) & (memory >= wanted.get(MEMORY, 0))
    for plugin in _TO_STAY:
        hopeful &= ~situation.failures.rejected_by(plugin)
    rows = sorted(np.flatnonzero(hopeful).tolist(), key=lambda row: (cpu[row], memory[row], nodes.names[row]))
    keys = (*_ZONES, *_topology_keys(situation.pod))
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        node = situation.cluster.table.nodes[row]
        allocatable = tuple(sorted(node_units(node.status.allocatable, "status.allocatable").items()))
        shape = (allocatable, _lasting_taints(node), *(node.labels.get(key) for key in keys))
        if shape not in seen:
            seen.add(shape)
            yield row


def _topology_keys(pod: PodInfo) -> Iterator[str]:
    """Labels that the pod's terms look at, but for the one that is every node's own."""
    constraints = pod.spec.topology_spread_constraints or ()
    terms = (*pod.affinity.required, *pod.affinity.required_anti)
    for key in (*(c.topology_key for c in constraints), *(term.topology_key for term in terms)):
        if key != HOSTNAME_LABEL:
            yield key


# -- copies that are better than their model ---------------------------------------------------------------------------


def _amended(situation: Situation) -> Iterator[Proposal]:
    """Copies of the nodes where least has to be otherwise, with what the pod asks for."""
    name = next(unused_names(situation.cluster))
    labels = dict(_wanted_labels(situation))
    models: dict[tuple[object, ...], tuple[int, int]] = {}
    for row, node in enumerate(situation.cluster.table.nodes):
        units = node_units(node.status.allocatable, "status.allocatable")
        short = tuple(r for r, wanted in situation.pod.resources.wanted.items() if units.get(r, 0) < wanted)
        other = tuple(key for key, value in labels.items() if node.labels.get(key) != value)
        taints = untolerated(_lasting_taints(node), situation.pod.tolerations)
        models.setdefault((short, other, taints), (_strain(short, other, taints), row))
    for _, row in sorted(models.values()):
        copy, amendments = _improved(situation, row, name, labels)
        if amendments:
            yield _proposal(situation, row, copy, amendments)


def _strain(short: tuple[str, ...], other: tuple[str, ...], taints: tuple[Taint, ...]) -> int:
    """How unlike its model a copy would be: machines of another make are further off than a taint less."""
    resources = sum(4 if is_extended(resource) else 1 for resource in short)
    labels = sum(5 if label in BUILT_IN_LABELS else 2 for label in other)
    return resources + labels + len(taints)


def _improved(situation: Situation, row: int, name: str, wanted_labels: dict[str, str]) -> tuple[Node, list[str]]:
    model = situation.cluster.table.nodes[row]
    copy = empty_copy(model, name)
    told: list[str] = []
    labels = {key: value for key, value in wanted_labels.items() if copy.labels.get(key) != value}
    told.extend(f"with {key}={value}" for key, value in labels.items())
    units = node_units(copy.status.allocatable, "status.allocatable")
    taken = taken_by_daemons(situation.cluster, row)
    needed = {r: wanted + taken.get(r, 0) for r, wanted in situation.pod.resources.wanted.items()}
    short = {r: amount for r, amount in needed.items() if units.get(r, 0) < amount}
    told.extend(f"with at least {readable(resource, wanted)} {resource}" for resource, wanted in short.items())
    against = untolerated(copy.spec.taints or (), situation.pod.tolerations)
    told.extend(f"without the taint {taint_text(taint)}" for taint in against)
    kept = tuple(taint for taint in copy.spec.taints or () if taint not in against)
    amounts: dict[str, Any] = {resource: exact(resource, wanted) for resource, wanted in short.items()}
    return (
        Node(
            metadata=replace(copy.metadata, labels={**copy.labels, **labels}),
            spec=replace(copy.spec, taints=kept or None),
            status=replace(copy.status, allocatable={**(copy.status.allocatable or {}), **amounts}),
        ),
        told,
    )


def _wanted_labels(situation: Situation) -> Iterator[tuple[str, str]]:
    """What the pod's node selector, affinity and volumes ask for, as labels that a new node could have."""
    yield from _labels_of_volumes(situation)
    required = node_selector_of(situation.pod.spec)
    terms = () if required is None else required.node_selector_terms
    for term in terms[:1]:
        yield from _as_labels(compile_node_term(term).labels)
    selector = (situation.pod.spec.node_selector or {}).items()
    yield from ((key, value) for key, value in selector if key != HOSTNAME_LABEL)  # no two nodes are called the same


def _labels_of_volumes(situation: Situation) -> Iterator[tuple[str, str]]:
    objects = situation.cluster.objects
    for use in claims_of(situation.pod.pod):
        claim = objects.persistent_volume_claims.get(use.key)
        volume = None if claim is None else objects.persistent_volumes.get(claim.spec.volume_name)
        if volume is not None:
            for term in volume_terms(volume)[:1]:
                yield from _as_labels(term.labels)


def _as_labels(requirements: tuple[Requirement, ...]) -> Iterator[tuple[str, str]]:
    for requirement in requirements:
        if requirement.operator == "In" and requirement.key != HOSTNAME_LABEL:
            yield requirement.key, requirement.values[0]
        elif requirement.operator == "Exists":
            yield requirement.key, ""
        elif requirement.operator in ("Gt", "Lt") and requirement.values[0].lstrip("-").isdigit():
            yield requirement.key, str(int(requirement.values[0]) + (1 if requirement.operator == "Gt" else -1))


# -- copies ------------------------------------------------------------------------------------------------------------


def _lasting_taints(node: Node) -> tuple[Taint, ...]:
    """The taints that a new node of the kind would have."""
    return tuple(taint for taint in node.spec.taints or () if not is_passing(taint))


def empty_copy(model: Node, name: str) -> Node:
    labels = dict(model.labels)
    if HOSTNAME_LABEL in labels:
        labels[HOSTNAME_LABEL] = name
    return Node(
        metadata=replace(model.metadata, name=name, uid="", labels=labels, annotations=None, creation_timestamp=None),
        spec=replace(model.spec, unschedulable=False, taints=_lasting_taints(model) or None),
        status=replace(model.status, images=None, conditions=None),
    )


def unused_names(cluster: Cluster) -> Iterator[str]:
    """Names that no node has, and that no pod is nominated to."""
    for number in count(1):
        name = "new-node" if number == 1 else f"new-node-{number}"
        if name not in cluster.table.rows and not cluster.nominations.on(name):
            yield name


def _manifest(node: Node) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(node)}
