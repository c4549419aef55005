"""What can be read of an object that does not decode: everything but the damaged fields; and what it may count as.

A field that cannot be read counts as it was last known, or else as not given. As in Kubernetes, null is the same as not
given and no damage. The decoder takes any text for an amount, since parsing is left to those who need the value; an
object that came from outside is looked through once, before anybody relies on it.

JSON that the fast decoder refuses is still read as plain values, to name what is wrong with it: bytes that
are no UTF-8 become replacement characters, what is nested too deeply is cut off, numbers that nothing can hold become
texts. Only what has the form of JSON at all is read.

Stand-ins see to it that no decision goes wrong for want of an object. What takes room or restricts others counts as far
as it is known: a pod on its node, a node and the pods on it (but no pod is sent there), an allocated claim, a
disruption budget. What offers something, or asks for something, is not there until it can be read: a pending pod is not
scheduled, a volume not chosen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect
from msgspec.structs import replace

from kubesched.k8s.model import apps, core, quantity, resource, storage
from kubesched.k8s.model.meta import KubeObject, ObjectMeta

DEEPEST = 100
"""Nothing in Kubernetes' own kinds nests a third as deeply; the fast decoder gives up at some hundreds."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoders raise: wrong types, no JSON, no UTF-8, nested too deeply."""

_LONGEST_NUMBER = 400
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def tree_of(data: bytes | msgspec.Raw) -> Any:
    """The value of a JSON text, as far as it can be had. Raises `msgspec.DecodeError` for what is no JSON."""
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        pass
    text = bytes(data).decode("utf-8", "replace")
    try:
        return json.loads(_cut(text), parse_int=_whole, parse_float=_fraction, parse_constant=str)
    except (ValueError, RecursionError) as problem:
        raise msgspec.DecodeError(f"JSON is malformed: {problem}") from None


def _cut(text: str) -> str:
    """Without what is nested more deeply than `DEEPEST`; null stands there."""
    kept: list[str] = []
    depth = begin = 0
    for token in _TOKENS.finditer(text):
        sign = token[0]
        if sign in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(text[begin : token.start()])
        elif sign in "]}":
            depth -= 1
            if depth == DEEPEST:
                kept.append("null")
                begin = token.end()
    return "".join((*kept, text[begin:])) if kept else text


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else digits[:_LONGEST_NUMBER]


def _fraction(digits: str) -> float | str:
    value = float(digits) if len(digits) <= _LONGEST_NUMBER else float("inf")
    return value if abs(value) != float("inf") else digits[:_LONGEST_NUMBER]


BadAmount = tuple[tuple[str | int, ...], str]
"""The steps to it from the object, and what is wrong with it."""

_Check = Callable[[Any], Iterator[BadAmount]]


def first_bad_amount(item: KubeObject) -> BadAmount | None:
    check = _check_of(type(item))
    return None if check is None else next(check(item), None)


@cache
def _check_of(kind: type[msgspec.Struct]) -> _Check | None:
    """Looks only at fields that lead to amounts; `None` if none does."""
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    checks = [(one.name, one.encode_name, check) for one in found.fields if (check := _check_for(one.type)) is not None]
    if not checks:
        return None

    def check_fields(value: Any) -> Iterator[BadAmount]:
        for name, written, check in checks:
            part = getattr(value, name)
            if part is not None:
                for steps, problem in check(part):
                    yield (written, *steps), problem

    return check_fields


def _check_for(kind: inspect.Type) -> _Check | None:
    if isinstance(kind, inspect.UnionType):
        if {inspect.StrType, inspect.IntType, inspect.FloatType} <= {type(one) for one in kind.types}:
            return _amount
        return next((check for one in kind.types if (check := _check_for(one)) is not None), None)
    if isinstance(kind, inspect.StructType):
        return _check_of(kind.cls)
    if isinstance(kind, inspect.DictType):
        return _each(_check_for(kind.value_type), lambda found: found.items())
    if isinstance(kind, inspect.VarTupleType):
        return _each(_check_for(kind.item_type), enumerate)
    return None


def _each(check: _Check | None, entries: Callable[[Any], Any]) -> _Check | None:
    if check is None:
        return None

    def check_each(value: Any) -> Iterator[BadAmount]:
        for step, part in entries(value):
            for steps, problem in check(part):
                yield (step, *steps), problem

    return check_each


def _amount(value: Any) -> Iterator[BadAmount]:
    try:
        quantity.parse(value)
    except quantity.QuantityError as problem:
        yield (), str(problem)


K = TypeVar("K", bound=KubeObject)

MOST_PROBLEMS = 100
"""An object with more damaged fields counts as nothing."""

GARBLED = "\ufffd"
"""Stands in texts where the bytes were no UTF-8."""

