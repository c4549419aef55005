"""What kube-scheduler and an extender say to each other: `extender/v1` as JSON, read and written.

Field names are read as Go reads them: upper and lower case make no difference, `null` is the same as nothing. What
cannot be read is a `RequestError` that names the field.

Next: `kubesched.scheduler.engine.extender.http_extender`, which writes these requests and reads these answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.engine.extender.http_extender import MetaVictims

T = TypeVar("T")
_Fields = Mapping[str, msgspec.Raw]

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_node = msgspec.json.Decoder(Node).decode

_MOST_REMEMBERED = 3
"""Texts, for each node of the largest request."""


class RequestError(Exception):
    """A request that cannot be understood; the text says which field, and why."""


@dataclass(frozen=True, slots=True)
class GivenNode:
    """A node of a request: as the plugins see it, and as it was written, to be sent back whole."""

    node: Node
    text: msgspec.Raw


@dataclass(frozen=True, slots=True)
class NodesRequest:
    """`ExtenderArgs`, of filter and prioritize. `nodes` is None if kube-scheduler sends names only."""

    pod: Pod
    node_names: list[str]
    nodes: list[GivenNode] | None


@dataclass(frozen=True, slots=True)
class PreemptRequest:
    """`ExtenderPreemptionArgs`: by node, who is to be evicted. Of whole pods only the uids are read."""

    pod: Pod
    victims: dict[str, MetaVictims]


@dataclass(frozen=True, slots=True)
class BindRequest:
    """`ExtenderBindingArgs`."""

    name: str
    namespace: str
    uid: str
    node_name: str


class NodeReader:
    """Reads nodes, and remembers those it has read: thousands of them come again and again, word for word."""

    def __init__(self) -> None:
        self._known: dict[bytes, Node] = {}
        self._most_nodes = 0

    def read(self, texts: list[msgspec.Raw]) -> list[GivenNode]:
        known = self._known
        found = []
        for index, text in enumerate(texts):
            key = bytes(text)
            node = known.get(key)
            if node is None:
                node = known[key] = _node(text, index)
            found.append(GivenNode(node, text))
        self._most_nodes = max(self._most_nodes, len(texts))
        if len(known) > _MOST_REMEMBERED * self._most_nodes:
            self._known = {bytes(given.text): given.node for given in found}
        return found


def read_nodes_request(body: bytes, reader: NodeReader) -> NodesRequest:
    fields = _fields(body, "ExtenderArgs")
    pod = _pod(fields)
    listed = _optional(fields, "Nodes", dict[str, msgspec.Raw])
    if listed is not None:
        nodes = reader.read(_items(listed))
        return NodesRequest(pod, [given.node.name for given in nodes], nodes)
    names = _optional(fields, "NodeNames", list[str])
    if names is None:
        raise RequestError("neither Nodes nor NodeNames is given")
    return NodesRequest(pod, names, None)


def read_preempt_request(body: bytes) -> PreemptRequest:
    fields = _fields(body, "ExtenderPreemptionArgs")
    pod = _pod(fields)
    for name in ("NodeNameToMetaVictims", "NodeNameToVictims"):
        by_node = _optional(fields, name, dict[str, dict[str, msgspec.Raw] | None])
        if by_node is not None:
            victims = {node: _victims(said or {}, f"{name}[{node}]") for node, said in by_node.items()}
            return PreemptRequest(pod, victims)
    return PreemptRequest(pod, {})


def read_bind_request(body: bytes) -> BindRequest:
    fields = _fields(body, "ExtenderBindingArgs")
    found = {name: _optional(fields, name, str) or "" for name in ("PodName", "PodNamespace", "PodUID", "Node")}
    for name in ("PodName", "PodNamespace", "Node"):
        if not found[name]:
            raise RequestError(f"{name} is missing")
    return BindRequest(*found.values())


# -- Fields ------------------------------------------------------------------------------------------------------------


def _fields(body: bytes, what: str) -> _Fields:
    try:
        return _lowered(_decode_fields(body))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RequestError(f"the body is not {what} as JSON: {error}") from None


def _lowered(said: _Fields) -> _Fields:
    return {name.lower(): value for name, value in said.items()}


def _optional(fields: _Fields, name: str, kind: type[T], path: str = "") -> T | None:
    text = fields.get(name.lower())
    return None if text is None else _decoded(text, kind, path or name)


def _decoded(text: msgspec.Raw, kind: type[T], path: str) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind | None)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: {error}") from None


def _pod(fields: _Fields) -> Pod:
    pod = _optional(fields, "Pod", Pod)
    if pod is None:
        raise RequestError("Pod is missing")
    if not pod.metadata.name:
        raise RequestError("Pod: metadata.name is missing")
    return pod


def _items(listed: _Fields) -> list[msgspec.Raw]:
    return _optional(_lowered(listed), "items", list[msgspec.Raw], "Nodes.items") or []


def _node(text: msgspec.Raw, index: int) -> Node:
    try:
        node = _decode_node(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RequestError(f"Nodes.items[{index}]: {error}") from None
    if not node.name:
        raise RequestError(f"Nodes.items[{index}]: metadata.name is missing")
    return node


def _victims(said: _Fields, path: str) -> MetaVictims:
    fields = _lowered(said)
    pods = _optional(fields, "Pods", list[dict[str, msgspec.Raw] | None], f"{path}.Pods") or []
    n_violations = _optional(fields, "NumPDBViolations", int, f"{path}.NumPDBViolations") or 0
    uids = tuple(_uid(pod or {}, f"{path}.Pods[{index}]") for index, pod in enumerate(pods))
    return MetaVictims(uids, n_violations)


def _uid(said: _Fields, path: str) -> str:
    """Of a pod's identifier, or of a whole pod."""
    fields = _lowered(said)
    metadata = _optional(fields, "metadata", dict[str, msgspec.Raw], f"{path}.metadata")
    found = _optional(fields if metadata is None else _lowered(metadata), "uid", str, f"{path}.UID")
    if not found:
        raise RequestError(f"{path}: the uid is missing")
    return found


