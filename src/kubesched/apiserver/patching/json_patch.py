"""JSON patch (RFC 6902) on plain JSON, with the real server's answers to operations that fail.

A failing operation gives 422 without further detail, a patch that is no list of operations 400. As there, at most
10,000 operations, and copies of at most 3 MiB together.
"""

from __future__ import annotations

import json
from typing import Any

from kubesched.apiserver.errors import StatusError, bad_request
from kubesched.apiserver.openapi.go_json import word_for
from kubesched.apiserver.patching.plain_copies import plain_copy

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
            return _add(document, path, plain_copy(_value(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            _find(document, path)
            return _put(document, path, plain_copy(_value(operation)))
        case "move":
            source = _segments(operation.get("from"))
            if path[: len(source)] == source and path != source:
                raise _CannotApplyError
            value = _find(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, plain_copy(_find(document, _segments(operation.get("from")))))
        case "test":
            if not _is_equal(_find(document, path), _value(operation)):
                raise _CannotApplyError
            return document
    raise _CannotApplyError


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise _CannotApplyError
    return operation["value"]


def _segments(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise _CannotApplyError
    if pointer.count("/") > _MOST_LEVELS:
        raise _CannotApplyError
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _position(segment: str, length: int) -> int:
    """The place that a segment names in a list of that length (one more is allowed by callers that add)."""
    if not segment.isascii() or not segment.isdigit() or (segment != "0" and segment.startswith("0")):
        raise _CannotApplyError
    if len(segment) > _MOST_DIGITS:
        raise _CannotApplyError
    place = int(segment)
    if place >= length:
        raise _CannotApplyError
    return place


def _step(container: Any, segment: str) -> Any:
    if isinstance(container, dict) and segment in container:
        return container[segment]
    if isinstance(container, list):
        return container[_position(segment, len(container))]
    raise _CannotApplyError


def _find(document: Any, path: list[str]) -> Any:
    for segment in path:
        document = _step(document, segment)
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    container = _find(document, path[:-1])
    last = path[-1]
    if isinstance(container, dict):
        container[last] = value
    elif isinstance(container, list):
        container.insert(len(container) if last == "-" else _position(last, len(container) + 1), value)
    else:
        raise _CannotApplyError
    return document


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    container = _find(document, path[:-1])
    if isinstance(container, dict):
        container[path[-1]] = value
    else:
        container[_position(path[-1], len(container))] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        return None
    container = _find(document, path[:-1])
    _step(container, path[-1])
    if isinstance(container, dict):
        del container[path[-1]]
    else:
        del container[_position(path[-1], len(container))]
    return document


def _is_equal(one: Any, other: Any) -> bool:
    """JSON equality: true is not 1, 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return bool(one == other)
