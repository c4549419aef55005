"""Which claims a pod uses, of which class they are, and whether they are bound."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.core import Pod, PodSpec
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference
from kubesched.k8s.model.storage import (
    ClaimUse,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    claims_of,
    class_of_claim,
    class_of_volume,
    foreign_claim_message,
    is_fully_bound,
)
from kubesched.k8s.model.volumes import (
    EphemeralVolumeSource,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Volume,
)

POD = Pod(
    ObjectMeta("p", "ns", "uid-p"),
    PodSpec(
        volumes=(
            Volume("data", persistent_volume_claim=PersistentVolumeClaimVolumeSource("claim")),
            Volume("config"),
            Volume("tmp", ephemeral=EphemeralVolumeSource()),
        )
    ),
)
OLD_CLASS = {"volume.beta.kubernetes.io/storage-class": "old"}


def test_a_pod_uses_the_claims_it_names_and_those_of_its_ephemeral_volumes() -> None:
    assert list(claims_of(POD)) == [ClaimUse("ns", "claim"), ClaimUse("ns", "p-tmp", is_ephemeral=True)]
    assert [use.key for use in claims_of(POD)] == ["ns/claim", "ns/p-tmp"]


@pytest.mark.parametrize(
    ("namespace", "owners", "is_ours"),
    [
        pytest.param("ns", (OwnerReference(uid="uid-p", controller=True),), True, id="controlled by the pod"),
        pytest.param("ns", (OwnerReference(uid="uid-p"),), False, id="owned, but not controlled"),
        pytest.param("ns", (OwnerReference(uid="uid-q", controller=True),), False, id="controlled by another pod"),
        pytest.param("ns", None, False, id="without an owner"),
        pytest.param("other", (OwnerReference(uid="uid-p", controller=True),), False, id="of another namespace"),
    ],
)
def test_the_claim_of_an_ephemeral_volume_must_be_controlled_by_the_pod(
    namespace: str, owners: tuple[OwnerReference, ...] | None, is_ours: bool
) -> None:
    claim = PersistentVolumeClaim(ObjectMeta("p-tmp", namespace, owner_references=owners))
    message = f"PVC {namespace}/p-tmp was not created for pod ns/p (pod is not owner)"
    assert foreign_claim_message(POD, claim) == (None if is_ours else message)


def test_the_old_annotation_names_the_class_before_the_field_does() -> None:
    spec = PersistentVolumeClaimSpec(storage_class_name="new")
    assert class_of_claim(PersistentVolumeClaim(ObjectMeta("c"), spec)) == "new"
    assert class_of_claim(PersistentVolumeClaim(ObjectMeta("c", annotations=OLD_CLASS), spec)) == "old"
    assert class_of_claim(PersistentVolumeClaim(ObjectMeta("c"))) == ""
    volume = PersistentVolume(ObjectMeta("v", annotations=OLD_CLASS), PersistentVolumeSpec(storage_class_name="new"))
    assert class_of_volume(volume) == "old"
    assert class_of_volume(PersistentVolume(ObjectMeta("v"), volume.spec)) == "new"


def test_a_claim_is_bound_when_it_has_a_volume_and_the_controller_has_finished() -> None:
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    named = PersistentVolumeClaimSpec(volume_name="v")
    assert is_fully_bound(PersistentVolumeClaim(ObjectMeta("c", annotations=done), named))
    assert not is_fully_bound(PersistentVolumeClaim(ObjectMeta("c"), named))
    assert not is_fully_bound(PersistentVolumeClaim(ObjectMeta("c", annotations=done)))
