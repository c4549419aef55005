"""Sets of field paths: their stored form, FieldsV1, those of a configuration, and what changed between two objects.

A path is a tuple of elements as FieldsV1 writes them: ``f:name`` a field, ``k:{"name":"c"}`` the list item with these
keys, ``v:"x"`` the item of a set, ``i:0`` a position. A set holds the paths that are owned.

Values without a schema (custom resources) are walked as apply does then: objects key by key, lists as a whole. A field
counts as added itself, besides its parts, when it was absent before; empty containers and atomic values are leaves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from kubesched.playground.apiserver.openapi.schemas import ANY, OPAQUE, ValueType

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


def is_granular(value: Any, of: ValueType) -> bool:
    """Whether ownership goes below this value: not for scalars, empty containers and what is atomic."""
    if isinstance(value, dict):
        return of.form in ("struct", "map", "any") and not of.is_atomic
    if isinstance(value, list):
        return of.form == "list" and of.list_type in ("map", "set")
    return False


@lru_cache(maxsize=4096)
def key_defaults(of: ValueType) -> dict[str, Any]:
    """Defaults of the keys of a list's items (a port's protocol)."""
    element = of.element
    if element is None or element.form != "struct":
        return {}
    fields = element.fields
    found = {name: fields[name].default for name in of.map_keys if name in fields}
    return {name: value for name, value in found.items() if value is not None}


def named_items(items: list[Any], of: ValueType) -> Iterator[tuple[str, Any]]:
    """Items of a granular list with their path elements, in order."""
    defaults = key_defaults(of) if of.list_type == "map" else {}
    for item in items:
        if of.list_type == "map" and isinstance(item, dict):
            yield key_element(item, of.map_keys, defaults), item
        else:
            yield value_element(item), item


def named_children(value: Any, of: ValueType) -> Iterator[tuple[str, Any, ValueType]]:
    """The parts of a granular value: path element, part, its type."""
    if isinstance(value, dict) and of.form == "struct":
        fields = of.fields
        for name, part in value.items():
            known = fields.get(name)
            yield f"f:{name}", part, ANY if known is None else known.type
    elif isinstance(value, dict):
        element_type = of.element or ANY
        for name, part in value.items():
            yield f"f:{name}", part, element_type
    else:
        for element, item in named_items(value, of):
            yield element, item, of.element or ANY


@dataclass(slots=True)
class Comparison:
    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)

    def without(self, roots: tuple[Path, ...]) -> Comparison:
        """Without fields that the request cannot change."""
        parts = (self.added, self.modified, self.removed)
        return Comparison(*(set(without_below(frozenset(part), roots)) for part in parts))

    @property
    def changed(self) -> FieldSet:
        return frozenset(self.added | self.modified)


def compare(old: Any, new: Any, of: ValueType) -> Comparison:
    found = Comparison()
    _compare(old, new, of, (), found)
    return found


def _compare(old: Any, new: Any, of: ValueType, path: Path, found: Comparison) -> None:
    if not _goes_deeper(old, new, of):
        _compare_leaf(old, new, path, found)
        return
    before = _parts(old, of)
    after = _parts(new, of)
    for element, (value, value_type) in after.items():
        if element not in before:
            _collect_all(value, value_type, (*path, element), found.added)
            continue
        previous = before[element][0]
        if previous != value:
            _compare(previous, value, value_type, (*path, element), found)
    for element, (value, value_type) in before.items():
        if element not in after:
            _collect_all(value, value_type, (*path, element), found.removed)


def _goes_deeper(old: Any, new: Any, of: ValueType) -> bool:
    if _is_blank(old):
        return not _is_blank(new) and is_granular(new, of)
    return is_granular(old, of) and (_is_blank(new) or is_granular(new, of))


def _collect_all(value: Any, of: ValueType, path: Path, into: set[Path]) -> None:
    """A value that was not there before, or is not any more: it counts itself, and all its parts."""
    into.add(path)
    if not value or not is_granular(value, of):
        return
    # names within an object cannot repeat, so only lists need their parts by name
    parts = named_children(value, of) if isinstance(value, dict) else _named_parts(value, of)
    for element, part, part_type in parts:
        if isinstance(part, dict | list):
            _collect_all(part, part_type, (*path, element), into)
        else:
            into.add((*path, element))


def _named_parts(value: Any, of: ValueType) -> Iterator[tuple[str, Any, ValueType]]:
    return ((element, part, part_type) for element, (part, part_type) in _parts(value, of).items())


def _is_blank(value: Any) -> bool:
    return value is None or value == {} or value == []


def _parts(value: Any, of: ValueType) -> dict[str, tuple[Any, ValueType]]:
    if _is_blank(value):
        return {}
    parts: dict[str, tuple[Any, ValueType]] = {}
    for element, part, part_type in named_children(value, of):
        # items that repeat a key are owned together, as one
        parts[element] = ([parts[element][0], part], OPAQUE) if element in parts else (part, part_type)
    return parts


def _compare_leaf(old: Any, new: Any, path: Path, found: Comparison) -> None:
    if old != new:
        found.modified.add(path)


def fields_of(value: Any, of: ValueType) -> FieldSet:
    """The fields that a configuration sets: its leaves and its list items."""
    found: set[Path] = set()
    _collect(value, of, (), found)
    return frozenset(found)


def _collect(value: Any, of: ValueType, path: Path, found: set[Path]) -> None:
    if value == [] and is_granular(value, of):
        return  # nobody owns a list whose items are owned one by one
    if _is_blank(value) or not is_granular(value, of):
        found.add(path)
        return
    is_keyed = isinstance(value, list) or of.form != "struct"
    for element, part, part_type in named_children(value, of):
        inner = (*path, element)
        if is_keyed:
            found.add(inner)
        _collect(part, part_type, inner, found)
