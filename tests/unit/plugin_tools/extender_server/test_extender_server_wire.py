"""The server understands what our own client side sends, and is understood by it; what is broken is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from served_plugins import by_names, by_nodes

from kubesched.framework import PodInfo
from kubesched.framework.pod_info import PodSignature
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, Pod
from kubesched.plugin_tools.extender_server import messages
from kubesched.plugin_tools.extender_server.messages import BindRequest, NodeReader, NodesVerdict, RequestError
from kubesched.scheduler.engine.extender import http_extender
from kubesched.scheduler.engine.extender.http_extender import ExtenderFilterResult, MetaVictims
from kubesched.scheduler.engine.preemption import Candidate
from kubesched.testing import make


def pod(name: str = "p", **fields: Any) -> PodInfo:
    found = manifests.from_dicts([make.pod(name, **fields)]).objects[0]
    assert isinstance(found, Pod)
    return PodInfo(found, PodSignature(found, 0, -1))


def nodes(*names: str) -> list[Node]:
    found = manifests.from_dicts([make.node(name) for name in names]).objects
    return [node for node in found if isinstance(node, Node)]


@pytest.mark.parametrize("names_only", [True, False], ids=["names of nodes", "whole nodes"])
def test_filter_and_prioritize_are_read_as_our_client_writes_them(names_only: bool) -> None:
    said = http_extender.node_args(pod(cpu="1").pod, nodes("a", "b"), names_only=names_only)
    request = messages.read_nodes_request(said, NodeReader())
    assert request.pod.metadata.name == "p"
    assert request.node_names == ["a", "b"]
    assert request.nodes is None if names_only else [given.node for given in request.nodes or ()] == nodes("a", "b")


@pytest.mark.parametrize("names_only", [True, False], ids=["uids of victims", "whole victims"])
def test_preempt_is_read_as_our_client_writes_it(names_only: bool) -> None:
    candidate = Candidate("a", (pod("v", on="a"), pod("w", on="a")), 1)
    request = messages.read_preempt_request(
        http_extender.preemption_args(pod().pod, [candidate], names_only=names_only)
    )
    assert request.victims == {"a": MetaVictims(("uid-default-v", "uid-default-w"), 1)}


def test_bind_is_read_as_our_client_writes_it() -> None:
    request = messages.read_bind_request(http_extender.binding_args(pod(), "a"))
    assert request == BindRequest("p", "default", "uid-default-p", "a")


def test_field_names_are_read_in_any_case() -> None:
    request = messages.read_nodes_request(b'{"pod": {"metadata": {"name": "p"}}, "nodenames": ["a"]}', NodeReader())
    assert request.node_names == ["a"]


def test_filter_answers_are_understood_by_our_client() -> None:
    verdict = NodesVerdict({"b": "no room"}, {"c": "wrong kind"})
    assert http_extender.filter_result(
        messages.filter_answer(by_names("a", "b", "c"), verdict)
    ) == ExtenderFilterResult(node_names=["a"], failed={"b": "no room"}, failed_and_unresolvable={"c": "wrong kind"})


def test_whole_nodes_go_back_as_they_came() -> None:
    unknown = {**make.node("a"), "spec": {"podCIDR": "10.0.0.0/24"}}
    answer = json.loads(messages.filter_answer(by_nodes(unknown, make.node("b")), NodesVerdict({"b": "no room"})))
    assert answer["Nodes"]["items"] == [unknown]
    assert answer["NodeNames"] is None


def test_all_other_answers_are_understood_by_our_client() -> None:
    left = {"a": MetaVictims(("u1", "u2"), 1)}
    assert http_extender.preemption_result(messages.preempt_answer(left)) == left
    assert http_extender.host_priorities(messages.prioritize_answer(["a", "b"], [3, 10])) == [("a", 3), ("b", 10)]
    assert http_extender.binding_error(messages.bind_answer()) == ""
    assert http_extender.binding_error(messages.bind_answer("refused")) == "refused"
    assert http_extender.filter_result(messages.filter_error("broke")).error == "broke"


def test_nodes_that_come_again_are_not_read_again() -> None:
    reader = NodeReader()
    said = http_extender.node_args(pod().pod, nodes("a"), names_only=False)
    first, second = (messages.read_nodes_request(said, reader).nodes or [] for _ in range(2))
    assert first[0].node is second[0].node


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "the body is not ExtenderArgs as JSON", id="nothing"),
        pytest.param(b"{", "the body is not ExtenderArgs as JSON", id="half of something"),
        pytest.param(b"[]", "the body is not ExtenderArgs as JSON", id="a list"),
        pytest.param(b"\xff\xfe", "the body is not ExtenderArgs as JSON", id="no text"),
        pytest.param(b"{}", "Pod is missing", id="no pod"),
        pytest.param(b'{"Pod": null}', "Pod is missing", id="pod is null"),
        pytest.param(b'{"Pod": 3}', "Pod: Expected", id="pod is a number"),
        pytest.param(b'{"Pod": {"spec": {}}}', "metadata", id="pod without a name"),
        pytest.param(b'{"Pod": {"metadata": {"name": "p"}}}', "neither Nodes nor NodeNames", id="no nodes"),
        pytest.param(b'{"Pod": {"metadata": {"name": "p"}}, "NodeNames": [1]}', "NodeNames: Expected", id="names"),
        pytest.param(b'{"Pod": {"metadata": {"name": "p"}}, "Nodes": {"items": 1}}', "Nodes.items: ", id="items"),
        pytest.param(
            b'{"Pod": {"metadata": {"name": "p"}}, "Nodes": {"items": [{"metadata": {"name": 1}}]}}',
            r"Nodes.items\[0\]: ",
            id="a node",
        ),
    ],
)
def test_a_request_that_cannot_be_read_is_told_by_field(body: bytes, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        messages.read_nodes_request(body, NodeReader())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            {"NodeNameToMetaVictims": {"a": {"Pods": [{}]}}}, r"NodeNameToMetaVictims\[a\].Pods\[0\]", id="uid"
        ),
        pytest.param({"NodeNameToMetaVictims": {"a": {"Pods": 1}}}, r"NodeNameToMetaVictims\[a\].Pods", id="pods"),
        pytest.param({"NodeNameToVictims": []}, "NodeNameToVictims: Expected", id="no mapping"),
    ],
)
def test_victims_that_cannot_be_read_are_told_by_field(body: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        messages.read_preempt_request(json.dumps({"Pod": make.pod("p"), **body}).encode())


@pytest.mark.parametrize("field", ["PodName", "PodNamespace", "Node"])
def test_a_binding_needs_to_say_what_and_where(field: str) -> None:
    said = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
    del said[field]
    with pytest.raises(RequestError, match=f"{field} is missing"):
        messages.read_bind_request(json.dumps(said).encode())
