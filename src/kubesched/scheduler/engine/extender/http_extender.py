"""One extender: what it is asked, about which pods, where it is, and what is said: `extender/v1` as JSON.

The keys are kube-scheduler's, written as it writes them (`Pod`, `NodeNames`, `NumPDBViolations` …) and read as it
reads them: upper and lower case make no difference, `null` is the same as nothing. Pods and nodes carry the fields that
the scheduler itself looks at, no others.

Next: `verbs` for what follows from an extender's answers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from kubesched.framework.effects import CallExtender, Failed
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Container, Node, Pod
from kubesched.scheduler.config import ExtenderConfiguration
from kubesched.scheduler.engine.preemption import Candidate

EXTENDER = "Extender"
"""Stands for all extenders among the plugins that rejected a pod: any change may make them change their minds."""

DEFAULT_TIMEOUT_S = 5.0

Found = TypeVar("Found")
Consultation = Generator[Sequence[CallExtender], Sequence[object], Found]
"""Yields calls that may be made at once, is sent their answers in the same order, ends in what was found."""


class ExtenderError(Exception):
    """An extender could not be asked, or its answer cannot be used. The text is what the pod's event says."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class HTTPExtender:
    """An extender as it is configured; `index` is its place in the configuration."""

    index: int
    config: ExtenderConfiguration

    @property
    def name(self) -> str:
        return self.config.shown_url

    @property
    def is_ignorable(self) -> bool:
        return self.config.ignorable

    @property
    def decides(self) -> bool:
        """Whether it takes part in decisions, not only in binding."""
        return bool(self.config.filter_verb or self.config.prioritize_verb or self.config.preempt_verb)

    @property
    def compares_nodes(self) -> bool:
        """Whether more than one feasible node must be found for it."""
        return bool(self.config.filter_verb or self.config.prioritize_verb)

    @property
    def is_insecure(self) -> bool:
        """Whether its certificate is not verified: asked for, or HTTPS without any certificates to trust."""
        tls = self.config.tls_config
        if tls is not None and tls.insecure:
            return True
        return self.config.enable_https and not (tls is not None and (tls.ca_file or tls.ca_data))

    def is_interested(self, pod: PodInfo) -> bool:
        """Without managed resources in every pod, else in those that name one of them."""
        managed = {resource.name for resource in self.config.managed_resources}
        if not managed:
            return True
        spec = pod.spec
        return any(_names_any(container, managed) for container in (*spec.containers, *(spec.init_containers or ())))

    def call(self, verb: str, body: bytes) -> CallExtender:
        timeout_s = self.config.http_timeout.seconds or DEFAULT_TIMEOUT_S
        return CallExtender(self.index, verb, f"{self.config.url_prefix.rstrip('/')}/{verb}", body, timeout_s)


def build_extenders(configured: Sequence[ExtenderConfiguration]) -> tuple[HTTPExtender, ...]:
    """In the order in which they are asked: those that can be done without come last."""
    extenders = [HTTPExtender(index, config) for index, config in enumerate(configured)]
    return tuple(sorted(extenders, key=lambda extender: extender.is_ignorable))


def refused(call: CallExtender, code: int) -> Failed:
    """The answer to a call that was met with another HTTP status than 200."""
    return Failed(f"failed {call.verb} with extender at URL {call.url}, code {code}")


def body_of(answer: object) -> bytes:
    """What the extender said; raises ExtenderError if it said nothing."""
    if isinstance(answer, bytes):
        return answer
    raise ExtenderError(answer.message if isinstance(answer, Failed) else f"unexpected answer {answer!r}")


def _names_any(container: Container, resources: set[str]) -> bool:
    found = container.resources
    if found is None:
        return False
    return not resources.isdisjoint(found.requests or ()) or not resources.isdisjoint(found.limits or ())


_INT64 = range(-(2**63), 2**63)


# -- said to extenders -------------------------------------------------------------------------------------------------


