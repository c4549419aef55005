"""Behind the volume plugins: where a claim's volume is or may be made, who uses it, and how many are attached.

VolumeBinding and VolumeZone go by places, NodeVolumeLimits and VolumeRestrictions by what is in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from kubesched.explanation.findings.finding import FAR, NEAR, CauseKind, Fact, Nearness
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.csi_migration import TranslationError
from kubesched.k8s.model.selectors import NodeTerm
from kubesched.k8s.model.storage import (
    NO_PROVISIONER,
    READ_WRITE_ONCE_POD,
    SELECTED_NODE_ANNOTATION,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    claims_of,
    class_of_claim,
    compile_affinity,
    is_fully_bound,
    requested_storage,
)
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.scheduler.plugins.node_volume_limits.ledger import (
    NO_LIMIT,
    LimitColumns,
    VolumeLedger,
    Volumes,
    volumes_of_pod,
)
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_binding.finding import Conflict
from kubesched.scheduler.plugins.volume_binding.matching import mismatch
from kubesched.scheduler.plugins.volume_restrictions import (
    DISK_CONFLICT,
    READ_WRITE_ONCE_POD_CONFLICT,
    VolumeRestrictions,
    conflicts,
)
from kubesched.scheduler.plugins.volume_zone import ZONE_CONFLICT, VolumeZone, topologies_of_volume

_ZONE_SUFFIX = "/zone"


class PlacedVolumes:
    """Facts by row behind VolumeBinding. Nodes with the same values of the labels in question share them."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._cluster = cluster
        objects = cluster.objects
        found = (objects.persistent_volume_claims.get(use.key) for use in claims_of(pod.pod))
        self._claims = [claim for claim in found if claim is not None]
        self._labels = sorted(self._labels_of_interest())
        self._known: dict[tuple[str | None, ...], tuple[Fact, ...]] = {}

    def of(self, row: int) -> tuple[Fact, ...]:
        node = self._cluster.table.nodes[row]
        key = (node.name if self._asks_for_name() else None, *(node.labels.get(label) for label in self._labels))
        if key not in self._known:
            self._known[key] = tuple(fact for claim in self._claims for fact in self._facts(claim, node))
        return self._known[key]

    def _facts(self, claim: PersistentVolumeClaim, node: Node) -> Iterator[Fact]:
        objects = self._cluster.objects
        if is_fully_bound(claim):
            volume = objects.persistent_volumes.get(claim.spec.volume_name)
            fact = _missing_volume(claim) if volume is None else self._unreachable(claim, volume, node)
        else:
            fact = self._not_to_be_had(claim, node)
        if fact is not None:
            yield fact

    def _unreachable(self, claim: PersistentVolumeClaim, volume: PersistentVolume, node: Node) -> Fact | None:
        try:
            if mismatch(volume, node, self._cluster.objects.csi_nodes.get(node.name)) is None:
                return None
        except TranslationError:
            return None
        terms = volume_terms(volume)
        place = " or ".join(map(term_text, terms)) or "nowhere"
        zone = zones_of(terms)
        fields = {
            "claim": claim.key,
            "volume": volume.name,
            "storageClass": volume.spec.storage_class_name,
            "zones": zone,
            "required": [term_text(term) for term in terms],
            "labels": sorted({r.key for term in terms for r in term.labels}),
            "found": {key: node.labels.get(key) for key in sorted({r.key for term in terms for r in term.labels})},
        }
        general = f"claim {claim.name}: its volume {volume.name} is only in {place}"
        return _placed(f"{general}{_has_instead(terms, node)}", fields, Conflict.NODE.value, general)

    def _not_to_be_had(self, claim: PersistentVolumeClaim, node: Node) -> Fact | None:
        """Why no volume can be found or made for the claim on this node."""
        class_name = class_of_claim(claim)
        storage_class = self._cluster.objects.storage_classes.get(class_name)
        fields: dict[str, Any] = {
            "claim": claim.key,
            "storageClass": class_name,
            "requested": str(requested_storage(claim)),
        }
        selected = (claim.metadata.annotations or {}).get(SELECTED_NODE_ANNOTATION)
        if selected is not None and selected != node.name:
            text = f"claim {claim.name}: its volume is being made for {selected}"
            return _placed(text, {**fields, "selectedNode": selected}, Conflict.BIND.value)
        if storage_class is None:
            return None
        if storage_class.provisioner in ("", NO_PROVISIONER):
            text = f"claim {claim.name}: no free volume of class {class_name} here, and none is made ({NO_PROVISIONER})"
            return _provisioned(text, fields, Conflict.BIND.value)
        allowed = allowed_places(storage_class)
        if allowed and not any(meets(term, node) for term in allowed):
            fields["allowedTopologies"] = [place_text(term) for term in allowed]
            fields["labels"] = sorted({key for term in allowed for key, _ in term})
            fields["zones"] = [v for term in allowed for k, vs in term for v in vs if k.endswith(_ZONE_SUFFIX)]
            places = " or ".join(fields["allowedTopologies"])
            general = f"claim {claim.name}: class {class_name} makes volumes only in {places}"
            return _provisioned(general, fields, Conflict.BIND.value)
        text = f"claim {claim.name}: {storage_class.provisioner} has not {requested_storage(claim)} left here"
        general_fields = {**fields, "provisioner": storage_class.provisioner}
        return Fact(
            VolumeBinding.name,
            text,
            general_fields,
            FAR / 2,
            Conflict.NOT_ENOUGH_SPACE.value,
            CauseKind.STORAGE_CAPACITY,
            Nearness.EXCLUDED,
        )

    def _asks_for_name(self) -> bool:
        return any(SELECTED_NODE_ANNOTATION in (claim.metadata.annotations or {}) for claim in self._claims)

    def _labels_of_interest(self) -> set[str]:
        objects = self._cluster.objects
        found: set[str] = set()
        for claim in self._claims:
            volume = objects.persistent_volumes.get(claim.spec.volume_name)
            if volume is not None:
                found.update(requirement.key for term in volume_terms(volume) for requirement in term.labels)
            storage_class = objects.storage_classes.get(class_of_claim(claim))
            if storage_class is not None:
                found.update(key for term in allowed_places(storage_class) for key, _ in term)
        return found


