"""What a pool asks of its machines, in Karpenter's terms: a label, an operator, values, and of how many values there
must be a choice.

Operators are those of node selectors, and `Gte` and `Lte`. A label that a machine does not have meets `NotIn` and
`DoesNotExist`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.k8s.model.selectors import Requirement, SelectorError, requirement

_WITH_EQUAL = {"Gte": ("Gt", -1), "Lte": ("Lt", 1)}
"""The operator and how far its number is away."""
_NUMERIC = ("Gt", "Lt", *_WITH_EQUAL)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", *_NUMERIC)
_MOST_MIN_VALUES = 50


@dataclass(frozen=True, slots=True)
class PoolRequirement:
    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None
    """Of how many values of the label there must be machines."""

    def matches(self, value: str | None) -> bool:
        """Whether a label with this value (None: no such label) meets the requirement."""
        operator, values = self.operator, self.values
        if operator in _WITH_EQUAL:
            operator, step = _WITH_EQUAL[operator]
            values = (str(int(values[0]) + step),)
        return Requirement(self.key, operator, values).matches(value)

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"key": self.key, "operator": self.operator}
        if self.values:
            record["values"] = list(self.values)
        if self.min_values is not None:
            record["minValues"] = self.min_values
        return record


def pool_requirement(
    key: str, operator: str, values: Sequence[str] | None, min_values: int | None = None
) -> PoolRequirement:
    """A requirement that is known to make sense. Raises SelectorError, which begins with the field."""
    if operator not in _OPERATORS:
        raise SelectorError(f"operator: one of {', '.join(_OPERATORS)} is expected, not {operator}")
    if operator in _NUMERIC and (len(values or ()) != 1 or not _is_whole(values[0] if values else "")):
        raise SelectorError(f"values: {operator} needs exactly one whole number that is not negative")
    requirement(key, _WITH_EQUAL[operator][0] if operator in _WITH_EQUAL else operator, values or None)
    if min_values is not None:
        if not 1 <= min_values <= _MOST_MIN_VALUES:
            raise SelectorError(f"minValues: {min_values} is not between 1 and {_MOST_MIN_VALUES}")
        if operator == "In" and len(values or ()) < min_values:
            raise SelectorError(f"minValues: {min_values} is more than there are values")
    return PoolRequirement(key, operator, tuple(values or ()), min_values)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def lacking(
    requirements: Iterable[PoolRequirement], machines: Sequence[Mapping[str, str]]
) -> tuple[PoolRequirement, int] | None:
    """The first requirement of whose label the machines, given by their labels, have too few values, and how many
    they have."""
    for one in requirements:
        if one.min_values is not None:
            n_values = len({labels[one.key] for labels in machines if one.key in labels})
            if n_values < one.min_values:
                return one, n_values
    return None