def node_args(pod: Pod, nodes: Sequence[Node], *, names_only: bool) -> bytes:
    """`ExtenderArgs`, for filter and prioritize."""
    names = [node.name for node in nodes] if names_only else None
    listed = None if names_only else {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": _raw(nodes)}
    return msgspec.json.encode({"Pod": _pod(pod), "Nodes": listed, "NodeNames": names})


def preemption_args(pod: Pod, candidates: Iterable[Candidate], *, names_only: bool) -> bytes:
    """`ExtenderPreemptionArgs`."""
    victims = {candidate.node_name: _victims(candidate, names_only) for candidate in candidates}
    return msgspec.json.encode(
        {
            "Pod": _pod(pod),
            "NodeNameToVictims": None if names_only else victims,
            "NodeNameToMetaVictims": victims if names_only else None,
        }
    )


def binding_args(pod: PodInfo, node_name: str) -> bytes:
    """`ExtenderBindingArgs`."""
    return msgspec.json.encode(
        {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
    )


def _victims(candidate: Candidate, names_only: bool) -> dict[str, Any]:
    victims = candidate.victims
    pods = [{"UID": v.uid} for v in victims] if names_only else [_pod(v.pod) for v in victims]
    return {"Pods": pods, "NumPDBViolations": candidate.n_budget_violations}


def _pod(pod: Pod) -> dict[str, Any]:
    """The model leaves out what is as by default; two such fields an API server would never leave empty."""
    found: dict[str, Any] = {"kind": "Pod", "apiVersion": "v1", **msgspec.to_builtins(pod)}
    spec = found.setdefault("spec", {})
    spec.setdefault("schedulerName", pod.spec.scheduler_name)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
    return found


def _raw(nodes: Iterable[Node]) -> list[msgspec.Raw]:
    """Nodes as text: thousands of them are sent at a time."""
    head = b'{"kind":"Node","apiVersion":"v1",'
    return [msgspec.Raw(head + msgspec.json.encode(node)[1:]) for node in nodes]


# -- said by extenders -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExtenderFilterResult:
    """`node_names`, or the names of `nodes`: whichever of the two the extender gave, or None."""

    node_names: Sequence[str] | None = None
    nodes: Sequence[str] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class MetaVictims:
    """Uids of pods to evict from a node."""

    uids: tuple[str, ...]
    n_budget_violations: int


def filter_result(body: bytes) -> ExtenderFilterResult:
    said = _fields(_parse(body))
    names, nodes = said.get("nodenames"), said.get("nodes")
    return ExtenderFilterResult(
        node_names=None if names is None else [_text(name) for name in _items(names)],
        nodes=None if nodes is None else [_node_name(node) for node in _items(_fields(nodes).get("items"))],
        failed=_texts(said.get("failednodes")),
        failed_and_unresolvable=_texts(said.get("failedandunresolvablenodes")),
        error=_text(said.get("error")),
    )


def host_priorities(body: bytes) -> list[tuple[str, int]]:
    """`HostPriorityList`: (node, score)."""
    entries = [_fields(entry) for entry in _items(_parse(body))]
    return [(_text(entry.get("host")), _int64(entry.get("score"))) for entry in entries]


def preemption_result(body: bytes) -> dict[str, MetaVictims]:
    """`ExtenderPreemptionResult`: by node, who is to be evicted."""
    by_node = _fields(_parse(body)).get("nodenametometavictims")
    return {name: _meta_victims(victims) for name, victims in _object(by_node).items()}


def binding_error(body: bytes) -> str:
    """`ExtenderBindingResult`: why the pod was not bound; empty if it was."""
    return _text(_fields(_parse(body)).get("error"))


def _meta_victims(value: object) -> MetaVictims:
    said = _fields(value)
    uids = tuple(_text(_fields(pod).get("uid")) for pod in _items(said.get("pods")))
    return MetaVictims(uids, _int64(said.get("numpdbviolations")))


def _node_name(node: object) -> str:
    return _text(_fields(_fields(node).get("metadata")).get("name"))


def _parse(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except msgspec.MsgspecError as broken:
        raise ExtenderError(f"cannot read the extender's answer: {broken}") from broken


def _object(value: object) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _unexpected(value, "an object")
    return value


def _fields(value: object) -> dict[str, object]:
    return {key.lower(): item for key, item in _object(value).items()}


def _items(value: object) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _unexpected(value, "a list")
    return value


def _texts(value: object) -> dict[str, str]:
    return {key: _text(item) for key, item in _object(value).items()}


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _unexpected(value, "a string")
    return value


def _int64(value: object) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value not in _INT64:
        raise _unexpected(value, "a 64-bit integer")
    return value


def _unexpected(value: object, wanted: str) -> ExtenderError:
    return ExtenderError(f"cannot read the extender's answer: {str(value)[:60]!r} is not {wanted}")
