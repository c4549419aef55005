"""Zones of an in-tree persistent volume as the topology of its CSI driver.

The zone stands in the volume's node affinity, or, in older volumes, in its labels alone (several zones joined by `__`).
The affinity counts more. Keys of the beta kind (`failure-domain.beta.kubernetes.io/…`) are replaced, because new nodes
no longer carry such labels.

Next: `csi_migration`, which uses this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kubesched.k8s.model.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.k8s.model.storage import VolumeNodeAffinity

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE_DELIMITER = "__"


def translate_zones(
    affinity: VolumeNodeAffinity | None, labels: Mapping[str, str], topology_key: str
) -> VolumeNodeAffinity | None:
    """The node affinity with the driver's topology key in the place of the zone's."""
    terms = _terms(affinity)
    zone_key = _zone_key(terms, labels)
    if _has_values(terms, zone_key):
        terms = _with_key_replaced(terms, zone_key, topology_key)
    elif zone_key in labels:
        terms = _with_zones_added(terms, labels[zone_key].split(ZONE_DELIMITER), topology_key)
    if zone_key == BETA_ZONE and _has_values(terms, BETA_REGION):
        terms = _with_key_replaced(terms, BETA_REGION, REGION)
    return affinity if not terms else VolumeNodeAffinity(NodeSelector(terms))


def _terms(affinity: VolumeNodeAffinity | None) -> tuple[NodeSelectorTerm, ...]:
    if affinity is None or affinity.required is None:
        return ()
    return affinity.required.node_selector_terms


def _expressions(terms: tuple[NodeSelectorTerm, ...], key: str) -> Iterator[NodeSelectorRequirement]:
    for term in terms:
        for expression in term.match_expressions or ():
            if expression.key == key:
                yield expression


def _zone_key(terms: tuple[NodeSelectorTerm, ...], labels: Mapping[str, str]) -> str:
    """Which of the two zone labels this volume goes by."""
    for key in (ZONE, BETA_ZONE):
        if any(True for _ in _expressions(terms, key)):
            return key
    return BETA_ZONE if BETA_ZONE in labels and ZONE not in labels else ZONE


def _has_values(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    return any(expression.values for expression in _expressions(terms, key))


def _with_key_replaced(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    def renamed(expression: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return replace(expression, key=new) if expression.key == old else expression

    return tuple(
        replace(term, match_expressions=tuple(renamed(expression) for expression in term.match_expressions or ()))
        for term in terms
    )


def _with_zones_added(
    terms: tuple[NodeSelectorTerm, ...], zones: list[str], topology_key: str
) -> tuple[NodeSelectorTerm, ...]:
    known = tuple(sorted({zone.strip() for zone in zones} - {""}))
    if not known:
        return terms
    added = NodeSelectorRequirement(topology_key, "In", known)
    return tuple(
        replace(term, match_expressions=(*(term.match_expressions or ()), added))
        for term in terms or (NodeSelectorTerm(),)
    )
