"""What every form of a catalogue is checked for: amounts, prices, labels, taints, requirements; with the words in which
what is wrong is told.

A `CatalogueError` is one line that names the file, the object and the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from kubesched.k8s.model.core import Taint
from kubesched.k8s.model.quantity import QuantityError, parse
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.model.selectors import SelectorError, label_key_errors, label_value_errors
from kubesched.planning.catalogue import CatalogueError, PriceError, read_price
from kubesched.planning.overlays import PriceChange
from kubesched.planning.pool_requirements import PoolRequirement, pool_requirement

DEFAULT_PODS = 110
_NODES = "nodes"
_ORDINARY = (CPU, MEMORY, PODS, "ephemeral-storage")
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

Amounts = Mapping[str, int | float | str]
AskedRequirement = tuple[str, str, Sequence[str] | None, int | None]
"""Key, operator, values, minValues."""


def checked_amounts(given: Amounts, source: str, where: str, field: str) -> dict[str, str]:
    """None of them negative."""
    found: dict[str, str] = {}
    for name, amount in given.items():
        try:
            read = parse(amount)
        except QuantityError as problem:
            raise CatalogueError(source, where, f"{field}.{name}: {problem}") from None
        if read.nanos < 0:
            raise CatalogueError(source, where, f"{field}.{name}: {amount} is negative")
        found[name] = str(amount)
    return found


def machine_amounts(given: Amounts, source: str, where: str, field: str) -> dict[str, str]:
    """What a machine has: cpu and memory at least."""
    found = checked_amounts(given, source, where, field)
    for name in (CPU, MEMORY):
        if name not in found:
            raise CatalogueError(source, where, f"{field}.{name}: missing")
    found.setdefault(PODS, str(DEFAULT_PODS))
    return found


def checked_limits(given: Amounts, source: str, where: str, field: str) -> tuple[int | None, dict[str, str]]:
    """How many nodes, and how much of each resource."""
    limits = checked_amounts(given, source, where, field)
    return (parse(limits.pop(_NODES)).value if _NODES in limits else None), limits


def checked_price(given: object, source: str, where: str, field: str) -> int:
    try:
        return read_price(given)
    except PriceError as problem:
        raise CatalogueError(source, where, f"{field}: {problem}") from None


def check_labels(labels: Mapping[str, str], source: str, where: str, field: str = "labels") -> None:
    for key, value in labels.items():
        for problem in (*label_key_errors(key), *label_value_errors(value)):
            raise CatalogueError(source, where, f"{field}.{key}: {problem}")


def checked_taints(taints: Iterable[Taint], source: str, where: str, field: str = "taints") -> tuple[Taint, ...]:
    found = tuple(taints)
    for i, one in enumerate(found):
        if one.effect not in _TAINT_EFFECTS:
            expected = ", ".join(_TAINT_EFFECTS)
            raise CatalogueError(
                source, where, f"{field}[{i}].effect: one of {expected} is expected, not {one.effect or 'nothing'}"
            )
        for problem in (*label_key_errors(one.key), *label_value_errors(one.value)):
            raise CatalogueError(source, where, f"{field}[{i}]: {problem}")
    return found


def checked_requirements(
    asked: Iterable[AskedRequirement], source: str, where: str, field: str = "requirements"
) -> tuple[PoolRequirement, ...]:
    found: list[PoolRequirement] = []
    for i, (key, operator, values, min_values) in enumerate(asked):
        try:
            found.append(pool_requirement(key, operator, values, min_values))
        except SelectorError as problem:
            text = str(problem)
            begins_with_field = text.startswith(("key:", "operator:", "values", "minValues:"))
            raise CatalogueError(source, where, f"{field}[{i}]{'.' if begins_with_field else ': '}{text}") from None
    return tuple(found)


_ADJUSTMENT = re.compile(r"[+-]\d*\.?\d+|\+\d*\.?\d+%|-\d{1,2}(\.\d+)?%|-100%")


def checked_change(price: object, adjustment: object, source: str, where: str, within: str = "") -> PriceChange | None:
    """Of a NodeOverlay: `price: "0.5"`, or `priceAdjustment`: `+0.1`, `-15%`."""
    if price is not None and adjustment is not None:
        raise CatalogueError(source, where, f"{within}price: cannot be set together with priceAdjustment")
    if price is not None:
        return PriceChange(str(price), checked_price(price, source, where, f"{within}price"))
    if adjustment is None:
        return None
    text = str(adjustment)
    if not _ADJUSTMENT.fullmatch(text):
        expected = "an amount such as +0.1, or a share such as -15%, is expected"
        raise CatalogueError(source, where, f"{within}priceAdjustment: {expected}, not {text!r}")
    if text.endswith("%"):
        return PriceChange(text, percent=Fraction(text.removesuffix("%")))
    amount = checked_price(text.lstrip("+-"), source, where, f"{within}priceAdjustment")
    return PriceChange(text, more=-amount if text.startswith("-") else amount)


def checked_extra_capacity(given: Amounts, source: str, where: str, field: str = "capacity") -> dict[str, str]:
    """Further resources that an overlay adds."""
    for name in _ORDINARY:
        if name in given:
            raise CatalogueError(source, where, f"{field}.{name}: an overlay adds further resources alone")
    return checked_amounts(given, source, where, field)
