"""Which amount of a decoded object is no quantity. The decoder takes any text for one, since parsing is left to those
who need the value; an object that came from outside is looked through once, before anybody relies on it.

Next: `quantity`, which parses; `partial_reading`, which asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from kubesched.k8s.model import quantity
from kubesched.k8s.model.meta import KubeObject

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
