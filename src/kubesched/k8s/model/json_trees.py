"""JSON that the fast decoder refuses, as plain values all the same: for naming what is wrong with it.

Bytes that are no UTF-8 become replacement characters, what is nested too deeply is cut off, numbers that nothing can
hold become texts. Only what has the form of JSON at all is read.

Next: `partial_reading`, which takes objects from such values.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

DEEPEST = 100
"""Nothing in Kubernetes' own kinds nests a third as deeply; the fast decoder gives up at some hundreds."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoders raise: wrong types, no JSON, no UTF-8, nested too deeply."""

_LONGEST_NUMBER = 400
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def tree_of(data: bytes | msgspec.Raw) -> Any:
    """The value of a JSON text, as far as it can be had. Raises `msgspec.DecodeError` for what is no JSON."""
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        pass
    text = bytes(data).decode("utf-8", "replace")
    try:
        return json.loads(_cut(text), parse_int=_whole, parse_float=_fraction, parse_constant=str)
    except (ValueError, RecursionError) as problem:
        raise msgspec.DecodeError(f"JSON is malformed: {problem}") from None


def _cut(text: str) -> str:
    """Without what is nested more deeply than `DEEPEST`; null stands there."""
    kept: list[str] = []
    depth = begin = 0
    for token in _TOKENS.finditer(text):
        sign = token[0]
        if sign in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(text[begin : token.start()])
        elif sign in "]}":
            depth -= 1
            if depth == DEEPEST:
                kept.append("null")
                begin = token.end()
    return "".join((*kept, text[begin:])) if kept else text


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else digits[:_LONGEST_NUMBER]


def _fraction(digits: str) -> float | str:
    value = float(digits) if len(digits) <= _LONGEST_NUMBER else float("inf")
    return value if abs(value) != float("inf") else digits[:_LONGEST_NUMBER]
