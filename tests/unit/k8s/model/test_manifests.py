"""Objects from text: every shape a dump can have, and what is said about those that are none."""

from __future__ import annotations

import json

import pytest

from kubesched.k8s.model import manifests
from kubesched.k8s.model.manifests import ManifestError
from kubesched.testing import make

NODE, POD = make.node("a"), make.pod("p", namespace="shop", cpu="1")
PODS = {"apiVersion": "v1", "kind": "PodList", "items": [POD]}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}), id="a JSON list"),
        pytest.param(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "List",
                    "items": [NODE, {"apiVersion": "v1", "kind": "PodList", "items": [POD]}],
                }
            ),
            id="a list in a JSON list",
        ),
        pytest.param(f"{json.dumps(NODE)}\n---\n{json.dumps(POD)}", id="JSON documents in a YAML stream"),
        pytest.param(f"---\n{json.dumps(NODE)}\n---\n---\n{json.dumps(POD)}\n---\n", id="empty documents between"),
        pytest.param(
            f"apiVersion: v1\nkind: List\nitems:\n- {json.dumps(NODE)}\n- {json.dumps(POD)}\n", id="a YAML list"
        ),
    ],
)
def test_objects_are_found_in_every_shape(text: str) -> None:
    found = manifests.read(text.encode(), "dump")
    assert [(type(item).__name__, item.key) for item in found.objects] == [("Node", "a"), ("Pod", "shop/p")]
    assert {found.source_of(item) for item in found.objects} == {"dump"}


def test_items_of_a_typed_list_need_no_kind() -> None:
    item = {"metadata": {"name": "p", "namespace": "shop"}, "spec": {"containers": []}}
    for text in (json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [item]}),):
        assert [o.key for o in manifests.read(text.encode(), "").objects] == ["shop/p"]
    assert [
        o.key for o in manifests.from_dicts([{"apiVersion": "v1", "kind": "PodList", "items": [item]}]).objects
    ] == ["shop/p"]


def test_a_namespaced_object_without_a_namespace_is_in_default() -> None:
    found = manifests.from_dicts([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}])
    assert found.objects[0].key == "default/p"


def test_other_kinds_are_counted_and_left_out() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    foreign = {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "p"}}
    found = manifests.from_dicts([secret, secret, foreign])
    assert found.objects == []
    assert found.ignored == {"v1 Secret": 2, "example.com/v1 Pod": 1}


def test_times_stay_texts_in_yaml() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, creationTimestamp: 2026-01-01T00:00:00Z}\n"
    assert manifests.read(text.encode(), "").objects[0].metadata.creation_timestamp == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [1", "f: line 2, column 1: not YAML or JSON:", id="broken YAML"),
        pytest.param("- 1\n- 2\n", "f: document 1: not a Kubernetes object", id="a list of numbers"),
        pytest.param("hello", "f: document 1: not a Kubernetes object", id="prose"),
        pytest.param("kind: Pod", "f: document 1: not a Kubernetes object: apiVersion is missing", id="no apiVersion"),
        pytest.param('{"apiVersion": "v1"}', "f: not a Kubernetes object: kind is missing", id="no kind in JSON"),
        pytest.param(
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"priority":""}}',
            "f: Pod n/p: spec.priority: expected int | null, got str",
            id="a wrong type in JSON",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{ports: [{hostPort: x}]}]}\n",
            "f: Pod p: spec.containers[0].ports[0].hostPort: expected int, got str",
            id="a wrong type in YAML",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n", "f: Pod document 1: metadata.name: a name is required", id="no name"
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "List", "items": [3]}',
            "f: items[0]: expected object, got int",
            id="a list item that is no object",
        ),
    ],
)
def test_what_is_wrong_is_said_with_source_object_and_field(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        manifests.read(text.encode(), "f")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
