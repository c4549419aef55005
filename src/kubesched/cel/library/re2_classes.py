"""Character classes of RE2 patterns: brackets, escapes, [:alpha:] and \\p{Greek}, as contents of a Python class.

Unicode general categories (\\pL, \\p{Lu}) are spelled out from Python's own tables; scripts other than the few that
Python can tell by name are refused.

Next: `re2` puts the classes into a pattern.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]


def _of(text: str) -> Ranges:
    """Ranges from pairs of characters: `azAZ` is a-z and A-Z."""
    return tuple((ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True))


_POSIX = {
    "alnum": _of("09AZaz"),
    "alpha": _of("AZaz"),
    "ascii": _of("\x00\x7f"),
    "blank": _of("\t\t  "),
    "cntrl": _of("\x00\x1f\x7f\x7f"),
    "digit": _of("09"),
    "graph": _of("!~"),
    "lower": _of("az"),
    "print": _of(" ~"),
    "punct": _of("!/:@[`{~"),
    "space": _of("\t\r  "),
    "upper": _of("AZ"),
    "word": _of("09AZaz__"),
    "xdigit": _of("09AFaf"),
}
_PERL = {"d": _of("09"), "s": _of("\t\n\f\r  "), "w": _of("09AZaz__")}
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SCRIPTS = frozenset({"Latin", "Greek", "Cyrillic", "Hebrew", "Arabic", "Hiragana", "Katakana", "Hangul", "Thai"})
_ASSIGNED = (range(0x32400), range(0xE0000, 0xE0200), range(0xF0000, sys.maxunicode + 1))
"""Where Unicode has assigned anything at all, so that the rest need not be looked at."""

_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([A-Za-z_]+)\}|([A-Za-z]))")
_POSIX_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")


class PatternError(ValueError):
    """A pattern that RE2 does not take."""

    def __init__(self, reason: str, fragment: str = "") -> None:
        super().__init__(f"error parsing regexp: {reason}" + (f": `{fragment}`" if fragment else ""))


def bracketed(pattern: str, start: int) -> tuple[str, int]:
    """The Python class for the one whose `[` is at `start`, and where it ends."""
    position = start + 1
    is_negated = pattern.startswith("^", position)
    position += is_negated
    contents: list[str] = []
    is_first = True
    while is_first or not pattern.startswith("]", position):
        if position >= len(pattern):
            raise PatternError("missing closing ]", pattern[start:])
        part, position = _part(pattern, position, start)
        contents.append(part)
        is_first = False
    return f"[{'^' if is_negated else ''}{''.join(contents)}]", position + 1


def _part(pattern: str, position: int, start: int) -> tuple[str, int]:
    """One class, character or range inside brackets."""
    posix = _POSIX_CLASS.match(pattern, position)
    if posix is not None:
        if posix.group(2) not in _POSIX:
            raise PatternError("invalid character class range", posix.group())
        ranges = _POSIX[posix.group(2)]
        return _written(_complement(ranges) if posix.group(1) else ranges), posix.end()
    if pattern[position] == "\\" and _is_class_escape(pattern, position):
        return escaped(pattern, position)
    low, after = _character(pattern, position, start)
    if not (pattern.startswith("-", after) and pattern[after + 1 : after + 2] not in ("", "]")):
        return re.escape(low), after
    high, end = _character(pattern, after + 1, start)
    if ord(high) < ord(low):
        raise PatternError("invalid character class range", pattern[position:end])
    return f"{re.escape(low)}-{re.escape(high)}", end


def _character(pattern: str, position: int, start: int) -> tuple[str, int]:
    if position >= len(pattern):
        raise PatternError("missing closing ]", pattern[start:])
    if pattern[position] == "\\":
        return _escaped_character(pattern, position)
    return pattern[position], position + 1


def _is_class_escape(pattern: str, position: int) -> bool:
    return pattern[position + 1 : position + 2] in tuple("dDsSwWpP")


def escaped(pattern: str, position: int) -> tuple[str, int]:
    """What the escape at `position` contributes to a class, and where it ends."""
    letter = pattern[position + 1 : position + 2]
    if letter in ("p", "P"):
        return _unicode_class(pattern, position)
    if letter.lower() in _PERL and letter:
        ranges = _PERL[letter.lower()]
        return _written(ranges if letter.islower() else _complement(ranges)), position + 2
    char, end = _escaped_character(pattern, position)
    return re.escape(char), end


def _escaped_character(pattern: str, position: int) -> tuple[str, int]:
    letter = pattern[position + 1 : position + 2]
    if letter == "":
        raise PatternError("trailing backslash at end of expression")
    if letter in _CONTROL:
        return _CONTROL[letter], position + 2
    hexadecimal = re.compile(r"\\x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})").match(pattern, position)
    if hexadecimal is not None and int(hexadecimal.group(1) or hexadecimal.group(2), 16) <= sys.maxunicode:
        return chr(int(hexadecimal.group(1) or hexadecimal.group(2), 16)), hexadecimal.end()
    octal = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})").match(pattern, position)
    if octal is not None:
        return chr(int(octal.group(1), 8)), octal.end()
    if letter.isascii() and not letter.isalnum() and letter != "_":
        return letter, position + 2
    raise PatternError("invalid escape sequence", pattern[position : position + 2])


def _unicode_class(pattern: str, position: int) -> tuple[str, int]:
    match = _PROPERTY.match(pattern, position)
    name = (match.group(3) or match.group(4)) if match is not None else ""
    ranges = _category(name) if name else ()
    if match is None or not ranges:
        end = match.end() if match is not None else position + 2
        raise PatternError("invalid character class range", pattern[position:end])
    is_negated = (match.group(1) == "P") != bool(match.group(2))
    return _written(_complement(ranges) if is_negated else ranges), match.end()


@lru_cache(maxsize=64)
def _category(name: str) -> Ranges:
    """The characters of a general category, or of a script that character names begin with."""
    if name == "Any":
        return ((0, sys.maxunicode),)
    prefix = name.upper() + " "
    codes = (code for block in _ASSIGNED for code in block)
    if name in _SCRIPTS:
        return _joined(code for code in codes if unicodedata.name(chr(code), "").startswith(prefix))
    return _joined(code for code in codes if unicodedata.category(chr(code)).startswith(name))


def _joined(codes: Iterable[int]) -> Ranges:
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return tuple(ranges)


def _complement(ranges: Ranges) -> Ranges:
    """Everything else; the ranges are in order and apart."""
    outside: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            outside.append((start, low - 1))
        start = high + 1
    if start <= sys.maxunicode:
        outside.append((start, sys.maxunicode))
    return tuple(outside)


def _written(ranges: Ranges) -> str:
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
