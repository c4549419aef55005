"""Patterns of RE2's syntax, ready to search with.

Simple patterns run on Python's re, which is fast. Those on which it could backtrack for longer than anybody waits run
on a machine of our own that cannot: RE2 promises time proportional to the text, and selectors come from users.

Next: `re2_syntax` reads patterns, `re2_machine` is the machine, `regexes` has the functions.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kubesched.cel.library.re2_classes import PatternError
from kubesched.cel.library.re2_machine import MachineTooLargeError, PatternMachine
from kubesched.cel.library.re2_syntax import (
    PatternAtom,
    PatternChoice,
    PatternNode,
    PatternRepeat,
    PatternSequence,
    parse_pattern,
)

_MAX_LOOPS = 2
_MAX_BRANCHES = 6


class Re2Pattern:
    """A compiled pattern."""

    __slots__ = ("_machine", "_pattern")

    def __init__(self, tree: PatternNode) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._machine: PatternMachine | None = None
        if _is_harmless(tree):
            self._pattern = re.compile(_written(tree))
        else:
            self._machine = PatternMachine(tree)

    def is_found_in(self, text: str) -> bool:
        if self._pattern is not None:
            return self._pattern.search(text) is not None
        return self.find_span(text) is not None

    def find_span(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the first match at or after `start` begins and ends."""
        if self._machine is not None:
            return self._machine.find_span(text, start)
        assert self._pattern is not None
        match = self._pattern.search(text, start)
        return match.span() if match is not None else None


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Re2Pattern:
    """The pattern, ready to search with; raises PatternError with Go's words."""
    try:
        return Re2Pattern(parse_pattern(pattern))
    except MachineTooLargeError:
        raise PatternError("expression too large") from None
    except RecursionError:
        raise PatternError("expression nests too deeply") from None


def _is_harmless(tree: PatternNode) -> bool:
    """Whether backtracking stays cheap: few loops and branches, and no loop around anything that could go two ways."""
    loops, branches, is_flat = _shape(tree)
    return is_flat and loops <= _MAX_LOOPS and branches <= _MAX_BRANCHES


def _shape(node: PatternNode) -> tuple[int, int, bool]:
    """How many loops and branches there are, and whether loops repeat only what goes one way."""
    match node:
        case PatternAtom():
            return 0, 0, True
        case PatternRepeat(most=1):
            loops, branches, is_flat = _shape(node.part)
            return loops, branches + 1, is_flat
        case PatternRepeat():
            loops, branches, is_flat = _shape(node.part)
            is_exact = node.least == node.most
            return loops + (not is_exact), branches, is_flat and loops == 0 and branches == 0
        case PatternSequence() | PatternChoice():
            shapes = [_shape(part) for part in node.parts]
            branches = sum(shape[1] for shape in shapes) + isinstance(node, PatternChoice)
            return sum(shape[0] for shape in shapes), branches, all(shape[2] for shape in shapes)


def _written(node: PatternNode) -> str:
    """The tree in Python's syntax."""
    match node:
        case PatternAtom():
            return node.text
        case PatternSequence():
            return "".join(map(_written, node.parts))
        case PatternChoice():
            return f"(?:{'|'.join(map(_written, node.parts))})"
        case PatternRepeat():
            count = f"{{{node.least},{'' if node.most is None else node.most}}}"
            return f"(?:{_written(node.part)}){count}{'?' if node.is_lazy else ''}"