class LabelledVolumes:
    """Facts by row behind VolumeZone, which goes by the labels of volumes."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._nodes = cluster.table.nodes
        self._topologies = [
            (claim, volume, topology)
            for use in claims_of(pod.pod)
            if (claim := cluster.objects.persistent_volume_claims.get(use.key)) is not None
            and (volume := cluster.objects.persistent_volumes.get(claim.spec.volume_name)) is not None
            for topology in topologies_of_volume(volume)
        ]

    def of(self, row: int) -> tuple[Fact, ...]:
        labels = self._nodes[row].labels
        return tuple(
            Fact(
                VolumeZone.name,
                f"{general}: the node has {topology.key}={labels.get(topology.key)}",
                {
                    "claim": claim.key,
                    "volume": volume.name,
                    "label": topology.key,
                    "zones": sorted(topology.values),
                    "found": labels.get(topology.key),
                },
                FAR,
                ZONE_CONFLICT,
                CauseKind.VOLUME_PLACE,
                general=general,
            )
            for claim, volume, topology in self._topologies
            if labels.get(topology.key) not in topology.values
            for general in (
                f"claim {claim.name}: its volume {volume.name} is only in {topology.key} "
                f"{' or '.join(sorted(topology.values))}",
            )
        )


# -- words -------------------------------------------------------------------------------------------------------------


def volume_terms(volume: PersistentVolume) -> Sequence[NodeTerm]:
    """What a volume requires of a node; a node has to meet one of them."""
    affinity = volume.spec.node_affinity
    return () if affinity is None or affinity.required is None else compile_affinity(affinity.required).terms


def term_text(term: NodeTerm) -> str:
    return " and ".join(str(requirement) for requirement in (*term.labels, *term.fields)) or "no node"


def zones_of(terms: Sequence[NodeTerm]) -> list[str]:
    """The zones that terms name."""
    found = {
        value
        for term in terms
        for requirement in term.labels
        if requirement.key.endswith(_ZONE_SUFFIX) and requirement.operator == "In"
        for value in requirement.values
    }
    return sorted(found)


Place = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels, each with the values it may have."""


def allowed_places(storage_class: StorageClass) -> list[Place]:
    """Where a class makes volumes; nothing if that is everywhere."""
    return [
        tuple((expression.key, expression.values) for expression in term.match_label_expressions or ())
        for term in storage_class.allowed_topologies or ()
    ]


def meets(place: Place, node: Node) -> bool:
    return bool(place) and all(node.labels.get(key) in values for key, values in place)


def place_text(place: Place) -> str:
    return " and ".join(f"{key}={' or '.join(values)}" for key, values in place) or "no topology"


def _has_instead(terms: Sequence[NodeTerm], node: Node) -> str:
    keys = sorted({requirement.key for term in terms for requirement in term.labels})
    told = [f"{key}={node.labels[key]}" if key in node.labels else f"no label {key}" for key in keys]
    return f": the node has {', '.join(told)}" if told else ""


def _missing_volume(claim: PersistentVolumeClaim) -> Fact:
    fields = {"claim": claim.key, "volume": claim.spec.volume_name}
    text = f"claim {claim.name}: its volume {claim.spec.volume_name} does not exist"
    return _placed(text, fields, Conflict.VOLUME_DOES_NOT_EXIST.value)


