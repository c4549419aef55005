"""The words for a claim that cannot be used on any node: it is not there, has no volume, or none that suits it.

Next: `cause_of_places`, for volumes that are somewhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kubesched.explanation.cause import Cause
from kubesched.explanation.findings.finding import CauseKind
from kubesched.explanation.layout import all_of, any_of
from kubesched.k8s.model import selectors
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import (
    FILESYSTEM,
    NO_PROVISIONER,
    ClaimUse,
    claims_of,
    class_of_claim,
    class_of_volume,
    is_fully_bound,
    requested_storage,
    storage_of,
    waits_for_first_consumer,
)

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation

_NAMES_SHOWN = 4


def claim_causes(explanation: Explanation) -> Iterator[Cause]:
    """For each claim of the pod that cannot be used on any node, why."""
    objects = explanation.cluster.objects
    for use in claims_of(explanation.pod.pod):
        claim = objects.persistent_volume_claims.get(use.key)
        if claim is None:
            yield _missing_claim(explanation, use)
        elif claim.status.phase == "Lost":
            yield _claim(
                claim,
                f"has lost its volume {claim.spec.volume_name}, which does not exist",
                "Restore the volume, or delete the claim and let it be recreated (its data is gone).",
            )
        elif claim.metadata.deletion_timestamp is not None:
            yield _claim(claim, "is being deleted", "Create it again when it is gone.")
        elif is_fully_bound(claim):
            if claim.spec.volume_name not in objects.persistent_volumes:
                text = f"is bound to volume {claim.spec.volume_name}, which does not exist"
                yield _claim(claim, text, "Restore the volume, or delete the claim.")
        else:
            cause = _unbound(explanation, claim)
            if cause is not None:
                yield cause


def _missing_claim(explanation: Explanation, use: ClaimUse) -> Cause:
    fields = {"claim": use.key}
    if use.is_ephemeral:
        text = f"claim {use.name} for its ephemeral volume does not exist yet"
        return Cause(CauseKind.CLAIM, text, "kube-controller-manager creates it; see its events.", fields=fields)
    claims = explanation.cluster.objects.persistent_volume_claims
    others = [key.partition("/")[2] for key in claims if key.startswith(f"{use.namespace}/")]
    near = get_close_matches(use.name, others, 1, 0.6)
    hint = f"; there is {near[0]}" if near else ""
    text = f"claim {use.name} does not exist in namespace {use.namespace}{hint}"
    remedy = "Create it, or correct the name in the pod's volumes."
    return Cause(CauseKind.CLAIM, text, remedy, fields=fields)


def _unbound(explanation: Explanation, claim: PersistentVolumeClaim) -> Cause | None:
    """Why a claim has no volume; None for one that gets it where the pod goes."""
    objects = explanation.cluster.objects
    class_name = class_of_claim(claim)
    size = f"(asked for: {requested_storage(claim)}, {', '.join(claim.spec.access_modes or ())})"
    if claim.spec.volume_name:
        volume = objects.persistent_volumes.get(claim.spec.volume_name)
        state = "does not exist"
        if volume is not None:
            ref = volume.spec.claim_ref
            owner = "" if ref is None else f"{ref.namespace}/{ref.name}"
            is_taken = bool(owner) and owner != claim.key
            state = f"belongs to claim {owner}" if is_taken else "is not bound to it yet"
        text = f"names volume {claim.spec.volume_name}, which {state}"
        return _claim(claim, text, "Correct spec.volumeName of the claim, or free the volume.")
    if not class_name:
        text = f"is not bound: it has no storage class, and {unsuitable(objects.persistent_volumes, claim)} {size}"
        return _claim(claim, text, "Give it a storageClassName, or mark a class as the default and create it again.")
    storage_class = objects.storage_classes.get(class_name)
    if storage_class is None:
        known = sorted(objects.storage_classes)
        near = get_close_matches(class_name, known, 1, 0.5)
        there = f"; there is {any_of(known[:_NAMES_SHOWN])}" if known else "; there is none"
        text = f"is not bound: its storage class {class_name} does not exist{there}"
        meant = f"Did you mean {near[0]}? " if near else ""
        return _claim(claim, text, f"{meant}Create the class, or recreate the claim with another.")
    if waits_for_first_consumer(storage_class):
        return None
    if storage_class.provisioner in ("", NO_PROVISIONER):
        there = unsuitable(objects.persistent_volumes, claim)
        text = f"is not bound: class {class_name} has no provisioner, and {there} {size}"
        released = _released(_of_class(objects.persistent_volumes, claim))
        remedy = f"Create a PersistentVolume of class {class_name} that suits it"
        remedy += f", or remove spec.claimRef of {released.name} to use it again." if released is not None else "."
        return _claim(claim, text, remedy)
    text = f"is not bound: {storage_class.provisioner} has not made a volume of class {class_name} for it yet {size}"
    return _claim(claim, text, "See the events of the claim and the log of the provisioner.")


def _claim(claim: PersistentVolumeClaim, text: str, remedy: str) -> Cause:
    fields = {"claim": claim.key, "storageClass": class_of_claim(claim), "volume": claim.spec.volume_name}
    return Cause(CauseKind.CLAIM, f"claim {claim.name} {text}", remedy, fields=fields)


def unsuitable(volumes: Mapping[str, PersistentVolume], claim: PersistentVolumeClaim) -> str:
    """What is with the volumes of the claim's class, none of which it can have."""
    of_class = _of_class(volumes, claim)
    free = [volume for volume in of_class if volume.spec.claim_ref is None]
    of_which = "of it" if class_of_claim(claim) else "without one"
    if free:
        nearest = min(free, key=lambda volume: len(_against(volume, claim)))
        why = all_of(_against(nearest, claim)) or "cannot be reached from where the pod can run"
        if len(free) == 1:
            return f"its only free volume does not suit it: {nearest.name} {why}"
        return f"none of the {len(free)} free volumes {of_which} suits it: {nearest.name} {why}"
    released = _released(of_class)
    if released is not None:
        ref = released.spec.claim_ref
        former = "another claim" if ref is None else f"{ref.namespace}/{ref.name}"
        return f"no volume {of_which} is free: {released.name} is released, but its claimRef still names {former}"
    return f"no volume {of_which} is free"


