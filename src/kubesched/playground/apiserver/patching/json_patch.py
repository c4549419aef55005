"""JSON patch (RFC 6902) and JSON merge patch (RFC 7396) on plain JSON, with the real server's answers to failures.

A failing operation gives 422 without further detail, a patch that is no list of operations 400. As there, at most
10,000 operations, and copies of at most 3 MiB together. In a merge patch objects merge key by key, null removes,
everything else replaces.

The real server's patchers decode only the objects that a patch reaches into, and write those with sorted keys; all
others stay as they were. Only messages about patches that leave a wrong object need this order.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar, cast

from kubesched.playground.apiserver.errors import StatusError, bad_request
from kubesched.playground.apiserver.openapi.go_json import word_for
from kubesched.playground.apiserver.openapi.schemas import ValueType


def in_go_order(value: Any, of: ValueType | None) -> Any:
    """The object with the fields of its structs in Go's order, also those that defaults added at the end."""
    if isinstance(value, list):
        element = of.element if of is not None and of.form == "list" else None
        return value if element is None else [in_go_order(item, element) for item in value]
    if not isinstance(value, dict) or of is None or of.form not in ("struct", "map"):
        return value
    if of.form == "map":
        return {name: in_go_order(item, of.element) for name, item in value.items()}
    fields = of.fields
    known = {name: in_go_order(value[name], field.type) for name, field in fields.items() if name in value}
    return known | {name: item for name, item in value.items() if name not in fields}


def as_written(patched: Any, patch: Any) -> Any:
    """The object with sorted keys wherever the patch (a merge patch or JSON patch operations) reached into it."""
    if isinstance(patch, list):
        for operation in patch:
            for name in ("from", "path") if isinstance(operation, dict) else ():
                if isinstance(operation.get(name), str):
                    patched = _sorted_along(patched, operation[name].split("/")[1:])
        return patched
    return _sorted_where_merged(patched, patch)


def _sorted_along(value: Any, path: list[str]) -> Any:
    if not path:
        return value
    first = path[0].replace("~1", "/").replace("~0", "~")
    if isinstance(value, dict):
        return {name: _sorted_along(value[name], path[1:]) if name == first else value[name] for name in sorted(value)}
    if isinstance(value, list) and first.isdecimal() and int(first) < len(value):
        place = int(first)
        return [*value[:place], _sorted_along(value[place], path[1:]), *value[place + 1 :]]
    return value


def _sorted_where_merged(value: Any, patch: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(patch, dict):
        return _sorted_throughout(value)
    return {
        name: _sorted_where_merged(value[name], patch[name]) if name in patch else value[name] for name in sorted(value)
    }


def _sorted_throughout(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted_throughout(value[name]) for name in sorted(value)}
    return [_sorted_throughout(item) for item in value] if isinstance(value, list) else value


T = TypeVar("T")


def plain_copy(value: T) -> T:
    """The same value, sharing nothing that can change."""
    if isinstance(value, dict):
        return cast(T, {name: plain_copy(item) for name, item in value.items()})
    if isinstance(value, list):
        return cast(T, [plain_copy(item) for item in value])
    return value


_MOST_OPERATIONS = 10_000
_MOST_COPIED_BYTES = 3 * 1024 * 1024
_MOST_DIGITS = 9
_MOST_LEVELS = 500
"""How deep an operation may reach; copies of copies could nest without end."""


class _CannotApplyError(Exception):
    """An operation does not fit the document; the client learns only that."""


def apply(document: Any, operations: Any) -> Any:
    """A new document with all operations done, in order. Raises StatusError."""
    operations = [] if operations is None else operations
    _check_form(operations)
    patched = plain_copy(document)
    n_copied = 0
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                n_copied += _size(_find(patched, _segments(operation.get("from"))))
                if n_copied > _MOST_COPIED_BYTES:
                    raise _CannotApplyError
            patched = _apply_one(patched, operation)
    except (_CannotApplyError, RecursionError):
        raise rejected() from None
    return patched


def _size(value: Any) -> int:
    """In bytes, as JSON."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace"))


def unknown_fields(operations: Any) -> list[str]:
    """Paths of what operations have but should not."""
    if not isinstance(operations, list):
        return []
    known = ("op", "path", "from", "value")
    named = ((at, name) for at, one in enumerate(operations) if isinstance(one, dict) for name in one)
    return [f"[{at}].{name}" for at, name in named if name not in known]


def rejected() -> StatusError:
    """The patch does not fit; the client learns no more."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def _check_form(operations: Any) -> None:
    if not isinstance(operations, list):
        where = "Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: json: cannot unmarshal {word_for(operations)} into {where}")
    if len(operations) > _MOST_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")
    for operation in operations:
        if operation is None:
            raise rejected()
        if not isinstance(operation, dict):
            where = "Go value of type handlers.jsonPatchOp"
            raise bad_request(f"error decoding patch: json: cannot unmarshal {word_for(operation)} into {where}")
        for name in ("op", "from", "path"):
            value = operation.get(name)
            if not isinstance(value, str | None):
                where = f"Go struct field jsonPatchOp.{name} of type string"
                raise bad_request(f"error decoding patch: json: cannot unmarshal {word_for(value)} into {where}")


