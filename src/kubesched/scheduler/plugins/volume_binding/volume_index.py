"""Persistent volumes where a claim looks for one: free ones by storage class, others by the claim that they name.

Next: `kubesched.k8s.model.volume_matching` for which of them suit a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import class_of_claim, class_of_volume
from kubesched.k8s.model.volume_matching import Offer
from kubesched.scheduler.plugins.object_changes import ObjectChanges

Shelf = dict[str, Offer]
"""Offers by the volume's name."""


class VolumeIndex:
    """Brought up to date by `refresh`; knows nothing of promises."""

    __slots__ = ("_by_claim", "_changes", "_free_by_class")

    def __init__(self) -> None:
        self._changes: ObjectChanges[PersistentVolume] = ObjectChanges()
        self._free_by_class: dict[str, Shelf] = {}
        self._by_claim: dict[str, Shelf] = {}

    def refresh(self, known: Mapping[str, PersistentVolume]) -> None:
        for before, now in self._changes.take(known):
            if before is not None:
                self._take_out(before)
            if now is not None:
                shelves, key = self._place_of(now)
                shelves.setdefault(key, {})[now.name] = Offer.of(now)

    def candidates(
        self, claims: Iterable[PersistentVolumeClaim], promised: Mapping[str, PersistentVolume]
    ) -> list[Offer]:
        """What one of the claims may get; a volume that was promised is offered as it was promised."""
        found: Shelf = {}
        for claim in claims:
            found.update(self._free_by_class.get(class_of_claim(claim), {}))
            found.update(self._by_claim.get(claim.key, {}))
        for name, volume in promised.items():
            if name in found:
                found[name] = Offer.of(volume)
        return list(found.values())

    def _take_out(self, volume: PersistentVolume) -> None:
        shelves, key = self._place_of(volume)
        shelf = shelves[key]
        del shelf[volume.name]
        if not shelf:
            del shelves[key]

    def _place_of(self, volume: PersistentVolume) -> tuple[dict[str, Shelf], str]:
        reference = volume.spec.claim_ref
        if reference is None:
            return self._free_by_class, class_of_volume(volume)
        return self._by_claim, f"{reference.namespace}/{reference.name}"
