"""Which persistent volumes suit a claim, wherever the pod goes.

Next: `matching`, which chooses among them node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.model import selectors
from kubesched.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.model.volume_claims import class_of_claim
from kubesched.plugins.volume_binding.offers import FILESYSTEM, Offer, requested_storage


@dataclass(frozen=True, slots=True)
class SuitableVolumes:
    """Positions in the list of offers: those already meant for the claim, by name, and the free ones, the smallest
    first and by name where they are of one size."""

    prebound: tuple[int, ...]
    free: tuple[int, ...]


def suitable_volumes(claim: PersistentVolumeClaim, offers: Sequence[Offer]) -> SuitableVolumes:
    """Raises SelectorError if the claim's selector cannot be understood."""
    wanted_nanos = requested_storage(claim).nanos
    wanted_class = class_of_claim(claim)
    wanted_modes = frozenset(claim.spec.access_modes or ())
    traits = (claim.spec.volume_mode or FILESYSTEM, claim.spec.volume_attributes_class_name or "")
    selector = selectors.from_label_selector(claim.spec.selector) if claim.spec.selector is not None else None
    prebound: list[tuple[str, int]] = []
    free: list[tuple[int, str, int]] = []
    for position, offer in enumerate(offers):
        if offer.capacity_nanos < wanted_nanos or offer.class_name != wanted_class or offer.traits != traits:
            continue
        if offer.is_leaving:
            continue
        if offer.volume.spec.claim_ref is not None:
            if is_bound_to(offer.volume, claim):
                prebound.append((offer.name, position))
        elif not offer.is_available or not wanted_modes <= offer.access_modes:
            continue
        elif selector is None or selector.matches(offer.volume.metadata.labels or {}):
            free.append((offer.capacity_nanos, offer.name, position))
    prebound.sort()
    free.sort()
    return SuitableVolumes(tuple(found[-1] for found in prebound), tuple(found[-1] for found in free))


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names this claim; a uid that the volume does not give is not compared."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.name, reference.namespace) == (claim.name, claim.namespace)
        and reference.uid in ("", claim.metadata.uid)
    )
