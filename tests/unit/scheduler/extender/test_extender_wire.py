"""What is said to extenders and what is understood of their answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kubesched.framework import PodInfo
from kubesched.framework.pod_info import PodSignature
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.engine.extender import http_extender
from kubesched.scheduler.engine.extender.http_extender import ExtenderError, ExtenderFilterResult, MetaVictims
from kubesched.scheduler.engine.preemption import Candidate
from kubesched.testing import make


def _pod(name: str = "p", **fields: Any) -> PodInfo:
    pod = manifests.from_dicts([make.pod(name, **fields)]).objects[0]
    assert isinstance(pod, Pod)
    return PodInfo(pod, PodSignature(pod, 0, -1))


def _nodes(*names: str) -> list[Node]:
    return [
        node for node in manifests.from_dicts([make.node(name) for name in names]).objects if isinstance(node, Node)
    ]


def test_nodes_are_sent_by_name_to_an_extender_that_knows_them() -> None:
    said = json.loads(http_extender.node_args(_pod().pod, _nodes("a", "b"), names_only=True))
    assert list(said) == ["Pod", "Nodes", "NodeNames"]
    assert said["Nodes"] is None
    assert said["NodeNames"] == ["a", "b"]


def test_nodes_are_sent_in_full_to_others() -> None:
    said = json.loads(http_extender.node_args(_pod().pod, _nodes("a"), names_only=False))
    assert said["NodeNames"] is None
    assert said["Nodes"]["items"] == [
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": "a", "labels": {"kubernetes.io/hostname": "a"}},
            "spec": {},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 110}},
        }
    ]


def test_a_pod_is_sent_with_what_an_api_server_fills_in() -> None:
    said = json.loads(http_extender.node_args(_pod(cpu="1", host_ports=[80]).pod, [], names_only=True))
    assert said["Pod"] == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": "default", "uid": "uid-default-p", "labels": {}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "example.com/app:1",
                    "resources": {"requests": {"cpu": "1"}},
                    "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
                }
            ],
            "priority": 0,
            "schedulerName": "default-scheduler",
        },
        "status": {"phase": "Pending"},
    }


@pytest.mark.parametrize(
    ("names_only", "key", "other", "pods"),
    [
        pytest.param(True, "NodeNameToMetaVictims", "NodeNameToVictims", [{"UID": "uid-default-v"}], id="by uid"),
        pytest.param(False, "NodeNameToVictims", "NodeNameToMetaVictims", ["v"], id="in full"),
    ],
)
def test_victims_are_sent(names_only: bool, key: str, other: str, pods: list[Any]) -> None:
    candidate = Candidate("a", (_pod("v", on="a"),), 2)
    said = json.loads(http_extender.preemption_args(_pod().pod, [candidate], names_only=names_only))
    assert set(said) == {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}
    assert said[other] is None
    victims = said[key]["a"]
    assert victims["NumPDBViolations"] == 2
    found = victims["Pods"] if names_only else [pod["metadata"]["name"] for pod in victims["Pods"]]
    assert found == pods


def test_a_binding_is_sent_by_names() -> None:
    assert json.loads(http_extender.binding_args(_pod(), "a")) == {
        "PodName": "p",
        "PodNamespace": "default",
        "PodUID": "uid-default-p",
        "Node": "a",
    }


@pytest.mark.parametrize(
    ("said", "understood"),
    [
        pytest.param({"NodeNames": ["a"]}, ExtenderFilterResult(node_names=["a"]), id="names"),
        pytest.param(
            {"nodenames": ["a"], "error": ""}, ExtenderFilterResult(node_names=["a"]), id="keys in lower case"
        ),
        pytest.param(
            {"nodes": {"items": [{"metadata": {"name": "a"}}]}}, ExtenderFilterResult(nodes=["a"]), id="nodes in full"
        ),
        pytest.param({"Nodes": {"items": None}}, ExtenderFilterResult(nodes=[]), id="an empty list of nodes"),
        pytest.param(
            {"failedNodes": {"a": "no"}, "FailedAndUnresolvableNodes": {"b": "never"}},
            ExtenderFilterResult(failed={"a": "no"}, failed_and_unresolvable={"b": "never"}),
            id="reasons",
        ),
        pytest.param({"Error": "broken"}, ExtenderFilterResult(error="broken"), id="an error"),
        pytest.param(
            {"Nodes": None, "NodeNames": None, "FailedNodes": None, "Error": None}, ExtenderFilterResult(), id="nulls"
        ),
        pytest.param(None, ExtenderFilterResult(), id="null"),
        pytest.param({"anything": 1}, ExtenderFilterResult(), id="unknown keys"),
    ],
)
def test_a_filter_result_is_understood(said: Any, understood: ExtenderFilterResult) -> None:
    assert http_extender.filter_result(json.dumps(said).encode()) == understood


def test_priorities_are_understood() -> None:
    said = [{"Host": "a", "Score": 7}, {"host": "b"}]
    assert http_extender.host_priorities(json.dumps(said).encode()) == [("a", 7), ("b", 0)]
    assert http_extender.host_priorities(b"null") == []


def test_a_preemption_result_is_understood() -> None:
    said = {"NodeNameToMetaVictims": {"A": {"pods": [{"uid": "u"}], "numPDBViolations": 1}, "b": None}}
    understood = {"A": MetaVictims(("u",), 1), "b": MetaVictims((), 0)}
    assert http_extender.preemption_result(json.dumps(said).encode()) == understood


def test_a_binding_result_is_understood() -> None:
    assert http_extender.binding_error(b'{"Error":"no"}') == "no"
    assert http_extender.binding_error(b"{}") == ""


@pytest.mark.parametrize(
    ("read", "body"),
    [
        pytest.param(http_extender.filter_result, b"", id="an empty body"),
        pytest.param(http_extender.filter_result, b"<html>", id="not JSON"),
        pytest.param(http_extender.filter_result, b"[]", id="a list for an object"),
        pytest.param(http_extender.filter_result, b'{"NodeNames":{}}', id="an object for a list"),
        pytest.param(http_extender.filter_result, b'{"NodeNames":[1]}', id="a number for a name"),
        pytest.param(http_extender.host_priorities, b'[{"Host":"a","Score":1.5}]', id="a fraction for a score"),
        pytest.param(http_extender.host_priorities, b'[{"Host":"a","Score":true}]', id="a boolean for a score"),
        pytest.param(
            http_extender.host_priorities, b'[{"Host":"a","Score":9223372036854775808}]', id="a score beyond int64"
        ),
        pytest.param(http_extender.binding_error, b'{"Error":["no"]}', id="a list for an error"),
    ],
)
def test_what_cannot_be_understood_is_an_error(read: Callable[[bytes], object], body: bytes) -> None:
    with pytest.raises(ExtenderError, match="cannot read the extender's answer"):
        read(body)