def _placed(text: str, fields: dict[str, Any], reason: str, general: str = "") -> Fact:
    return Fact(VolumeBinding.name, text, fields, FAR, reason, CauseKind.VOLUME_PLACE, general=general)


def _provisioned(text: str, fields: dict[str, Any], reason: str) -> Fact:
    return Fact(VolumeBinding.name, text, fields, FAR, reason, CauseKind.VOLUME_PROVISIONING)


class AttachedVolumes:
    """Facts by row: for each driver, how many volumes the node holds and may hold."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._cluster = cluster
        self._pod = pod

    def of(self, row: int) -> tuple[Fact, ...]:
        ledger = self._ledger
        ledger.update(self._cluster.objects, [row], self._cluster.table.pods)
        brought = Counter(volume.driver for volume in self._wanted - ledger.page(row).in_use)
        return tuple(
            _limit_fact(driver, n_new, int(ledger.held(driver)[row]), int(limits[row]))
            for driver, n_new in sorted(brought.items())
            if (limits := self._limits.of(driver)) is not None
            and limits[row] != NO_LIMIT
            and limits[row] < ledger.held(driver)[row] + n_new
        )

    @cached_property
    def _wanted(self) -> Volumes:
        found = volumes_of_pod(self._cluster.objects, self._pod.pod, has_csi_node=True, is_new=True)
        return frozenset() if isinstance(found, Status) else found

    @cached_property
    def _ledger(self) -> VolumeLedger:
        ledger = VolumeLedger()
        ledger.refresh(self._cluster.objects, self._cluster.nodes)
        return ledger

    @cached_property
    def _limits(self) -> LimitColumns:
        limits = LimitColumns()
        limits.refresh(self._cluster.objects.csi_nodes, self._cluster.nodes)
        return limits


class VolumesInUse:
    """Facts by row: who holds the claim that one pod may use, or the disk that a node may have once."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._cluster = cluster
        self._pod = pod

    def of(self, row: int) -> tuple[Fact, ...]:
        return (*self._exclusive, *self._disks(row))

    @cached_property
    def _exclusive(self) -> tuple[Fact, ...]:
        """The same for every row: such a claim is for one pod of the whole cluster."""
        objects = self._cluster.objects
        found = []
        for use in claims_of(self._pod.pod):
            claim = objects.persistent_volume_claims.get(use.key)
            if claim is None or READ_WRITE_ONCE_POD not in (claim.spec.access_modes or ()):
                continue
            for holder in self._users(use.key):
                text = f"claim {claim.name} (ReadWriteOncePod) is in use by {holder.key} on {holder.spec.node_name}"
                text += ", which is terminating" if holder.pod.is_terminating else ""
                fields = {
                    "claim": claim.key,
                    "pod": holder.key,
                    "node": holder.spec.node_name,
                    "terminating": holder.pod.is_terminating,
                }
                found.append(_use_fact(text, fields, READ_WRITE_ONCE_POD_CONFLICT))
                break
        return tuple(found)

    def _users(self, key: str) -> Iterator[PodInfo]:
        for row in sorted(self._cluster.table.claims.get(key, {})):
            for pod in self._cluster.table.pods.on(row):
                if any(use.key == key for use in claims_of(pod.pod)):
                    yield pod

    def _disks(self, row: int) -> Iterator[Fact]:
        for volume in self._pod.spec.volumes or ():
            for other in self._cluster.table.pods.on(row):
                if conflicts(volume, other.pod):
                    taken = f"the disk of volume {volume.name} is in use on the node"
                    yield _use_fact(f"{taken} by {other.key}", {"pod": other.key}, DISK_CONFLICT, taken)
                    break


def _limit_fact(driver: str, n_new: int, n_held: int, limit: int) -> Fact:
    brings = f"brings {n_new} volume{'s' if n_new > 1 else ''}"
    fields = {"driver": driver, "brings": n_new, "attached": n_held, "limit": limit}
    return Fact(
        NodeVolumeLimits.name,
        f"{driver}: {brings}, {n_held} of {limit} are attached",
        fields,
        NEAR * (n_held + n_new - limit) / max(n_new, 1),
        "",
        CauseKind.VOLUME_LIMIT,
        Nearness.LACKS if limit >= n_new else Nearness.TOO_SMALL,
        f"{driver}: {brings}, and the node can attach no more",
    )


def _use_fact(text: str, fields: dict[str, Any], reason: str, general: str = "") -> Fact:
    return Fact(VolumeRestrictions.name, text, fields, NEAR, reason, CauseKind.VOLUME_IN_USE, Nearness.LACKS, general)
