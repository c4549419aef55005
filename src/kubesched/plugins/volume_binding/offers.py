"""A persistent volume as a claim sees it: what it offers, worked out once per volume and compared often.

Next: `volume_index` for where offers are kept, `suitability` for which of them suit a claim.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.model import quantity
from kubesched.model.amounts import ResourceList
from kubesched.model.quantity import Quantity
from kubesched.model.storage import PersistentVolume, PersistentVolumeClaim, VolumeNodeAffinity
from kubesched.model.volume_claims import class_of_volume
from kubesched.plugins.volume_binding.affinity import compile_affinity

FILESYSTEM = "Filesystem"

_NOTHING = quantity.from_int(0)


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """`traits` must be the claim's own; `label` is the one label, with its values, by which the volume names nodes,
    or None if it does so in another way or not at all."""

    volume: PersistentVolume
    name: str
    class_name: str
    capacity_nanos: int
    access_modes: frozenset[str]
    traits: tuple[str, str]
    is_leaving: bool
    is_available: bool
    label: tuple[str, tuple[str, ...]] | None

    @classmethod
    def of(cls, volume: PersistentVolume) -> Offer:
        spec = volume.spec
        return cls(
            volume=volume,
            name=volume.name,
            class_name=class_of_volume(volume),
            capacity_nanos=storage_of(spec.capacity).nanos,
            access_modes=frozenset(spec.access_modes or ()),
            traits=(spec.volume_mode or FILESYSTEM, spec.volume_attributes_class_name or ""),
            is_leaving=volume.metadata.deletion_timestamp is not None,
            is_available=volume.status.phase == "Available",
            label=single_label(spec.node_affinity),
        )


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    return storage_of(claim.spec.resources.requests) if claim.spec.resources is not None else _NOTHING


def storage_of(amounts: ResourceList | None) -> Quantity:
    amount = (amounts or {}).get("storage")
    return _NOTHING if amount is None else quantity.parse(amount)


def single_label(affinity: VolumeNodeAffinity | None) -> tuple[str, tuple[str, ...]] | None:
    """The label and its values, if the affinity asks for nothing but one of these values."""
    if affinity is None or affinity.required is None:
        return None
    terms = compile_affinity(affinity.required).terms
    if len(terms) != 1 or terms[0].error is not None or len(terms[0].labels) != 1:
        return None
    requirement = terms[0].labels[0]
    return (requirement.key, tuple(dict.fromkeys(requirement.values))) if requirement.operator == "In" else None
