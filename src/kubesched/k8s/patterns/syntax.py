r"""Reads a pattern of RE2's syntax into a program for an automaton; its character classes become ranges of code points.

What RE2 has not is refused in Go's words: lookaround, backreferences, repetitions of repetitions, counts above a
thousand. Groups are kept on a stack of our own, so that no depth of nesting reaches Python's.

Unicode general categories (\pL, \p{Lu}) come from Python's own tables; scripts other than the few that Python can
tell by name are refused. Regardless of case means Unicode's simple folding, as in Go.

Next: `pattern` runs the program.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, lru_cache

from kubesched.k8s.errors import KubeschedError

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


class PatternError(KubeschedError, ValueError):
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


_MAX_REPEAT = 1000
_MAX_DEPTH = 1000
_MAX_LENGTH = 50_000
MAX_INSTRUCTIONS = 20_000
"""How large a program may be; Go would take three million instructions, which no text of ours gets through in time."""

_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_FLAG_GROUP = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED_GROUP = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_SIMPLE_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class PatternPlace(Enum):
    """What a place between two characters can be asked to be; the value is how google-re2 writes it."""

    TEXT_START = r"\A"
    TEXT_END = r"\z"
    LINE_START = "(?m:^)"
    LINE_END = "(?m:$)"
    WORD_BOUNDARY = r"\b"
    NO_WORD_BOUNDARY = r"\B"


@dataclass(frozen=True, slots=True)
class Consume:
    """Takes one character out of the ranges."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Goto:
    """Goes on at one of several instructions, the first being preferred; counted from this one."""

    steps: tuple[int, ...]


Instruction = Consume | PatternPlace | Goto


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a program, which goes on behind its last instruction, and the same in google-re2's syntax."""

    code: tuple[Instruction, ...] = ()
    text: str = ""
    may_be_empty: bool = True
    """Whether it can match without taking a character."""
    repeats: int = 1
    """The largest product of the counts of repetitions within each other."""


def parse_pattern(pattern: str) -> Fragment:
    """The program of a pattern; raises PatternError."""
    if len(pattern) > _MAX_LENGTH:
        raise PatternError("expression too large", pattern)
    return _PatternParser(pattern).whole()


@dataclass(slots=True)
class _Group:
    """What was read of a group so far, and the flags to go back to when it ends."""

    outer_flags: frozenset[str]
    alternatives: list[Fragment] = field(default_factory=list)
    parts: list[Fragment] = field(default_factory=list)