_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class NodesVerdict:
    """Why nodes were rejected, by name; all others pass."""

    failed: dict[str, str] = field(default_factory=dict)
    failed_for_good: dict[str, str] = field(default_factory=dict)
    """Evicting pods would not help."""

    def passes(self, name: str) -> bool:
        return name not in self.failed and name not in self.failed_for_good


def filter_answer(request: NodesRequest, verdict: NodesVerdict) -> bytes:
    """`ExtenderFilterResult`, with nodes in the form in which they came."""
    answer = {"FailedNodes": verdict.failed, "FailedAndUnresolvableNodes": verdict.failed_for_good, "Error": ""}
    if request.nodes is None:
        names = [name for name in request.node_names if verdict.passes(name)]
        return _encode({"Nodes": None, "NodeNames": names, **answer})
    texts = [given.text for given in request.nodes if verdict.passes(given.node.name)]
    return _encode({"Nodes": {"metadata": {}, "items": texts}, "NodeNames": None, **answer})


def filter_error(message: str) -> bytes:
    """`ExtenderFilterResult` of a call that failed."""
    return _encode({"Nodes": None, "NodeNames": None, "FailedNodes": {}, "Error": message})


def prioritize_answer(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """`HostPriorityList`."""
    return _encode([{"Host": name, "Score": score} for name, score in zip(names, scores, strict=True)])


def preempt_answer(left: Mapping[str, MetaVictims]) -> bytes:
    """`ExtenderPreemptionResult`."""
    return _encode({"NodeNameToMetaVictims": {name: _written_victims(victims) for name, victims in left.items()}})


def bind_answer(error: str = "") -> bytes:
    """`ExtenderBindingResult`."""
    return _encode({"Error": error})


def _written_victims(victims: MetaVictims) -> dict[str, object]:
    return {"Pods": [{"UID": uid} for uid in victims.uids], "NumPDBViolations": victims.n_budget_violations}
