"""Reads a pattern of RE2's syntax into a tree whose leaves are pieces of Python's syntax.

What RE2 has not is refused in Go's words: lookaround, backreferences, repetitions of repetitions, counts above a
thousand. The leaves take the differences in: `$` is the very end, `\\d` and `\\b` know ASCII only, flags hold from
their place on.

Next: `re2` runs the tree; `re2_classes` has the character classes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubesched.cel.library import re2_classes
from kubesched.cel.library.re2_classes import PatternError

_MAX_REPEAT = 1000
_REPEAT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_FLAG_GROUP = re.compile(r"\(\?([imsU]*)(?:-([imsU]*))?([:)])")
_NAMED_GROUP = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_WORD = "[0-9A-Za-z_]"
_ASSERTIONS = {
    "A": r"\A",
    "z": r"\Z",
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
}
_SIMPLE_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True, slots=True)
class PatternAtom:
    """One character, or a test of the place between two."""

    text: str
    is_assertion: bool


@dataclass(frozen=True, slots=True)
class PatternSequence:
    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class PatternChoice:
    """Alternatives, the first that leads to a match being preferred."""

    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, slots=True)
class PatternRepeat:
    """`part` between `least` and `most` times, None for any number; a lazy one prefers fewer."""

    part: PatternNode
    least: int
    most: int | None
    is_lazy: bool


PatternNode = PatternAtom | PatternSequence | PatternChoice | PatternRepeat


def _is_within(node: PatternNode, budget: int) -> bool:
    """Whether the counts of repetitions within each other multiply to no more than `budget`."""
    match node:
        case PatternRepeat():
            count = node.least if node.most is None else node.most
            return count <= budget and _is_within(node.part, budget // max(count, 1))
        case PatternSequence() | PatternChoice():
            return all(_is_within(part, budget) for part in node.parts)
        case _:
            return True


def parse_pattern(pattern: str) -> PatternNode:
    """The tree of a pattern; raises PatternError."""
    return _PatternParser(pattern).whole()


class _PatternParser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._position = 0
        self._flags: frozenset[str] = frozenset()
        self._names: set[str] = set()

    def whole(self) -> PatternNode:
        tree = self._alternatives()
        if self._position < len(self._pattern):
            raise PatternError("unexpected )", self._pattern)
        return tree

    def _alternatives(self) -> PatternNode:
        """Up to the end of the group, or of the pattern."""
        alternatives: list[PatternNode] = []
        parts: list[PatternNode] = []
        while self._position < len(self._pattern) and self._pattern[self._position] != ")":
            char = self._pattern[self._position]
            if char == "|":
                self._position += 1
                alternatives.append(PatternSequence(tuple(parts)))
                parts = []
            elif char in _SIMPLE_COUNTS or (char == "{" and _REPEAT.match(self._pattern, self._position)):
                self._repetition(parts)
            elif char == "(":
                parts.extend(self._group())
            else:
                parts.extend(self._atoms(char))
        last = PatternSequence(tuple(parts))
        return PatternChoice((*alternatives, last)) if alternatives else last

    # -- groups ------------------------------------------------------------------------------------------------------

    def _group(self) -> list[PatternNode]:
        """A group; a bare setting of flags is none, and holds until the group around it ends."""
        outer = self._flags
        rest = self._pattern[self._position :]
        if not rest.startswith("(?"):
            self._position += 1
        elif (named := _NAMED_GROUP.match(rest)) is not None:
            self._open_named(named)
        elif (flagged := _FLAG_GROUP.match(rest)) is not None and flagged.group() != "(?)":
            self._position += flagged.end()
            self._flags = (outer | set(flagged.group(1))) - set(flagged.group(2) or "")
            if flagged.group(3) == ")":
                return []
        else:
            raise self._bad_group(rest)
        inner = self._alternatives()
        if self._position >= len(self._pattern):
            raise PatternError("missing closing )", self._pattern)
        self._position += 1
        self._flags = outer
        return [inner]

    def _open_named(self, named: re.Match[str]) -> None:
        name = named.group(1)
        if name in self._names:
            raise PatternError("duplicate capture group name", name)
        self._names.add(name)
        self._position += named.end()

    def _bad_group(self, rest: str) -> PatternError:
        if rest.startswith(("(?P", "(?<")) and not rest.startswith(("(?<=", "(?<!")):
            end = rest.find(">")
            return PatternError("invalid named capture", rest if end < 0 else rest[: end + 1])
        letters = re.match(r"\(\?[imsU-]*", rest)
        length = letters.end() if letters is not None else 2
        if length == len(rest):
            return PatternError("missing closing )", self._pattern)
        return PatternError("invalid or unsupported Perl syntax", rest[: length + 1])

    # -- repetitions -------------------------------------------------------------------------------------------------

    def _repetition(self, parts: list[PatternNode]) -> None:
        start = self._position
        least, most = self._count()
        if not parts:
            raise PatternError("missing argument to repetition operator", self._pattern[start : self._position])
        is_lazy = self._skip_question_mark()
        if self._is_at_count():
            self._count()
            self._skip_question_mark()
            raise PatternError("invalid nested repetition operator", self._pattern[start : self._position])
        repeated = PatternRepeat(parts[-1], least, most, is_lazy != ("U" in self._flags))
        if not _is_within(repeated, _MAX_REPEAT):
            raise PatternError("invalid repeat count", self._pattern[start : self._position])
        parts[-1] = repeated

    def _is_at_count(self) -> bool:
        following = self._pattern[self._position : self._position + 1]
        return following in _SIMPLE_COUNTS or _REPEAT.match(self._pattern, self._position) is not None

    def _skip_question_mark(self) -> bool:
        is_there = self._pattern.startswith("?", self._position)
        self._position += is_there
        return is_there

    def _count(self) -> tuple[int, int | None]:
        counted = _REPEAT.match(self._pattern, self._position)
        if counted is None:
            self._position += 1
            return _SIMPLE_COUNTS[self._pattern[self._position - 1]]
        self._position = counted.end()
        least = int(counted.group(1))
        most = int(counted.group(3)) if counted.group(3) else (None if counted.group(2) else least)
        if max(least, most or 0) > _MAX_REPEAT or (most is not None and most < least):
            raise PatternError("invalid repeat count", counted.group())
        return least, most

    # -- atoms -------------------------------------------------------------------------------------------------------

    def _atoms(self, char: str) -> list[PatternNode]:
        if char == "\\":
            return self._escape()
        start = self._position
        self._position += 1
        if char == "[":
            text, self._position = re2_classes.bracketed(self._pattern, start)
            return [self._character(text)]
        if char == "^":
            return [PatternAtom("(?m:^)" if "m" in self._flags else r"\A", True)]
        if char == "$":
            return [PatternAtom("(?m:$)" if "m" in self._flags else r"\Z", True)]
        if char == ".":
            return [PatternAtom("(?s:.)" if "s" in self._flags else r"[^\n]", False)]
        return [self._character(re.escape(char))]

    def _escape(self) -> list[PatternNode]:
        start = self._position
        letter = self._pattern[start + 1 : start + 2]
        self._position += 2
        if letter in _ASSERTIONS:
            return [PatternAtom(_ASSERTIONS[letter], True)]
        if letter == "Q":
            end = self._pattern.find(r"\E", start)
            quoted = self._pattern[start + 2 : end if end >= 0 else None]
            self._position = end + 2 if end >= 0 else len(self._pattern)
            return [self._character(re.escape(char)) for char in quoted]
        if letter == "C":
            return [PatternAtom("(?s:.)", False)]
        text, self._position = re2_classes.escaped(self._pattern, start)
        return [self._character(f"[{text}]")]

    def _character(self, text: str) -> PatternAtom:
        return PatternAtom(f"(?i:{text})" if "i" in self._flags else text, False)
