"""Numbers of pods of an indexed job, as its status and its policies write them: `1,3-5,7`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, groupby

_MOST = 1_000_000
"""More numbers than that are not read: no job has so many, and a text of a few letters can name billions."""


def parse_indexes(text: str) -> set[int]:
    """What cannot be read is passed over: an API server has refused it."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or len(first) + len(last) > 24:
            continue
        start, end = int(first), int(last or first)
        found.update(range(start, min(end + 1, start + _MOST - len(found))))
    return found


def print_indexes(indexes: Iterable[int]) -> str:
    in_order = sorted(indexes)
    parts = []
    for _, run in groupby(zip(in_order, count(), strict=False), key=lambda pair: pair[0] - pair[1]):
        numbers = [number for number, _ in run]
        if len(numbers) == 1:
            parts.append(str(numbers[0]))
        else:
            parts.append(f"{numbers[0]}{',' if len(numbers) == 2 else '-'}{numbers[-1]}")
    return ",".join(parts)