class _PatternParser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._position = 0
        self._flags: frozenset[str] = frozenset()
        self._groups = [_Group(self._flags)]
        self._repeat_start: int | None = None
        """Where the repetition right before this place began."""

    def whole(self) -> Fragment:
        pattern = self._pattern
        while self._position < len(pattern):
            char = pattern[self._position]
            group = self._groups[-1]
            repeat_start, self._repeat_start = self._repeat_start, None
            if char in _SIMPLE_COUNTS or (char == "{" and _REPEAT.match(pattern, self._position)):
                self._repetition(group.parts, repeat_start)
            elif char == "|":
                self._position += 1
                group.alternatives.append(self._joined(group.parts))
                group.parts = []
            elif char == "(":
                self._open_group()
            elif char == ")":
                self._close_group()
            else:
                group.parts.extend(self._atoms(char))
        if len(self._groups) > 1:
            raise PatternError("missing closing )", pattern)
        return self._finished(self._groups[0])

    # -- groups ------------------------------------------------------------------------------------------------------

    def _open_group(self) -> None:
        """A bare setting of flags opens none, and holds until the group around it ends."""
        outer = self._flags
        if not self._pattern.startswith("(?", self._position):
            self._position += 1
        elif (named := _NAMED_GROUP.match(self._pattern, self._position)) is not None:
            self._position = named.end()
        elif (flagged := _FLAG_GROUP.match(self._pattern, self._position)) is not None:
            self._position = flagged.end()
            self._flags = (outer | set(flagged.group(1))) - set(flagged.group(2) or "")
            if flagged.group(3) == ")":
                return
        else:
            raise self._bad_group(self._pattern[self._position :])
        if len(self._groups) > _MAX_DEPTH:
            raise PatternError("expression nests too deeply", self._pattern)
        self._groups.append(_Group(outer))

    def _close_group(self) -> None:
        if len(self._groups) == 1:
            raise PatternError("unexpected )", self._pattern)
        self._position += 1
        group = self._groups.pop()
        self._flags = group.outer_flags
        self._groups[-1].parts.append(self._finished(group))

    def _finished(self, group: _Group) -> Fragment:
        last = self._joined(group.parts)
        return self._choice([*group.alternatives, last]) if group.alternatives else last

    def _bad_group(self, rest: str) -> PatternError:
        if (rest.startswith("(?P<") and len(rest) > 4) or (rest.startswith("(?<") and len(rest) > 3):
            end = rest.find(">")
            return PatternError("invalid named capture", rest if end < 0 else rest[: end + 1])
        read = re.compile(r"\(\?[imsU]*(?:-[imsU]*)?").match(rest)
        length = read.end() if read is not None else 2
        return PatternError("invalid or unsupported Perl syntax", rest[: length + 1])

    # -- repetitions -------------------------------------------------------------------------------------------------

    def _repetition(self, parts: list[Fragment], previous: int | None) -> None:
        start = self._position
        least, most = self._count()
        is_lazy = self._pattern.startswith("?", self._position)
        self._position += is_lazy
        if previous is not None:
            raise PatternError("invalid nested repetition operator", self._pattern[previous : self._position])
        if not parts:
            raise PatternError("missing argument to repetition operator", self._pattern[start : self._position])
        part = parts[-1]
        count = least if most is None else most
        if count >= 2 and count * part.repeats > _MAX_REPEAT:
            raise PatternError("invalid repeat count", self._pattern[start : self._position])
        self._check_size(max(count, 1) * (len(part.code) + 1))
        parts[-1] = _repeated(part, least, most, is_lazy != ("U" in self._flags))
        self._repeat_start = start

    def _count(self) -> tuple[int, int | None]:
        counted = _REPEAT.match(self._pattern, self._position)
        if counted is None:
            self._position += 1
            return _SIMPLE_COUNTS[self._pattern[self._position - 1]]
        self._position = counted.end()
        first, comma, second = counted.groups()
        if max(len(first), len(second or "")) > 4:
            raise PatternError("invalid repeat count", counted.group())
        least = int(first)
        most = int(second) if second else (None if comma else least)
        if max(least, most or 0) > _MAX_REPEAT or (most is not None and most < least):
            raise PatternError("invalid repeat count", counted.group())
        return least, most

    # -- atoms -------------------------------------------------------------------------------------------------------

    def _atoms(self, char: str) -> list[Fragment]:
        if char == "\\":
            return self._escape()
        start = self._position
        self._position += 1
        if char == "[":
            ranges, self._position = bracketed(self._pattern, start, "i" in self._flags)
            return [_consuming(ranges)]
        if char == "^":
            return [_testing(PatternPlace.LINE_START if "m" in self._flags else PatternPlace.TEXT_START)]
        if char == "$":
            return [_testing(PatternPlace.LINE_END if "m" in self._flags else PatternPlace.TEXT_END)]
        if char == ".":
            return [_consuming(ANY_CHARACTER if "s" in self._flags else NOT_NEWLINE)]
        return [self._literal(char)]

    def _escape(self) -> list[Fragment]:
        start = self._position
        letter = self._pattern[start + 1 : start + 2]
        self._position += 2
        if letter in _PLACES:
            return [_testing(_PLACES[letter])]
        if letter == "Q":
            end = self._pattern.find(r"\E", start + 2)
            quoted = self._pattern[start + 2 : end if end >= 0 else None]
            self._position = end + 2 if end >= 0 else len(self._pattern)
            return [self._literal(char) for char in quoted]
        ranges, self._position = escaped(self._pattern, start, "i" in self._flags)
        return [_consuming(ranges)]

    def _literal(self, char: str) -> Fragment:
        return _consuming(character(char, "i" in self._flags))

    # -- putting together --------------------------------------------------------------------------------------------

    def _check_size(self, n_instructions: int) -> None:
        if n_instructions > MAX_INSTRUCTIONS:
            raise PatternError("expression too large", self._pattern)

    def _joined(self, parts: Sequence[Fragment]) -> Fragment:
        if len(parts) == 1:
            return parts[0]
        self._check_size(sum(len(part.code) for part in parts))
        return Fragment(
            tuple(instruction for part in parts for instruction in part.code),
            "".join(part.text for part in parts),
            all(part.may_be_empty for part in parts),
            max((part.repeats for part in parts), default=1),
        )

    def _choice(self, parts: Sequence[Fragment]) -> Fragment:
        self._check_size(sum(len(part.code) + 2 for part in parts))
        code: tuple[Instruction, ...] = parts[-1].code
        exits = [len(code)]
        for part in reversed(parts[:-1]):
            exits.append(exits[-1] + len(part.code) + 2)
        pieces: list[Instruction] = []
        for part, behind in zip(parts[:-1], exits[-2::-1], strict=True):
            pieces += (Goto((1, len(part.code) + 2)), *part.code, Goto((behind + 1,)))
        return Fragment(
            (*pieces, *code),
            f"(?:{'|'.join(part.text for part in parts)})",
            any(part.may_be_empty for part in parts),
            max(part.repeats for part in parts),
        )


