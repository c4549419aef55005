"""Character classes of patterns: brackets, escapes, [:alpha:] and \\p{Greek}, as ranges of code points.

Unicode general categories (\\pL, \\p{Lu}) come from Python's own tables; scripts other than the few that Python can
tell by name are refused. Regardless of case means Unicode's simple folding, as in Go.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cache, lru_cache

Ranges = tuple[tuple[int, int], ...]
"""In order, and with gaps between them."""


def _of(text: str) -> Ranges:
    """Ranges from pairs of characters: `AZaz` is A-Z and a-z."""
    return tuple((ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True))


ANY_CHARACTER: Ranges = ((0, sys.maxunicode),)
NOT_NEWLINE: Ranges = ((0, 9), (11, sys.maxunicode))

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
    "word": _of("09AZ__az"),
    "xdigit": _of("09AFaf"),
}
_PERL = {"d": _of("09"), "s": _of("\t\n\f\r  "), "w": _of("09AZ__az")}
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SCRIPTS = frozenset({"Latin", "Greek", "Cyrillic", "Hebrew", "Arabic", "Hiragana", "Katakana", "Hangul", "Thai"})
_ASSIGNED = (range(0x32400), range(0xE0000, 0xE0200), range(0xF0000, sys.maxunicode + 1))
"""Where Unicode has assigned anything at all, so that the rest need not be looked at."""

_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|([^{]))", re.DOTALL)
_HEXADECIMAL = re.compile(r"\\x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_IGNORED = str.maketrans("", "", " -_")
"""What does not count in the name of a Unicode class."""
_OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")


class PatternError(ValueError):
    """A pattern that is refused, in Go's words."""

    def __init__(self, reason: str, fragment: str) -> None:
        super().__init__(f"error parsing regexp: {reason}: `{fragment}`")


# -- reading ---------------------------------------------------------------------------------------------------------


def bracketed(pattern: str, start: int, folds: bool) -> tuple[Ranges, int]:
    """The class whose `[` is at `start`, and where it ends; `folds` is regardless of case."""
    position = start + 1
    is_negated = pattern.startswith("^", position)
    position += is_negated
    found: list[tuple[int, int]] = []
    is_first = True
    while is_first or not pattern.startswith("]", position):
        if position >= len(pattern):
            raise PatternError("missing closing ]", pattern[start:])
        part, position = _part(pattern, position, start, folds)
        found.extend(part)
        is_first = False
    ranges = _merged(found)
    if folds:
        ranges = folded(ranges)
    return (_complement(ranges) if is_negated else ranges), position + 1


def escaped(pattern: str, position: int, folds: bool) -> tuple[Ranges, int]:
    """What the escape at `position` stands for, and where it ends."""
    letter = pattern[position + 1 : position + 2]
    if letter in ("p", "P"):
        return _unicode_class(pattern, position, folds)
    if letter and letter.lower() in _PERL:
        ranges = folded(_PERL[letter.lower()]) if folds else _PERL[letter.lower()]
        return (ranges if letter.islower() else _complement(ranges)), position + 2
    char, end = _escaped_character(pattern, position)
    return character(char, folds), end


def character(char: str, folds: bool) -> Ranges:
    ranges = ((ord(char), ord(char)),)
    return folded(ranges) if folds else ranges


def _part(pattern: str, position: int, start: int, folds: bool) -> tuple[Ranges, int]:
    """One class, character or range inside brackets, not folded yet unless it is negated."""
    if pattern.startswith("[:", position):
        end = pattern.find(":]", position + 2)
        if end >= 0:
            return _posix_class(pattern[position : end + 2], folds), end + 2
    if pattern[position] == "\\" and pattern[position + 1 : position + 2] in tuple("dDsSwWpP"):
        return escaped(pattern, position, folds)
    low, after = _character(pattern, position, start)
    high, end = low, after
    if pattern.startswith("-", after) and pattern[after + 1 : after + 2] not in ("", "]"):
        high, end = _character(pattern, after + 1, start)
        if ord(high) < ord(low):
            raise PatternError("invalid character class range", pattern[position:end])
    return ((ord(low), ord(high)),), end


def _posix_class(written: str, folds: bool) -> Ranges:
    name = written[2:-2]
    ranges = _POSIX.get(name.removeprefix("^"))
    if ranges is None:
        raise PatternError("invalid character class range", written)
    if folds:
        ranges = folded(ranges)
    return _complement(ranges) if name.startswith("^") else ranges