_Steps = tuple[str | int, ...]
_EACH = "..."
_STEPS = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_GOT = re.compile(r"got `(\w+)`")
_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    list: "array",
    dict: "object",
    type(None): "null",
}


@dataclass(slots=True)
class PartialReading(Generic[K]):
    """`item` is what is left, `None` if that is nothing; `problems` say field by field what is not."""

    item: K | None = None
    problems: list[str] = field(default_factory=list)


def read_partly(tree: Any, kind: type[K], last_known: KubeObject | None = None) -> PartialReading[K]:
    """`tree` is taken apart on the way."""
    reading: PartialReading[K] = PartialReading()
    if isinstance(tree, dict):
        for steps in garbled(tree):
            reading.problems.append(f"{_written(steps)}: not UTF-8")
            _replace(tree, steps, None, set())
    older = None if last_known is None else msgspec.to_builtins(last_known)
    restored: set[_Steps] = set()
    for _ in range(MOST_PROBLEMS):
        found = _first_problem(tree, kind)
        if isinstance(found, kind):
            reading.item = found
            break
        assert isinstance(found, _Damage)
        if not found.is_harmless:
            reading.problems.append(found.told)
        if not _mend(tree, found, older, restored):
            break
    return reading


def garbled(tree: Any, path: _Steps = ()) -> list[_Steps]:
    """Where a text was not UTF-8, the last first, so that all can be taken out."""
    found: list[_Steps] = []
    for step, value in reversed(_entries(tree)):
        steps = (*path, step)
        if GARBLED in str(step) or (isinstance(value, str) and GARBLED in value):
            found.append(steps)
        elif isinstance(value, dict | list):
            found += garbled(value, steps)
    return found


def plain_problem(problem: Exception, tree: Any = None) -> str:
    """msgspec's `Expected `int`, got `str` - at `$.spec.x`` as `spec.x: expected int, got str`.

    msgspec does not say which entry of a map it means; with the `tree` that was read, the first that fits is named.
    """
    text, _, path = str(problem).partition(" - at `$")
    steps, got = _steps_of(path), _GOT.search(text)
    if tree is not None and got and _EACH in steps and steps.index(_EACH) == len(steps) - 1:
        meant = next((name for name, value in _entries(_at(tree, steps[:-1])) if _is_a(value, got[1])), None)
        path = path if meant is None else _written((*steps[:-1], meant))
    text = text.replace("`", "")
    text = text[:1].lower() + text[1:]
    path = path.rstrip("`").lstrip(".")
    return f"{path}: {text}" if path else text


@dataclass(frozen=True, slots=True)
class _Damage:
    steps: _Steps
    told: str
    got: str = ""

    @property
    def is_harmless(self) -> bool:
        return self.got == "null" and bool(self.steps) and isinstance(self.steps[-1], str) and self.steps[-1] != _EACH


def _first_problem(tree: Any, kind: type[K]) -> K | _Damage:
    try:
        item = msgspec.convert(tree, kind)
    except msgspec.ValidationError as problem:
        text, _, path = str(problem).partition(" - at `$")
        got = _GOT.search(text)
        return _Damage(_steps_of(path), plain_problem(problem, tree), got[1] if got else "")
    bad = first_bad_amount(item)
    if bad is None:
        return item
    steps, problem_text = bad
    return _Damage(steps, f"{_written(steps)}: {problem_text}")


def _steps_of(path: str) -> _Steps:
    return tuple(
        step[1] if step[1] else _EACH if step[2] == _EACH else int(step[2])
        for step in _STEPS.finditer(path.rstrip("`"))
    )


def _written(steps: _Steps) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) or "/" in step else f".{step}" for step in steps)
    return text.removeprefix(".")


def _mend(tree: Any, damage: _Damage, older: Any, restored: set[_Steps]) -> bool:
    """Puts what was last known in the place of what is damaged, or nothing. False if that cannot be done."""
    steps = damage.steps
    if not steps:
        return False
    if steps[-1] == _EACH:
        entries = _at(tree, steps[:-1])
        damaged = [name for name, value in _entries(entries) if _is_a(value, damage.got)]
        if not damaged:  # not by its type, then by what it says (a number out of range): all of them
            damaged = [name for name, _ in _entries(entries)]
        for name in damaged:
            _replace(tree, (*steps[:-1], name), None if damage.is_harmless else older, restored)
        return bool(damaged)
    if _EACH in steps:  # inside one of a map's entries: which, is not told
        return _mend(tree, _Damage(steps[: steps.index(_EACH)], damage.told), older, restored)
    return _replace(tree, steps, None if damage.is_harmless else older, restored)


def _replace(tree: Any, steps: _Steps, older: Any, restored: set[_Steps]) -> bool:
    parent, last = _at(tree, steps[:-1]), steps[-1]
    if not isinstance(parent, dict | list) or (isinstance(parent, list) and not isinstance(last, int)):
        return False
    known = None if steps in restored else _at(older, steps)
    restored.add(steps)
    try:
        if known is not None:
            parent[last] = known  # type: ignore[index]
        else:
            del parent[last]  # type: ignore[arg-type]
    except (KeyError, IndexError):
        return False
    return True


