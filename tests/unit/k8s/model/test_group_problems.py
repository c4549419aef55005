"""Groups in files that no API server would take: one line says where and why."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.k8s.model.manifests import ManifestError, from_dicts

_BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}


def _group(spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
    metadata = {"name": "g", "namespace": "ml", **metadata}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({}, "spec.schedulingPolicy: exactly one of basic and gang is required"),
        (
            {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 2}}},
            "spec.schedulingPolicy: exactly one of basic and gang is required",
        ),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount: must be at least 1"),
        ({"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minCount: must be at least 1"),
        (
            {**_BASIC, "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "spec.schedulingConstraints.topology: must have at most 1 item, not 2",
        ),
        (
            {**_BASIC, "schedulingConstraints": {"topology": [{}]}},
            "spec.schedulingConstraints.topology[0].key: a label is required",
        ),
        ({**_BASIC, "disruptionMode": "Whole"}, "spec.disruptionMode: Whole is none of Pod, PodGroup"),
        ({**_BASIC, "disruptionMode": {}}, "spec.disruptionMode: exactly one of single and all is required"),
    ],
)
def test_what_is_wrong_with_a_group(spec: dict[str, Any], told: str) -> None:
    with pytest.raises(ManifestError) as error:
        from_dicts([_group(spec)], "f.yaml")
    assert str(error.value) == f"f.yaml: PodGroup ml/g: {told}"


def test_a_group_of_groups_is_asked_too() -> None:
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": 0}}}
    with pytest.raises(ManifestError, match=r"minGroupCount: must be at least 1"):
        from_dicts([{**_group(spec), "kind": "CompositePodGroup", "apiVersion": "scheduling.k8s.io/v1alpha3"}])


@pytest.mark.parametrize("mode", ["Pod", "PodGroup", {"single": {}}, {"all": {}}, None])
def test_groups_of_both_versions_are_read(mode: Any) -> None:
    assert len(from_dicts([_group({**_BASIC, "disruptionMode": mode})]).objects) == 1


def test_what_an_api_server_has_taken_is_not_asked_again() -> None:
    assert len(from_dicts([_group({}, uid="u")]).objects) == 1
