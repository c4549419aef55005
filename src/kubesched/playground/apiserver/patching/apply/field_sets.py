"""Sets of field paths and their stored form, FieldsV1.

A path is a tuple of elements as FieldsV1 writes them: ``f:name`` a field, ``k:{"name":"c"}`` the list item with these
keys, ``v:"x"`` the item of a set, ``i:0`` a position. A set holds the paths that are owned; ``comparing.py`` and
``merging.py`` compute with them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec

Path = tuple[str, ...]
FieldSet = frozenset[Path]

EMPTY: FieldSet = frozenset()


class FieldsError(ValueError):
    """What should be FieldsV1 is not."""


def read_fields(fields: Any) -> FieldSet:
    """From FieldsV1, None being none. Raises FieldsError."""
    return _read_text(msgspec.json.encode(fields))


@lru_cache(maxsize=2048)
def _read_text(fields: bytes) -> FieldSet:
    """Objects of one sort have the same owners of the same fields: most were read before."""
    found: set[Path] = set()
    _read_into(msgspec.json.decode(fields), (), found)
    return frozenset(found)


def _read_into(fields: Any, path: Path, found: set[Path]) -> None:
    if fields is None:
        return
    if not isinstance(fields, dict):
        raise FieldsError(f"no fields: {fields!r}")
    for element, inner in fields.items():
        if element == ".":
            found.add(path)
        elif not _is_element(element):
            continue
        elif not inner and isinstance(inner, dict | None):
            found.add((*path, element))
        else:
            _read_into(inner, (*path, element), found)


def _is_element(element: str) -> bool:
    """Whether it names something; sorts of a later version are passed over, broken ones raise FieldsError."""
    sort, colon, text = element.partition(":")
    if not colon or len(sort) != 1:
        raise FieldsError(f"no path element: {element!r}")
    try:
        if sort == "k" and not isinstance(msgspec.json.decode(text), dict):
            raise FieldsError(f"no keys: {element!r}")
        if sort == "v":
            msgspec.json.decode(text)
        if sort == "i":
            int(text)
    except ValueError as error:
        raise FieldsError(f"{element!r}: {error}") from None
    return sort in _RANKS


def write_fields(paths: FieldSet) -> dict[str, Any]:
    """As FieldsV1, elements sorted; "." marks what is owned and has owned fields below it."""
    fields: dict[str, Any] = msgspec.json.decode(_written_text(paths))
    return fields


@lru_cache(maxsize=2048)
def _written_text(paths: FieldSet) -> bytes:
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return msgspec.json.encode(_rendered(tree))


def _rendered(node: dict[str, Any]) -> dict[str, Any]:
    if node.keys() == {"."}:
        return {}
    return {element: _rendered(node[element]) if element != "." else {} for element in sorted(node, key=_rank)}


_RANKS = {".": 0, "f": 1, "k": 2, "v": 3, "i": 4}


_Rank = tuple[tuple[str, int, float, str], ...]


@lru_cache(maxsize=4096)
def _rank(element: str) -> tuple[int, _Rank]:
    """Elements by their sort, then by name; keys and values by value: port 80 comes before port 443."""
    sort, _, text = element.partition(":")
    keys = json.loads(text) if sort in ("k", "v") else {"": text}
    named = keys.items() if isinstance(keys, dict) else [("", keys)]
    return _RANKS.get(sort, 9), tuple((name, *_value_rank(value)) for name, value in named)


def _value_rank(value: Any) -> tuple[int, float, str]:
    if isinstance(value, bool):
        return 2, float(value), ""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return (1, 0.0, value) if isinstance(value, str) else (3, 0.0, json.dumps(value))


def in_order(paths: FieldSet) -> list[Path]:
    """As the real server lists them: at every level first what ends there, then what goes deeper."""

    def key(path: Path) -> list[tuple[int, tuple[int, _Rank]]]:
        last = len(path) - 1
        return [(int(at < last), _rank(element)) for at, element in enumerate(path)]

    return sorted(paths, key=key)


def without_below(paths: FieldSet, roots: tuple[Path, ...]) -> FieldSet:
    """The set without the roots and all that lies below them."""
    if not roots:
        return paths
    if all(len(root) == 1 for root in roots):
        return frozenset([path for path in paths if path[:1] not in roots])
    return frozenset(path for path in paths if not any(path[: len(root)] == root for root in roots))


def with_ancestors(paths: FieldSet) -> set[Path]:
    return {path[:n] for path in paths for n in range(1, len(path) + 1)}


def key_element(item: dict[str, Any], keys: tuple[str, ...], defaults: dict[str, Any]) -> str:
    """The element for a list item with keys; a missing key counts with its default."""
    chosen = {}
    for name in sorted(keys):
        value = item.get(name, defaults.get(name))
        if value is not None:
            chosen[name] = value
    return "k:" + msgspec.json.encode(chosen).decode()


def value_element(item: Any) -> str:
    return "v:" + json.dumps(item, separators=(",", ":"), ensure_ascii=False)


def print_path(path: Path) -> str:
    """As messages write it: .spec.containers[name="c"].image"""
    return "".join(_print_element(element) for element in path)


def _print_element(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "k":
        keys = json.loads(text)
        return "[" + ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in keys.items()) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"
