"""Add a node of which existing shape: the smallest node there is, of which an empty copy would take the pod.

A copy has the labels, taints and amounts of its model, a name and a hostname label of its own, and nothing that
belongs to the model's life: it is not cordoned and has no taints that say a node is not well.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.explanation.amounts import readable
from kubesched.explanation.changes.change import Change, ChangeKind, CreateNode, Proposal
from kubesched.explanation.changes.opening import LIFECYCLE_DOMAIN
from kubesched.explanation.changes.situation import Situation
from kubesched.explanation.findings.finding import HOSTNAME_LABEL
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Taint
from kubesched.k8s.model.requests import CPU, MEMORY, node_units
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_declared_features import NodeDeclaredFeatures

TRIES = 48
"""Shapes that are tried, the smallest first."""

_TO_STAY = (NodeAffinity.name, NodeDeclaredFeatures.name)
"""Plugins that would reject a copy for what they reject the model for."""
_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def add_node(situation: Situation) -> list[Change]:
    change = situation.what_if.first_that_helps(_proposals(situation), TRIES)
    return [change] if change is not None and change.node == change.proposal.node else []


def _proposals(situation: Situation) -> Iterator[Proposal]:
    name = _unused_name(situation)
    nodes = situation.cluster.nodes
    for row in _shapes(situation):
        model = situation.cluster.table.nodes[row]
        copy = _empty_copy(model, name)
        cpu, memory = nodes.at(row).allocatable(CPU), nodes.at(row).allocatable(MEMORY)
        yield Proposal(
            kind=ChangeKind.ADD_NODE,
            description=f"add a node like {model.name} ({readable(CPU, cpu)} cpu, {readable(MEMORY, memory)} memory)",
            node=name,
            actions=(CreateNode(copy, model.name),),
            details={"like": model.name, "manifest": _manifest(copy)},
        )


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


def _lasting_taints(node: Node) -> tuple[Taint, ...]:
    """The taints that a new node of the kind would have."""
    return tuple(taint for taint in node.spec.taints or () if not taint.key.startswith(LIFECYCLE_DOMAIN))


def _empty_copy(model: Node, name: str) -> Node:
    labels = dict(model.labels)
    if HOSTNAME_LABEL in labels:
        labels[HOSTNAME_LABEL] = name
    return Node(
        metadata=replace(model.metadata, name=name, uid="", labels=labels, annotations=None, creation_timestamp=None),
        spec=replace(model.spec, unschedulable=False, taints=_lasting_taints(model) or None),
        status=replace(model.status, images=None, conditions=None),
    )


def _unused_name(situation: Situation) -> str:
    """A name that no node has, and that no pod is nominated to."""
    cluster = situation.cluster
    name, number = "new-node", 1
    while name in cluster.table.rows or cluster.nominations.on(name):
        number += 1
        name = f"new-node-{number}"
    return name


def _manifest(node: Node) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(node)}
