"""Where the volumes of a pod group's members are, and whether the group fits once they are elsewhere.

A volume that is bound has its zone; where racks of another zone have the room, neither a taint nor a label keeps the
group from them, but its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from kubesched.explanation.changes.what_if import ChangeKind, GroupWhatIf, Opening, Reluctance
from kubesched.explanation.findings.volumes import Place, volume_terms
from kubesched.explanation.layout import all_of, counted
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.k8s.model.selectors import HOSTNAME_LABEL
from kubesched.k8s.model.storage import PersistentVolume, VolumeNodeAffinity, claims_of
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.undo import UndoLog
from kubesched.scheduler.plugins.volume_zone import topologies_of_volume

_MOST_VALUES = 4
_NAMES_SHOWN = 3


def places_of_volumes(cluster: Cluster, pods: Sequence[PodInfo]) -> list[Place]:
    """The labels of nodes that bound volumes of these pods are reached from: each place once."""
    return list(dict.fromkeys(place for _, place in _placed_volumes(cluster, pods)))


def _placed_volumes(cluster: Cluster, pods: Iterable[PodInfo]) -> Iterator[tuple[PersistentVolume, Place]]:
    """Those on one machine's disk are left out: no node that is added is that machine."""
    objects = cluster.objects
    seen = set()
    for info in pods:
        for use in claims_of(info.pod):
            claim = objects.persistent_volume_claims.get(use.key)
            volume = None if claim is None else objects.persistent_volumes.get(claim.spec.volume_name)
            if volume is None or volume.name in seen:
                continue
            seen.add(volume.name)
            place = _place_of(volume)
            if place and all(key != HOSTNAME_LABEL for key, _ in place):
                yield volume, place


def _place_of(volume: PersistentVolume) -> Place:
    """Nothing if it is everywhere, or in places of more than one kind."""
    terms = volume_terms(volume)
    if len(terms) > 1:
        return ()
    labels = {topology.key: tuple(sorted(topology.values)) for topology in topologies_of_volume(volume)}
    required = [requirement for term in terms for requirement in term.labels if requirement.operator == "In"]
    labels |= {requirement.key: requirement.values for requirement in required if requirement.values}
    return tuple(sorted(labels.items()))


def move_volumes(what_if: GroupWhatIf, nodes: Sequence[Node]) -> Opening | None:
    """To another value of the label that says where they are, of those that nodes of the placement have."""
    volumes = list(_placed_volumes(what_if.cluster, what_if.pods))
    for key in sorted({key for _, place in volumes for key, _ in place}):
        there = sorted({node.labels[key] for node in nodes if key in node.labels})
        for value in there[:_MOST_VALUES]:
            away = [
                (volume, dict(place)[key]) for volume, place in volumes if value not in dict(place).get(key, (value,))
            ]
            moved = [_moved(volume, key, value) for volume, _ in away]
            if moved and what_if.fits_after(partial(_put_volumes, moved)):
                names = [volume.name for volume in moved[:_NAMES_SHOWN]]
                more = len(moved) - len(names)
                named = all_of([*names, counted(more, "other")] if more else names)
                from_where = " or ".join(sorted({one for _, values in away for one in values}))
                told = (
                    f"move the {'volume' if len(moved) == 1 else 'volumes'} {named} from {key}={from_where} to {value}"
                )
                return ChangeKind.MOVE_VOLUMES, told, "their data has to be copied, as from snapshots", Reluctance.MUCH
    return None


def _moved(volume: PersistentVolume, key: str, value: str) -> PersistentVolume:
    term = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, "In", (value,)),))
    affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))
    zones = {topology.key for topology in topologies_of_volume(volume)}
    labels = {name: text for name, text in (volume.metadata.labels or {}).items() if name not in zones}
    return replace(
        volume,
        metadata=replace(volume.metadata, labels=labels),
        spec=replace(volume.spec, node_affinity=affinity),
    )


def _put_volumes(volumes: Sequence[PersistentVolume], changes: UndoLog) -> None:
    for volume in volumes:
        changes.put_object(volume)
