"""Strategic merge patches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from written_objects import PODS, resource_of

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.patching import strategic
from kubesched.playground.apiserver.served_resource import Object


def _pod(*containers: Object, **spec: Any) -> Object:
    return {"spec": {"containers": list(containers), **spec}}


def _ordered(names: str, *containers: Object) -> Object:
    """A patch of containers with an order, of names of one letter."""
    return {"spec": {"$setElementOrder/containers": [{"name": name} for name in names], "containers": [*containers]}}


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        pytest.param(
            _pod({"name": "a", "image": "1"}, {"name": "b"}),
            _pod({"name": "a", "image": "2"}),
            _pod({"name": "a", "image": "2"}, {"name": "b"}),
            id="a container by its name",
        ),
        pytest.param(
            _pod({"name": "a"}),
            _pod({"name": "z"}),
            _pod({"name": "z"}, {"name": "a"}),
            id="what is new comes first",
        ),
        pytest.param(
            _pod({"name": "a"}, {"name": "b"}),
            _pod({"name": "a", "$patch": "delete"}),
            _pod({"name": "b"}),
            id="an item away",
        ),
        pytest.param(
            _pod({"name": "a"}, {"name": "b"}),
            _pod({"name": "c"}, {"$patch": "replace"}),
            _pod({"name": "c"}),
            id="the list replaced",
        ),
        pytest.param(
            _pod({"name": "a"}, {"name": "b"}, {"name": "c"}),
            {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "c"}]}},
            _pod({"name": "b"}, {"name": "c"}, {"name": "a"}),
            id="in the order given",
        ),
        pytest.param(
            _pod(tolerations=[{"key": "a"}]),
            _pod(tolerations=[{"key": "b"}]),
            _pod(tolerations=[{"key": "b"}]),
            id="a list without merge key is replaced",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a/b", "c/d"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}},
            {"metadata": {"finalizers": ["c/d"]}},
            id="a text away from a set",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a/b"]}},
            {"metadata": {"finalizers": ["c/d"]}},
            {"metadata": {"finalizers": ["c/d", "a/b"]}},
            id="a set united",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"a": None, "c": "3"}}},
            {"metadata": {"labels": {"b": "2", "c": "3"}}},
            id="a label away",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"$patch": "replace", "c": "3"}}},
            {"metadata": {"labels": {"c": "3"}}},
            id="a map replaced",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}},
            {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
            id="only the keys to be retained",
        ),
        pytest.param(
            {"spec": {}},
            {"spec": {"nodeSelector": {"a": "b", "c": None}}},
            {"spec": {"nodeSelector": {"a": "b"}}},
            id="nothing becomes null",
        ),
    ],
)
def test_strategic_patches(document: Object, patch: Object, expected: Object) -> None:
    before = copy.deepcopy(document)
    assert strategic.apply(document, patch, PODS) == expected
    assert document == before


def test_conditions_of_a_node_are_merged_by_type_in_the_order_of_the_patch() -> None:
    nodes = resource_of("v1", "nodes")
    document = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "False"}]}}
    patch = {"status": {"conditions": [{"type": "Memory", "status": "False"}, {"type": "Ready", "status": "False"}]}}
    assert strategic.apply(document, patch, nodes)["status"]["conditions"] == [
        {"type": "Memory", "status": "False"},
        {"type": "Ready", "status": "False"},
        {"type": "Disk", "status": "False"},
    ]


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        pytest.param(
            _pod({"image": "x"}), 500, "map: map[image:x] does not contain declared merge key: name", id="no key"
        ),
        pytest.param(
            {"spec": {"$patch": "odd"}},
            500,
            "unknown patch type: odd in map: map[$patch:odd]",
            id="an unknown directive",
        ),
        pytest.param(
            _ordered("ab", {"name": "b"}, {"name": "a"}),
            500,
            "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n"
            "[map[name:a] map[name:b]]\n",
            id="an order that the patch contradicts",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": ["a"]}},
            500,
            "value for key 0 is not a map",
            id="an order of texts",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": None}},
            500,
            "expected a []interface {}, but received a %!s(<nil>)",
            id="an order that is null",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/nothing": []}},
            500,
            'unable to find api field in struct PodSpec for the json field "nothing"',
            id="an order of an unknown list",
        ),
        pytest.param(
            {"spec": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list", id="whose order"
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "a", "$patch": "merge"}]}},
            500,
            "merging lists cannot yet be specified in the patch",
            id="a merge within a list",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "a", "$patch": 3}]}},
            500,
            "unknown patch type: %!s(int64=3) in map: map[$patch:3 name:a]",
            id="a directive that is a number",
        ),
        pytest.param(
            {"spec": {"containers": [{"image": "a", "$patch": "delete"}]}},
            500,
            "map: map[$patch:delete image:a] does not contain declared merge key: name",
            id="a deletion of nothing named",
        ),
        pytest.param(
            {"spec": {"containers": ["a"]}},
            500,
            "list element types are not identical: [[map[name:a]] [a]]",
            id="texts for objects",
        ),
        pytest.param(
            {"spec": {"$deleteFromPrimitiveList": []}},
            400,
            "invalid patch format of primitive list",
            id="from what",
        ),
        pytest.param(
            {"spec": {"$retainKeys": ["x"], "hostname": "h"}},
            400,
            "invalid patch format of retainKeys",
            id="a field that is not retained",
        ),
    ],
)
def test_strategic_patches_that_cannot_be_read(patch: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as refusal:
        strategic.apply(_pod({"name": "a"}), patch, PODS)
    assert (refusal.value.code, refusal.value.message) == (code, message)
