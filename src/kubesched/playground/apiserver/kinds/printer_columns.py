"""The columns that a CustomResourceDefinition asks for (additionalPrinterColumns), read by simple JSON paths.

A path has names, ``['quoted names']``, positions, ``[*]`` and filters like ``[?(@.type=="Ready")]``; its first result
is shown. What a path does not find, or finds in another type than the column's, is an empty cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kubesched.k8s.model.times import InstantError
from kubesched.playground.apiserver.kinds.ages import since
from kubesched.playground.apiserver.kinds.table_columns import AGE, NAME
from kubesched.playground.apiserver.served_resource import Object, TableColumn

_Step = Callable[[Any], Iterator[Any]]
_TOKEN = re.compile(
    r"""\.?\[\s*'(?P<quoted>(?:[^'\\]|\\.)*)'\s*\]"""
    r"""|\.?\[\s*\?\(\s*@(?P<where>[^=!<>\s]+)\s*(?P<sign>==|!=)\s*(?P<what>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\s*\]"""
    r"""|\.?\[\s*(?P<place>-?\d+)\s*\]"""
    r"""|\.?\[\s*(?P<from>-?\d*)\s*:\s*(?P<to>-?\d*)\s*\]"""
    r"""|\.?(?P<all>\[\s*\*\s*\]|\*)"""
    r"""|\.(?P<name>(?:[^.\[\]\\]|\\.)+)"""
)


def columns_of(wanted: list[Object]) -> tuple[TableColumn, ...]:
    """The name and what was asked for; the age, if nothing was."""
    if not wanted:
        return (NAME, TableColumn("Age", AGE.value, type="date", description=AGE.description))
    return (NAME, *(_column(one) for one in wanted))


def _column(one: Object) -> TableColumn:
    steps, form = _steps(one["jsonPath"]), one.get("type", "string")

    def value(obj: Object) -> Any:
        found = None if steps is None else next(_walk(obj, steps), None)
        return _cell(found, form)

    return TableColumn(
        name=one["name"],
        value=value,
        type=form,
        format=one.get("format", ""),
        description=one.get("description")
        or f"Custom resource definition column (in JSONPath format): {one['jsonPath']}",
        priority=one.get("priority", 0),
    )


def _cell(value: Any, form: str) -> Any:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match form:
        case "string":
            return value if isinstance(value, str) else _as_text(value)
        case "integer":
            return int(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date" if isinstance(value, str):
            try:
                return since(value)
            except InstantError:
                return "<invalid>"
    return None


def _as_text(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _steps(path: str) -> list[_Step] | None:
    """None for a path that is more than a simple one."""
    steps: list[_Step] = []
    at = 0
    while at < len(path):
        token = _TOKEN.match(path, at)
        if token is None:
            return None
        step = _step(token)
        if step is None:
            return None
        steps.append(step)
        at = token.end()
    return steps


def _step(token: re.Match[str]) -> _Step | None:
    parts = token.groupdict()
    if parts["name"] is not None or parts["quoted"] is not None:
        name = re.sub(r"\\(.)", r"\1", parts["name"] if parts["name"] is not None else parts["quoted"])
        return lambda value: iter([value[name]] if isinstance(value, dict) and name in value else [])
    if parts["place"] is not None:
        place = int(parts["place"])
        return lambda value: iter(value[place : place + 1 or None] if isinstance(value, list) else [])
    if parts["from"] is not None:
        first, last = int(parts["from"] or 0), int(parts["to"]) if parts["to"] else None
        return lambda value: iter(value[first:last] if isinstance(value, list) else [])
    if parts["all"] is not None:
        return lambda value: iter(
            value if isinstance(value, list) else value.values() if isinstance(value, dict) else []
        )
    return _filter(parts["where"], parts["sign"], parts["what"])


def _filter(where: str, sign: str, what: str) -> _Step | None:
    inner = _steps(where)
    if inner is None:
        return None
    wanted = what[1:-1] if what[:1] in "\"'" else what

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = next(_walk(item, inner), None)
            if found is not None and ((_shown(found) == wanted) == (sign == "==")):
                yield item

    return step


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else _as_text(value)


def _walk(value: Any, steps: list[_Step]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    for found in steps[0](value):
        yield from _walk(found, steps[1:])
