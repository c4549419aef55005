"""An applied configuration: whether it fits the schema of its kind, and how it is put into the live object.

Unlike other writes, apply refuses unknown fields, wrong types and list items that repeat a key, all with code 500 as
the real server does. Objects and keyed lists merge item by item; sets unite; everything else is replaced. Items of
lists come in the applied order, live ones that were not applied as early as they can. What its manager no longer wants
is taken out.
"""

from __future__ import annotations

import copy
from typing import Any

from kubesched.playground.apiserver.errors import unclassified
from kubesched.playground.apiserver.go_text import in_source, printed, type_name
from kubesched.playground.apiserver.openapi.schemas import ANY, ValueType
from kubesched.playground.apiserver.patching.field_sets import (
    FieldSet,
    Path,
    is_granular,
    named_items,
    print_path,
    with_ancestors,
)
from kubesched.playground.apiserver.served_resource import Object, ServedResource

_FORMS: dict[str, tuple[type[Any], ...]] = {
    "string": (str,),
    "time": (str,),
    "micro-time": (str,),
    "bytes": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "struct": (dict,),
    "map": (dict,),
    "list": (list,),
}


def fits(value: Object, of: ValueType) -> bool:
    """Whether a value has the types of its schema."""
    problems: list[str] = []
    _check(value, of, "", problems)
    return not problems


def check_configuration(applied: Object, kind_type: ValueType, resource: ServedResource) -> None:
    """Raises StatusError if the configuration does not fit."""
    problems: list[str] = []
    _check(applied, kind_type, "", problems)
    if not problems:
        return
    meta = applied.get("metadata")
    name = meta.get("name", "") if isinstance(meta, dict) else ""
    namespace = meta.get("namespace", "") if isinstance(meta, dict) else ""
    name = name if isinstance(name, str) else ""
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    why = problems[0] if len(problems) == 1 else "errors:" + "".join(f"\n  {one}" for one in problems)
    raise unclassified(f"failed to create typed patch object ({namespace}/{name}; {kind}): {why}")


def _check(value: Any, of: ValueType, path: str, problems: list[str]) -> None:
    if value is None or of.form == "any":
        return
    if of.form in ("quantity", "int-or-string"):
        if isinstance(value, dict | list):
            problems.append(f"{path}: expected any scalar, got &{{{printed(value)}}}")
        return
    wanted = _FORMS[of.form]
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        problems.append(f"{path}: expected {_expectation(value, of.form)}")
    elif of.form == "struct":
        for name, part in value.items():
            known = of.fields.get(name)
            if known is None:
                problems.append(f"{path}.{name}: field not declared in schema")
                return  # the real server looks no further in this object
            _check(part, known.type, f"{path}.{name}", problems)
    elif of.form == "map" and of.element is not None:
        for name, part in value.items():
            _check(part, of.element, f"{path}.{name}", problems)
    elif of.form == "list":
        _check_list(value, of, path, problems)


def _check_list(items: list[Any], of: ValueType, path: str, problems: list[str]) -> None:
    element = of.element
    assert element is not None
    if not is_granular(items, of):
        for position, item in enumerate(items):
            _check(item, element, f"{path}[{position}]", problems)
        return
    seen: set[str] = set()
    strays = [f"{path}: element {place}: {why}" for place, item in enumerate(items) if (why := _stray(item, of))]
    if strays:
        problems += strays
        return
    for name, item in named_items(items, of):
        printed = print_path((name,))
        if name in seen:
            problems.append(f"{path}: duplicate entries for key {printed}")
        seen.add(name)
        _check(item, element, f"{path}{printed}", problems)


def _stray(item: Any, of: ValueType) -> str:
    """Why an item cannot be told from the others by its key or value."""
    if of.list_type != "map":
        return "" if item is not None else "associative list without keys has an element that's an explicit null"
    if item is None:
        return "associative list with keys may not have a null element"
    return "" if isinstance(item, dict) else "associative list with keys may not have non-map elements"


def _expectation(value: Any, form: str) -> str:
    """Each sort of type has its own way to show what it got."""
    if form in ("integer", "number"):
        return f"numeric (int or float), got {type_name(value)}"
    if form in ("struct", "map", "list", "boolean"):
        return f"{'map' if form == 'struct' else form}, got &{{{printed(value)}}}"
    return f"string, got &value.valueUnstructured{{Value:{in_source(value)}}}"


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