def _character(pattern: str, position: int, start: int) -> tuple[str, int]:
    if position >= len(pattern):
        raise PatternError("missing closing ]", pattern[start:])
    if pattern[position] == "\\":
        return _escaped_character(pattern, position)
    return pattern[position], position + 1


def _escaped_character(pattern: str, position: int) -> tuple[str, int]:
    letter = pattern[position + 1 : position + 2]
    if letter == "":
        raise PatternError("trailing backslash at end of expression", "")
    if letter in _CONTROL:
        return _CONTROL[letter], position + 2
    octal = _OCTAL.match(pattern, position)
    if octal is not None:
        return chr(int(octal.group(1), 8)), octal.end()
    if letter == "x":
        return _hexadecimal(pattern, position)
    if letter.isascii() and not letter.isalnum():
        return letter, position + 2
    raise PatternError("invalid escape sequence", pattern[position : position + 2])


def _hexadecimal(pattern: str, position: int) -> tuple[str, int]:
    found = _HEXADECIMAL.match(pattern, position)
    if found is not None:
        digits = (found.group(1) or found.group(2)).lstrip("0") or "0"
        if len(digits) <= 6 and int(digits, 16) <= sys.maxunicode:
            return chr(int(digits, 16)), found.end()
    raise PatternError("invalid escape sequence", _bad_hexadecimal(pattern, position))


def _bad_hexadecimal(pattern: str, position: int) -> str:
    """As far as Go reads before it sees that this is no character."""
    end = position + 2
    if not pattern.startswith("{", end):
        return pattern[position : end + 2]
    value = 0
    for char in pattern[end + 1 :]:
        end += 1
        if char not in _HEX_DIGITS:
            break
        value = value * 16 + int(char, 16)
        if value > sys.maxunicode:
            break
    return pattern[position : end + 1]


def _unicode_class(pattern: str, position: int, folds: bool) -> tuple[Ranges, int]:
    match = _PROPERTY.match(pattern, position)
    if match is None:
        raise PatternError("invalid character class range", pattern[position:])
    ranges = _category((match.group(3) or match.group(4) or "").translate(_IGNORED).capitalize())
    if not ranges:
        raise PatternError("invalid character class range", match.group())
    if folds:
        ranges = folded(ranges)
    is_negated = (match.group(1) == "P") != bool(match.group(2))
    return (_complement(ranges) if is_negated else ranges), match.end()


# -- tables ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _category(name: str) -> Ranges:
    """The characters of a general category, or of a script that character names begin with; none if unknown."""
    if name == "Any":
        return ANY_CHARACTER
    codes = (code for block in _ASSIGNED for code in block)
    if name in _SCRIPTS:
        prefix = name.upper() + " "
        return _joined(code for code in codes if unicodedata.name(chr(code), "").startswith(prefix))
    if name == "Lc":
        return _joined(code for code in codes if unicodedata.category(chr(code)) in ("Lu", "Ll", "Lt"))
    if not 1 <= len(name) <= 2:
        return ()
    return _joined(code for code in codes if unicodedata.category(chr(code)).startswith(name))


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """Which characters are the same regardless of case, by each of them; only those that have others."""
    by_form: dict[str, list[int]] = {}
    for code in range(0x1E944):
        char = chr(code)
        form = next((one for one in (char.casefold(), char.lower()) if len(one) == 1), char)
        by_form.setdefault(form, []).append(code)
    return {code: tuple(codes) for codes in by_form.values() if len(codes) > 1 for code in codes}


@cache
def _with_orbit() -> list[int]:
    return sorted(_orbits())


@lru_cache(maxsize=256)
def folded(ranges: Ranges) -> Ranges:
    """The same characters and all that equal them regardless of case."""
    codes, orbits = _with_orbit(), _orbits()
    found = list(ranges)
    for low, high in ranges:
        for code in codes[bisect_left(codes, low) : bisect_right(codes, high)]:
            found.extend((other, other) for other in orbits[code])
    return _merged(found)


def _joined(codes: Iterable[int]) -> Ranges:
    ranges: list[tuple[int, int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return tuple(ranges)


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    """Everything else."""
    outside: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            outside.append((start, low - 1))
        start = high + 1
    if start <= sys.maxunicode:
        outside.append((start, sys.maxunicode))
    return tuple(outside)
