"""Numbers that manifests give as such or as a share of the whole: `2`, `25%`."""

from __future__ import annotations

from math import ceil, floor

_MOST_DIGITS = 9
_MOST_SHOWN = 100


class ShareError(ValueError):
    """Neither a number nor a percentage."""


def share_of(value: int | str, whole: int, *, rounding_up: bool) -> int:
    """`25%` of the whole, rounded; a number is itself."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    if text == value or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise ShareError(f'invalid value "{value[:_MOST_SHOWN]}": a number or a percentage is expected')
    exact = whole * int(text) / 100
    return ceil(exact) if rounding_up else floor(exact)
