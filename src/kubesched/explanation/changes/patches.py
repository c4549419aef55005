"""JSON patches (RFC 6902, as `kubectl patch --type=json` takes them), made for and applied to typed objects.

A change of a pod or a node is written as such a patch, once: what the engine tried out and what the user is given to
apply are the same text.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from kubesched.k8s.model.meta import KubeObject

Object = TypeVar("Object", bound=KubeObject)

APPEND = "-"
"""As the last part of a path: the end of a list."""


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """`add` sets a field or inserts into a list, `remove` takes a field or an entry away."""

    op: str
    path: tuple[str | int, ...]
    value: Any = None

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer."""
        return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in self.path)

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"op": self.op, "path": self.pointer}
        return record if self.op == "remove" else {**record, "value": self.value}


def put(*path: str | int, value: Any) -> PatchOperation:
    return PatchOperation("add", path, value)


def remove(*path: str | int) -> PatchOperation:
    return PatchOperation("remove", path)


def append(entries: Iterable[Any], *path: str | int, has_list: bool) -> list[PatchOperation]:
    """Puts entries at the end of a list that may not be there yet."""
    values = list(entries)
    if not has_list:
        return [put(*path, value=values)]
    return [put(*path, APPEND, value=value) for value in values]


def patched(item: Object, operations: Iterable[PatchOperation]) -> Object:
    """The object with all operations applied in turn."""
    document = msgspec.json.decode(msgspec.json.encode(item))
    for operation in operations:
        _apply(document, operation)
    return msgspec.convert(document, type(item))


def _apply(document: Any, operation: PatchOperation) -> None:
    *above, last = operation.path
    place = document
    for part in above:
        if isinstance(place, dict) and part not in place and operation.op == "add":
            place[part] = {}
        place = place[part]
    if operation.op == "remove":
        del place[last]
    elif isinstance(place, dict):
        place[last] = deepcopy(operation.value)
    else:
        place.insert(len(place) if last == APPEND else last, deepcopy(operation.value))
