"""From which nodes a persistent volume can be reached.

A volume's node affinity speaks of labels only: a term about a node's name is met by every node, because
kube-scheduler compares it with a node without a name. A volume of an in-tree plugin is judged by its translation on
the nodes whose kubelet has migrated that plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import csi_migration
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.selectors import Requirement
from kubesched.k8s.model.storage import CSINode, PersistentVolume, VolumeNodeAffinity
from kubesched.k8s.model.volume_matching import compile_affinity

NO_MATCHING_TERMS = "no matching NodeSelectorTerms"


@dataclass(frozen=True, slots=True)
class Reach:
    """(n_nodes,) from which nodes a volume can be reached; `errors` by row are nodes where that cannot be said."""

    rows: BoolArray
    errors: Mapping[int, str] = field(default_factory=dict)


def rows_matching(nodes: NodeTable, affinity: VolumeNodeAffinity | None) -> BoolArray:
    """(n_nodes,) which nodes meet a volume's node affinity as it is written."""
    if affinity is None or affinity.required is None:
        return np.ones(len(nodes), dtype=np.bool_)
    found = np.zeros(len(nodes), dtype=np.bool_)
    for term in compile_affinity(affinity.required).terms:
        if term.error is None:
            found |= rows_meeting(nodes, term.labels)
    return found


def rows_meeting(nodes: NodeTable, requirements: tuple[Requirement, ...]) -> BoolArray:
    """(n_nodes,) which nodes meet all of the requirements."""
    found = np.ones(len(nodes), dtype=np.bool_)
    for requirement in requirements:
        found &= nodes.matching(requirement)
    return found


def reach_of(nodes: NodeTable, csi_nodes: Mapping[str, CSINode], volume: PersistentVolume) -> Reach:
    """The nodes of the whole table that a bound volume can be reached from."""
    rows = rows_matching(nodes, volume.spec.node_affinity)
    plugin = csi_migration.plugin_of(volume.spec)
    if plugin is None or not plugin.is_migrated:
        return Reach(rows)
    migrated = np.fromiter(
        (csi_migration.is_migrated_on(plugin, csi_nodes.get(name)) for name in nodes.names),
        dtype=np.bool_,
        count=len(nodes),
    )
    if not migrated.any():
        return Reach(rows)
    try:
        translated = csi_migration.translate(volume)
    except csi_migration.TranslationError as mistake:
        errors = dict.fromkeys(np.flatnonzero(migrated).tolist(), f"could not translate pv: {mistake}")
        return Reach(rows, errors)
    return Reach(np.where(migrated, rows_matching(nodes, translated.node_affinity), rows))


def mismatch(volume: PersistentVolume, node: Node, csi_node: CSINode | None) -> str | None:
    """Why a bound volume cannot be reached from one node; raises TranslationError where that cannot be said."""
    affinity = volume.spec.node_affinity
    plugin = csi_migration.plugin_of(volume.spec)
    if plugin is not None and csi_migration.is_migrated_on(plugin, csi_node):
        affinity = csi_migration.translate(volume).node_affinity
    if affinity is None or affinity.required is None:
        return None
    compiled = compile_affinity(affinity.required)
    labels = node.labels
    for term in compiled.terms:
        if term.error is None and all(r.matches(labels.get(r.key)) for r in term.labels):
            return None
    return ", ".join(compiled.errors) or NO_MATCHING_TERMS