_PLACES = {
    "A": PatternPlace.TEXT_START,
    "z": PatternPlace.TEXT_END,
    "b": PatternPlace.WORD_BOUNDARY,
    "B": PatternPlace.NO_WORD_BOUNDARY,
}


def _testing(place: PatternPlace) -> Fragment:
    return Fragment((place,), place.value)


def _consuming(ranges: Ranges) -> Fragment:
    inside = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges)
    return Fragment((Consume(ranges),), f"[{inside}]" if inside else r"[^\x{0}-\x{10ffff}]", may_be_empty=False)


def _repeated(part: Fragment, least: int, most: int | None, is_lazy: bool) -> Fragment:
    """`part` between `least` and `most` times, None for any number; a lazy repetition prefers fewer."""
    count = least if most is None else most
    if most is None:
        code = part.code * max(least, 1) + (_either(is_lazy, -len(part.code), 1),)
        if least == 0:
            code = _any_number(part, code, is_lazy)
    else:
        more = most - least
        each = len(part.code) + 1
        optional = ((_either(is_lazy, 1, each * (more - n)), *part.code) for n in range(more))
        code = part.code * least + tuple(instruction for one in optional for instruction in one)
    bounds = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    text = f"(?:{part.text}){bounds}{'?' if is_lazy else ''}"
    repeats = 1 if most == 0 else max(count, 1) * part.repeats
    return Fragment(code, text, least == 0 or part.may_be_empty, repeats)


def _any_number(part: Fragment, once_or_more: tuple[Instruction, ...], is_lazy: bool) -> tuple[Instruction, ...]:
    """What can be empty is an optional one-or-more, lest an empty round hide those that take characters."""
    if part.may_be_empty:
        return (_either(is_lazy, 1, len(once_or_more) + 1), *once_or_more)
    size = len(part.code)
    return (_either(is_lazy, 1, size + 2), *part.code, Goto((-size - 1,)))


def _either(is_lazy: bool, into: int, past: int) -> Goto:
    return Goto((past, into) if is_lazy else (into, past))
