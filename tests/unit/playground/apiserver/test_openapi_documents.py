"""The OpenAPI documents: every reference leads somewhere, every kind is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.playground.apiserver.kinds import custom
from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
from kubesched.playground.apiserver.openapi import documents
from kubesched.playground.apiserver.served_resource import ServedResource


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for part in node.values():
            yield from _references(part)
    elif isinstance(node, list):
        for part in node:
            yield from _references(part)


def test_every_group_and_version_has_a_document_whose_references_resolve() -> None:
    index = documents.index(ALL_KINDS)["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/scheduling.k8s.io/v1alpha2"} <= index.keys()
    for path in index:
        document = documents.document(path, ALL_KINDS)
        assert document is not None
        schemas = document["components"]["schemas"]
        missing = {ref.removeprefix("#/components/schemas/") for ref in _references(document)} - schemas.keys()
        assert missing == set(), path


def test_a_patch_says_that_it_takes_field_validation_and_dry_run() -> None:
    document = documents.document("apis/apps/v1", ALL_KINDS)
    assert document is not None
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= {one["name"] for one in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}


def test_a_path_that_nobody_serves_has_no_document() -> None:
    assert documents.document("apis/nobody/v1", ALL_KINDS) is None


def _custom_kinds() -> tuple[ServedResource, ...]:
    names = {"plural": "ws", "kind": "W"}
    versions = [{"name": "v1", "served": True, "storage": True}]
    spec = {"group": "g.example.com", "scope": "Cluster", "names": names, "versions": versions}
    return tuple(custom.served_resources({"spec": spec}))


def test_a_custom_kind_is_described_by_its_metadata() -> None:
    document = documents.document("apis/g.example.com/v1", _custom_kinds())
    assert document is not None
    assert "com.example.g.v1.W" in document["components"]["schemas"]
    assert "/apis/g.example.com/v1/ws/{name}" in document["paths"]


def test_a_custom_kind_takes_no_strategic_patches_and_speaks_no_protobuf() -> None:
    # kubectl sends a strategic merge patch to whatever says that it takes one
    patches = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    newer = documents.document("apis/g.example.com/v1", _custom_kinds())
    assert newer is not None
    patch = newer["paths"]["/apis/g.example.com/v1/ws/{name}"]["patch"]
    assert list(patch["requestBody"]["content"]) == patches
    assert list(patch["responses"]["200"]["content"]) == ["application/json", "application/yaml"]
    older = documents.document_v2([*ALL_KINDS, *_custom_kinds()])
    assert older["paths"]["/apis/g.example.com/v1/ws/{name}"]["patch"]["consumes"] == patches
    assert "application/strategic-merge-patch+json" in older["paths"]["/api/v1/nodes/{name}"]["patch"]["consumes"]


def test_the_older_document_knows_merge_keys_and_has_no_newer_words() -> None:
    document = documents.document_v2(ALL_KINDS)
    containers = document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert all(ref.startswith("#/definitions/") for ref in _references(document))
    quantity = document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    assert quantity["type"] == "string"
    assert "oneOf" not in quantity