def _of_class(volumes: Mapping[str, PersistentVolume], claim: PersistentVolumeClaim) -> list[PersistentVolume]:
    wanted = class_of_claim(claim)
    return [volume for _, volume in sorted(volumes.items()) if class_of_volume(volume) == wanted]


def _released(of_class: Sequence[PersistentVolume]) -> PersistentVolume | None:
    """One that would be free, if it did not remember the claim that it had, and none is free."""
    if any(volume.spec.claim_ref is None for volume in of_class):
        return None
    return next((volume for volume in of_class if volume.status.phase == "Released"), None)


def _against(volume: PersistentVolume, claim: PersistentVolumeClaim) -> list[str]:
    """Why the claim cannot have a free volume of its class, wherever that is."""
    spec, found = volume.spec, []
    if storage_of(spec.capacity) < requested_storage(claim):
        found.append(f"has {storage_of(spec.capacity)}")
    if not set(claim.spec.access_modes or ()) <= set(spec.access_modes or ()):
        found.append(f"allows {any_of(list(spec.access_modes or ('no access mode',)))} only")
    if (spec.volume_mode or FILESYSTEM) != (claim.spec.volume_mode or FILESYSTEM):
        found.append(f"has volumeMode {spec.volume_mode or FILESYSTEM}")
    if claim.spec.selector is not None and not _is_selected(volume, claim):
        found.append("has not the labels that the claim selects")
    if volume.metadata.deletion_timestamp is not None:
        found.append("is being deleted")
    elif volume.status.phase != "Available":
        found.append(f"is {volume.status.phase or 'not available yet'}")
    return found


def _is_selected(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    assert claim.spec.selector is not None
    try:
        return selectors.from_label_selector(claim.spec.selector).matches(volume.metadata.labels or {})
    except selectors.SelectorError:
        return False
