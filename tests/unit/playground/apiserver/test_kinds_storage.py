"""Volumes, claims, storage classes and CSI objects: what is refused, what stays, what the server adds."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import FakeLookup, change_mistakes, create, errors, resource_of

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.served_resource import Object, WriteContext

_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NO_TYPE = "Required value: must specify a volume type"
_NO_CLAIM = "Invalid value: \"Pod\": must be 'PersistentVolumeClaim' when referencing the default apiGroup"
_INLINE = "spec.source.inlineVolumeSpec"
_STORAGE = "storage.k8s.io/v1"


def _volume(**spec: Any) -> Object:
    return {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **spec}}


def _claim(**spec: Any) -> Object:
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}}


@pytest.mark.parametrize(
    ("group_version", "plural", "body", "expected"),
    [
        pytest.param("v1", "persistentvolumes", _volume(), [f"spec: {_NO_TYPE}"], id="no source"),
        pytest.param(
            "v1",
            "persistentvolumes",
            _volume(local={"path": "/mnt/../x"}),
            [
                "spec.local.path: Invalid value: \"/mnt/../x\": must not contain '..'",
                "spec.nodeAffinity: Required value: Local volume requires node affinity",
            ],
            id="a local volume on no node",
        ),
        pytest.param(
            "v1",
            "persistentvolumes",
            _volume(hostPath={"path": "/"}, nfs={"server": "s", "path": "/"}, persistentVolumeReclaimPolicy="Recycle"),
            [
                "spec.nfs: Forbidden: may not specify more than 1 volume type",
                "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
            ],
            id="two sources, and the root recycled",
        ),
        pytest.param(
            "v1",
            "persistentvolumes",
            _volume(csi={"driver": "Bad_", "volumeHandle": "h", "nodePublishSecretRef": {"name": "n"}}),
            [
                f'spec.csi.driver: Invalid value: "Bad_": {_SUBDOMAIN}',
                "spec.csi.nodePublishSecretRef.namespace: Required value",
            ],
            id="a driver that is no name",
        ),
        pytest.param(
            "v1",
            "persistentvolumeclaims",
            _claim(dataSourceRef={"kind": "Pod", "name": ""}),
            [
                "spec.dataSource.name: Required value",
                f"spec.dataSource: {_NO_CLAIM}",
                "spec.dataSourceRef.name: Required value",
                f"spec.dataSourceRef: {_NO_CLAIM}",
            ],
            id="a source of data that is none",
        ),
        pytest.param(
            _STORAGE,
            "volumeattributesclasses",
            {},
            [
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ],
            id="a class of no attributes",
        ),
        pytest.param(
            _STORAGE,
            "csidrivers",
            {"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "a"}], "fsGroupPolicy": "Some"}},
            [
                'spec.fsGroupPolicy: Unsupported value: "Some": '
                'supported values: "File", "None", "ReadWriteOnceWithFSType"',
                'spec.tokenRequests[1].audience: Duplicate value: "a"',
            ],
            id="a driver with two tokens for one",
        ),
        pytest.param(
            _STORAGE,
            "volumeattachments",
            {"spec": {"attacher": "csi.x", "nodeName": "n", "source": {"inlineVolumeSpec": _volume()["spec"]}}},
            [
                f"{_INLINE}.capacity: Forbidden: may not be specified in the context of inline volumes",
                f"{_INLINE}.csi: Required value: has to be specified in the context of inline volumes",
                f"{_INLINE}: {_NO_TYPE}",
            ],
            id="an inline volume",
        ),
    ],
)
def test_what_is_refused(group_version: str, plural: str, body: Object, expected: list[str]) -> None:
    assert errors(resource_of(group_version, plural), {"metadata": {"name": "x"}, **body}) == expected


def test_the_source_of_a_volume_stays() -> None:
    before = _volume(hostPath={"path": "/a", "type": ""})
    (found,) = change_mistakes(
        resource_of("v1", "persistentvolumes"), {"metadata": {"name": "x"}, **before}, {"spec.hostPath.path": "/b"}
    )
    what, _, lines = found.partition("\n")
    fixed = "spec.persistentvolumesource is immutable after creation"
    assert what == f"spec.persistentvolumesource: Forbidden: {fixed}"
    assert '-  "Path": "/a",\n+  "Path": "/b",' in lines


def test_a_claim_names_its_source_in_both_ways() -> None:
    claims = resource_of("v1", "persistentvolumeclaims")
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
    stored, _ = create(claims, {"metadata": {"name": "x"}, **_claim(dataSourceRef=source)})
    assert stored["spec"]["dataSource"] == stored["spec"]["dataSourceRef"] == source
    stored, _ = create(claims, {"metadata": {"name": "x"}, **_claim(dataSource={"kind": "Pod", "name": "p"})})
    assert "dataSource" not in stored["spec"]
    elsewhere = {**source, "namespace": "other"}
    stored, _ = create(claims, {"metadata": {"name": "x"}, **_claim(dataSourceRef=elsewhere)})
    assert "dataSourceRef" not in stored["spec"]


@pytest.mark.parametrize(
    ("phase", "expansion", "why"),
    [
        ("Pending", True, "Only bound persistent volume claims can be expanded"),
        ("Bound", False, "only dynamically provisioned pvc can be resized and the storageclass .* must support resize"),
        ("Bound", True, ""),
    ],
)
def test_who_may_grow(phase: str, expansion: bool, why: str) -> None:
    claims = resource_of("v1", "persistentvolumeclaims")
    storage_class = {"metadata": {"name": "fast"}, "provisioner": "p", "allowVolumeExpansion": expansion}
    lookup = FakeLookup({"storageclasses.storage.k8s.io": [storage_class]})
    old = {"metadata": {"name": "c"}, **_claim(storageClassName="fast"), "status": {"phase": phase}}
    new = {**old, "spec": {**old["spec"], "resources": {"requests": {"storage": "2Gi"}}}}
    context = WriteContext(lookup, now="2026-01-01T00:00:00Z")
    if not why:
        claims.validate_admission(new, old, context)
        return
    with pytest.raises(StatusError, match=why) as refused:
        claims.validate_admission(new, old, context)
    assert refused.value.code == 403


def test_storage_is_protected_while_used() -> None:
    stored, _ = create(
        resource_of(_STORAGE, "volumeattributesclasses"),
        {"metadata": {"name": "gold"}, "driverName": "csi.x", "parameters": {"iops": "5"}},
    )
    assert stored["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]


def test_the_newest_default_class_is_taken_and_of_two_the_first_by_name() -> None:
    def default(name: str, made: str) -> Object:
        annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
        return {"metadata": {"name": name, "creationTimestamp": made, "annotations": annotations}, "provisioner": "p"}

    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    classes = [default("old", early), default("b", late), default("a", late)]
    lookup = FakeLookup({"storageclasses.storage.k8s.io": classes})
    stored, _ = create(resource_of("v1", "persistentvolumeclaims"), {"metadata": {"name": "x"}, **_claim()}, lookup)
    assert stored["spec"]["storageClassName"] == "a"
