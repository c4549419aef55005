"""What the API server's table takes from a checkout of Kubernetes: schemas, and the layout of Go's structs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import kind_schemas

PACKAGE = "io.k8s.api.example.v1beta1"
GO = """package v1beta1

import (
\tcorev1 "k8s.io/api/core/v1"
\tmetav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Widget struct {
\tmetav1.TypeMeta `json:",inline"`
\t// Said in words.
\tmetav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

\tSpec WidgetSpec `json:"spec" protobuf:"bytes,2,name=spec"`
}

type WidgetSpec struct {
\tSize *int32 `json:"size,omitempty" protobuf:"varint,1,opt,name=size"`
\tData []byte `json:"data,omitempty" protobuf:"bytes,3,rep,name=data"`
\tLimits map[corev1.ResourceName]Amount `json:"limits" protobuf:"bytes,4,rep,name=limits"`
\tCommonSpec `json:",inline" protobuf:"bytes,5,opt,name=common"`
}

type WidgetList struct {
\tmetav1.TypeMeta `json:",inline"`
\tItems []Widget `json:"items" protobuf:"bytes,2,rep,name=items"`
}
"""


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{PACKAGE}.{name}"}


def _kind(kind: str, **properties: Any) -> dict[str, Any]:
    names = [{"group": "example.k8s.io", "kind": kind, "version": "v1beta1"}]
    return {"properties": properties, "x-kubernetes-group-version-kind": names}


SCHEMAS = {
    f"{PACKAGE}.Widget": _kind("Widget", spec={"allOf": [_ref("WidgetSpec")]}),
    f"{PACKAGE}.WidgetList": _kind("WidgetList", items={"type": "array", "items": _ref("Widget")}),
    f"{PACKAGE}.WidgetSpec": {"properties": {"size": {"type": "integer"}}},
    f"{PACKAGE}.Other": {"properties": {}},
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    document = tmp_path / "api" / "openapi-spec" / "v3" / "apis__example.k8s.io__v1beta1_openapi.json"
    types = tmp_path / "staging" / "src" / "k8s.io" / "api" / "example" / "v1beta1" / "types.go"
    for path in (document, types):
        path.parent.mkdir(parents=True)
    document.write_text(json.dumps({"components": {"schemas": SCHEMAS}}))
    types.write_text(GO)
    return tmp_path


def test_a_kind_comes_with_its_list_and_all_it_refers_to(checkout: Path) -> None:
    table: dict[str, Any] = {"schemas": {f"{PACKAGE}.WidgetSpec": {"is": "kept"}}, "layout": {}}
    new = kind_schemas.add(table, checkout, "example.k8s.io/v1beta1", "Widget")
    assert new == [f"{PACKAGE}.Widget", f"{PACKAGE}.WidgetList"]
    assert table["schemas"][f"{PACKAGE}.WidgetSpec"] == {"is": "kept"}
    assert set(table["layout"]) == set(new)


def test_fields_stand_in_the_order_of_go_with_their_numbers(checkout: Path) -> None:
    assert kind_schemas.layout(checkout, f"{PACKAGE}.Widget") == [
        ["kind", -1, "o", "string"],
        ["apiVersion", -1, "o", "string"],
        ["metadata", 1, "o", "v1.ObjectMeta"],
        ["spec", 2, "", "v1beta1.WidgetSpec"],
    ]
    assert kind_schemas.layout(checkout, f"{PACKAGE}.WidgetSpec") == [
        ["size", 1, "po", "int32"],
        ["data", 3, "o", "[]uint8"],
        ["limits", 4, "", "map[v1.ResourceName]v1beta1.Amount"],
        [f"{PACKAGE}.CommonSpec", 5, "i", "v1beta1.CommonSpec"],
    ]


@pytest.mark.parametrize(
    ("group_version", "kind", "words"),
    [
        ("example.k8s.io/v2", "Widget", "is example.k8s.io/v2 a version that is served"),
        ("example.k8s.io/v1beta1", "Gadget", "example.k8s.io/v1beta1 has no Gadget with a list"),
    ],
)
def test_what_is_not_in_the_checkout_is_named(checkout: Path, group_version: str, kind: str, words: str) -> None:
    with pytest.raises(kind_schemas.NotFoundError, match=words):
        kind_schemas.add({"schemas": {}, "layout": {}}, checkout, group_version, kind)
