"""What of a cluster is saved: enough that every decision stays the same, and nothing that others should not see."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import kubesched
from kubesched.k8s.model import manifests
from kubesched.live.saved_form import KEPT_ANNOTATIONS, as_json, as_yaml, saved_form, saved_list
from kubesched.testing.vectors import read_cases

ROOT = Path(__file__).parents[3]
FAMILIES = sorted((ROOT / "tests" / "vectors" / "cases").glob("*.jsonl.gz"))
CASES_EACH = 1


@pytest.mark.parametrize("family", FAMILIES, ids=lambda path: path.name.partition(".")[0])
def test_decisions_about_what_was_saved_are_the_same(family: Path) -> None:
    for case in islice(read_cases(family), CASES_EACH):
        pod, config = f"{case['pod']['namespace']}/{case['pod']['name']}", case["config"]
        saved = saved_list(manifests.from_dicts(case["objects"]).objects)
        expected = kubesched.explain(case["objects"], pod, config).to_dict()
        assert kubesched.explain([saved], pod, config).to_dict() == expected, case["name"]


@pytest.mark.parametrize("written", [as_json, as_yaml])
def test_a_written_file_reads_back_as_it_was(written: Any) -> None:
    texts = ["1e3", "on", "null", "012", "2026-01-01", "- a", "a: b", "ü\u2028", "", " x ", "!t", "*a", "1_000", "~"]
    labels = {f"example.com/{number}": text for number, text in enumerate(texts)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "labels": labels}}
    saved = saved_list(manifests.from_dicts([pod]).objects)
    found = manifests.read(written(saved), "file")
    assert [item.metadata.labels for item in found.objects] == [labels]


def find_secrets(value: object) -> list[str]:
    return re.findall(r"secret-\w+", msgspec.json.encode(value).decode())


META = {
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": '{"password": "secret-applied"}',
        "example.com/note": "secret-note",
    },
    "managedFields": [{"manager": "secret-manager"}],
}
CONTAINER = {
    "name": "c",
    "image": "example.com/app:1",
    "command": ["secret-command"],
    "args": ["--password=secret-argument"],
    "env": [
        {"name": "secret-name", "value": "secret-value"},
        {"name": "secret-name", "valueFrom": {"secretKeyRef": {"name": "secret-ref", "key": "k"}}},
        {"name": "secret-name", "valueFrom": {"fileKeyRef": {"path": "app.env", "key": "secret-key"}}},
    ],
    "envFrom": [{"secretRef": {"name": "secret-source"}}],
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "secret-header"}]}},
    "lifecycle": {"preStop": {"exec": {"command": ["secret-hook"]}}},
}
TEMPLATE: dict[str, Any] = {"metadata": META, "spec": {"containers": [CONTAINER], "initContainers": [CONTAINER]}}
CLAIM = {"metadata": META, "spec": {"storageClassName": "fast"}}
OPAQUE = [{"opaque": {"driver": "d", "parameters": {"token": "secret-token"}}}]

WITH_SECRETS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            **TEMPLATE["spec"],
            "imagePullSecrets": [{"name": "secret-pull"}],
            "volumes": [
                {"name": "s", "secret": {"secretName": "secret-volume"}},
                {"name": "c", "csi": {"driver": "d", "volumeAttributes": {"key": "secret-attribute"}}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": CLAIM}},
            ],
        },
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "secret-message"}]},
    },
    {"apiVersion": "v1", "kind": "ReplicationController", "spec": {"template": TEMPLATE}},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"template": TEMPLATE}},
    {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"template": TEMPLATE, "volumeClaimTemplates": [CLAIM]}},
    {"apiVersion": "v1", "kind": "Node", "status": {"addresses": [{"address": "secret-address"}]}},
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "spec": {"csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"key": "secret-attribute"}}},
    },
    {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "parameters": {"restuserkey": "secret-parameter"}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {"config": OPAQUE}},
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": {"devices": {"config": OPAQUE}},
        "status": {
            "allocation": {"devices": {"config": OPAQUE}},
            "devices": [
                {
                    "driver": "d",
                    "data": {"password": "secret-data"},
                    "networkData": {"ips": ["secret-ip"]},
                    "conditions": [{"type": "Ready", "status": "True", "message": "secret-message"}],
                }
            ],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "spec": {"metadata": META, "spec": {"devices": {"config": OPAQUE}}},
    },
]


@pytest.mark.parametrize("manifest", WITH_SECRETS, ids=lambda manifest: manifest["kind"])
def test_nothing_is_saved_that_others_should_not_see(manifest: dict[str, Any]) -> None:
    given = {**manifest, "metadata": {"name": "x", "namespace": "n", **META}}
    assert find_secrets(given)
    [item] = manifests.from_dicts([given]).objects
    assert find_secrets(saved_form(item)) == []


def test_secrets_are_of_no_kind_that_is_read() -> None:
    assert not any("Secret" in kind or "ConfigMap" in kind for _, kind in manifests.KINDS)


def test_every_annotation_that_is_looked_at_anywhere_is_saved() -> None:
    constant = re.compile(r'^\w*(?:ANNOTATION|INDEX_KEY) = "(.+/.+)"', re.MULTILINE)
    read = {key for path in (ROOT / "src").rglob("*.py") for key in constant.findall(path.read_text())}
    assert read == KEPT_ANNOTATIONS


def test_what_is_saved_is_a_list_that_kubectl_would_understand() -> None:
    [node] = manifests.from_dicts([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}]).objects
    saved = yaml.safe_load(as_yaml(saved_list([node])))
    assert saved == {
        "apiVersion": "v1",
        "kind": "List",
        "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}],
    }


@pytest.mark.parametrize(
    ("mode", "version"), [("PodGroup", "v1alpha2"), ({"all": {}}, "v1beta1")], ids=["v1.36", "v1.37"]
)
def test_groups_are_saved_in_the_version_whose_fields_they_have(mode: Any, version: str) -> None:
    policy = {"schedulingPolicy": {"basic": {}}, "disruptionMode": mode}
    head = {"apiVersion": f"scheduling.k8s.io/{version}", "metadata": {"name": "x", "namespace": "n"}}
    written = [
        {**head, "kind": "PodGroup", "spec": policy},
        {**head, "kind": "Workload", "spec": {"podGroupTemplates": [{"name": "t", **policy}]}},
    ]
    for item in manifests.from_dicts(written).objects:
        assert saved_form(item)["apiVersion"] == head["apiVersion"]
