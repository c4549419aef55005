"""Putting an applied configuration into the live object, and taking out what its manager no longer wants.

Objects and keyed lists merge item by item; sets unite; everything else is replaced. Items of lists come in the
applied order, live ones that were not applied as early as they can.
"""

from __future__ import annotations

import copy
from typing import Any

from kubesched.playground.apiserver.openapi.struct_types import ANY, ValueType
from kubesched.playground.apiserver.patching.apply.field_sets import FieldSet, Path, with_ancestors
from kubesched.playground.apiserver.patching.apply.typed_lists import is_granular, named_items


def merge(live: Any, applied: Any, of: ValueType) -> Any:
    """A new value; neither argument is changed."""
    if not is_granular(applied, of) or not is_granular(live, of):
        return copy.deepcopy(applied)
    if isinstance(applied, dict) and isinstance(live, dict):
        merged = dict(live)
        for name, value in applied.items():
            part_type = of.child(name)
            merged[name] = merge(live[name], value, part_type) if name in live else copy.deepcopy(value)
        return merged
    if isinstance(applied, list) and isinstance(live, list):
        return _merge_lists(live, applied, of)
    return copy.deepcopy(applied)


def _merge_lists(live: list[Any], applied: list[Any], of: ValueType) -> list[Any]:
    before = dict(named_items(live, of))
    wanted = dict(named_items(applied, of))
    element = of.element or ANY
    return [
        before[name]
        if name not in wanted
        else merge(before[name], wanted[name], element)
        if name in before
        else copy.deepcopy(wanted[name])
        for name in _order(list(before), list(wanted))
    ]


def _order(live: list[str], applied: list[str]) -> list[str]:
    """Applied items in their order; live ones that were not applied as soon as their turn comes."""
    shared = [name for name in applied if name in live]
    done: dict[str, None] = {}
    at = n_applied = 0
    while at < len(live) or n_applied < len(applied):
        awaited = next((name for name in shared if name not in done), None)
        if at < len(live):
            name = live[at]
            if name not in applied:
                done[name] = None
                at += 1
                continue
            if name in done or (n_applied < len(applied) and name != applied[n_applied] and name != awaited):
                at += 1
                continue
        if n_applied < len(applied):
            done[applied[n_applied]] = None
            n_applied += 1
    return list(done)


def prune(merged: Any, no_longer_applied: FieldSet, still_owned: FieldSet, of: ValueType) -> Any:
    """Without the fields that their manager gave up and nobody else owns."""
    doomed = frozenset(no_longer_applied - with_ancestors(still_owned))
    return _without(merged, doomed, (), of) if doomed else merged


def _without(value: Any, doomed: FieldSet, path: Path, of: ValueType) -> Any:
    if isinstance(value, dict) and is_granular(value, of):
        kept = {}
        for name, part in value.items():
            inner = (*path, f"f:{name}")
            if inner not in doomed:
                kept[name] = _without(part, doomed, inner, of.child(name))
        return kept
    if isinstance(value, list) and is_granular(value, of):
        return [
            _without(item, doomed, (*path, name), of.element or ANY)
            for name, item in named_items(value, of)
            if (*path, name) not in doomed
        ]
    return value
