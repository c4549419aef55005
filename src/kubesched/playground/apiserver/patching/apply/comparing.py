"""What changed between two objects, as sets of fields; and the fields of an applied configuration.

A field counts as added itself, besides its parts, when it was absent before; empty containers and atomic values are
leaves. ``managed.py`` and ``applying.py`` use both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kubesched.playground.apiserver.openapi.struct_types import OPAQUE, ValueType
from kubesched.playground.apiserver.patching.apply.field_sets import FieldSet, Path, without_below
from kubesched.playground.apiserver.patching.apply.typed_lists import is_granular, named_children


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