def _apply_one(document: Any, operation: dict[str, Any]) -> Any:
    path = _segments(operation.get("path"))
    match operation.get("op"):
        case "add":
            _add(document, path, plain_copy(operation.get("value")))
        case "remove":
            _remove(document, path)
        case "replace":
            return _replace(document, path, plain_copy(operation.get("value")))
        case "move":
            source = _segments(operation.get("from"))
            value = _find(document, source)
            _remove(document, source)
            _add(document, path, value)
        case "copy":
            _add(document, path, plain_copy(_find(document, _segments(operation.get("from")))))
        case "test":
            found = _find(document, path) if path else document
            if not _is_equal(found, operation.get("value")):
                raise _CannotApplyError
        case _:
            raise _CannotApplyError
    return document


def _segments(pointer: Any) -> list[str]:
    if not isinstance(pointer, str):
        raise _CannotApplyError
    found = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    if len(found) > _MOST_LEVELS:
        raise _CannotApplyError
    return found


def _position(segment: str, length: int) -> int:
    """The place that a segment names in a list of that length; negative ones count from the end."""
    if len(segment) > _MOST_DIGITS or not re.fullmatch(r"[+-]?[0-9]+", segment):
        raise _CannotApplyError
    place = int(segment)
    if not -length <= place < length:
        raise _CannotApplyError
    return place + length if place < 0 else place


def _container(document: Any, path: list[str]) -> Any:
    """What holds the last step of a path."""
    if not path:
        raise _CannotApplyError
    for segment in path[:-1]:
        if isinstance(document, dict) and document.get(segment) is not None:
            document = document[segment]
        elif isinstance(document, list):
            document = document[_position(segment, len(document))]
        else:
            raise _CannotApplyError
    if not isinstance(document, dict | list):
        raise _CannotApplyError
    return document


def _find(document: Any, path: list[str]) -> Any:
    """The value at a path; what an object does not have is null."""
    container = _container(document, path)
    return container.get(path[-1]) if isinstance(container, dict) else container[_position(path[-1], len(container))]


def _add(document: Any, path: list[str], value: Any) -> None:
    container, last = _container(document, path), path[-1]
    if isinstance(container, dict):
        container[last] = value
    else:
        container.insert(len(container) if last == "-" else _position(last, len(container) + 1), value)


def _replace(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        if not isinstance(value, dict | list):
            raise _CannotApplyError
        return value
    container = _container(document, path)
    container[path[-1] if isinstance(container, dict) else _position(path[-1], len(container))] = value
    return document


def _remove(document: Any, path: list[str]) -> None:
    container, last = _container(document, path), path[-1]
    if isinstance(container, dict) and last not in container:
        raise _CannotApplyError
    del container[last if isinstance(container, dict) else _position(last, len(container))]


def _is_equal(one: Any, other: Any) -> bool:
    """JSON equality: true is not 1, 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return bool(one == other)