def _at(tree: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def _is_a(value: object, name: str) -> bool:
    return _NAMES.get(type(value), "") == name


def _entries(found: Any) -> list[tuple[str | int, Any]]:
    if isinstance(found, dict):
        return list(found.items())
    return list(enumerate(found)) if isinstance(found, list) else []


HIGHEST_PRIORITY = 2**31 - 1


class UnreadPod(core.Pod, frozen=True):
    """A pod without a node that cannot be read in full: it must not be scheduled, but it exists."""


StandIn = Callable[[Any, Sequence[str]], Any]
"""Of what can be read of an object, and what cannot, what the object counts as; `None`: nothing."""


def stand_in_for(item: K, problems: Sequence[str]) -> K | None:
    """For a scheduler. `item` is what can be read. `None` if it is safest to do without."""
    make: StandIn = _STAND_INS.get(type(item), _nothing)
    found: K | None = make(item, problems)
    return found


def as_far_as_read(item: K, _problems: Sequence[str]) -> K:
    """For who must not take an object for gone because a field of it cannot be read: it would be recreated, or what
    belongs to it cleaned up."""
    return item


def described(stand_in: KubeObject | None) -> str:
    """What is counted now, for the log."""
    if isinstance(stand_in, core.Pod):
        node = stand_in.spec.node_name
        return f"a pod on {node}, as far as it can be read" if node else "a pod that is not scheduled"
    if isinstance(stand_in, core.Node) and (stand_in.status.allocatable or {}).get("pods") == "0":
        return "a node that takes no more pods"
    return "nothing" if stand_in is None else "what can be read of it"


def bare_stand_in_for(item: KubeObject) -> KubeObject | None:
    """The least that a pod on a node, or a node, counts as, if even what was read of it cannot be used."""
    metadata = item.metadata
    name = ObjectMeta(metadata.name, metadata.namespace, metadata.uid, metadata.resource_version)
    if isinstance(item, core.Pod) and item.spec.node_name:
        spec = core.PodSpec(
            node_name=item.spec.node_name, scheduler_name=item.spec.scheduler_name, priority=HIGHEST_PRIORITY
        )
        return core.Pod(name, spec)
    if isinstance(item, core.Node):
        return _node(core.Node(name), ())
    return None


def _nothing(_item: KubeObject, _problems: Sequence[str]) -> None:
    return None


def _pod(pod: core.Pod, problems: Sequence[str]) -> core.Pod:
    """On its node it takes what is known of its requests. One whose priority is not known is never a victim."""
    if not pod.spec.node_name:
        return UnreadPod(pod.metadata, pod.spec, pod.status)
    if any(problem.startswith(("spec.priority:", "spec:")) for problem in problems):
        return replace(pod, spec=replace(pod.spec, priority=HIGHEST_PRIORITY))
    return pod


def _node(node: core.Node, _problems: Sequence[str]) -> core.Node:
    """Its labels still tell where its pods are; it is cordoned and has room for none, whatever a pod tolerates."""
    allocatable = {**(node.status.allocatable or {}), "pods": "0"}
    return replace(
        node, spec=replace(node.spec, unschedulable=True), status=replace(node.status, allocatable=allocatable)
    )


def _claim(claim: resource.ResourceClaim, _problems: Sequence[str]) -> resource.ResourceClaim | None:
    """Devices that are allocated stay so; a claim that has none gets none."""
    return None if claim.status.allocation is None else claim


def _csi_node(node: storage.CSINode, problems: Sequence[str]) -> storage.CSINode:
    """A limit that cannot be read is none that may be counted on: no more volumes of that driver."""
    if not any("allocatable" in problem for problem in problems):
        return node
    none = storage.VolumeNodeResources(count=0)
    drivers = tuple(
        replace(driver, allocatable=none) if driver.allocatable is None or driver.allocatable.count is None else driver
        for driver in node.spec.drivers
    )
    return replace(node, spec=replace(node.spec, drivers=drivers))


_STAND_INS: dict[type[KubeObject], Callable[..., Any]] = {
    core.Pod: _pod,
    core.Node: _node,
    core.Namespace: as_far_as_read,
    core.Service: as_far_as_read,
    core.ReplicationController: as_far_as_read,
    apps.ReplicaSet: as_far_as_read,
    apps.StatefulSet: as_far_as_read,
    core.PodDisruptionBudget: as_far_as_read,
    storage.CSINode: _csi_node,
    storage.CSIDriver: as_far_as_read,
    storage.VolumeAttachment: as_far_as_read,
    resource.ResourceClaim: _claim,
}
"""All other kinds are not there until they can be read."""
