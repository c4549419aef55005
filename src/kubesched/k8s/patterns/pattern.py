"""A compiled pattern, which google-re2 runs where it is installed, and our own automaton elsewhere.

Both get what our own parser made of the pattern: what is refused, and in which words, does not depend on what is
installed, nor do the answers. docs/decisions/0007-patterns-in-linear-time.md says why there are two.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from kubesched.k8s.patterns.automaton import MAX_STEPS, Automaton, PatternWorkError
from kubesched.k8s.patterns.syntax import Fragment, PatternPlace, parse_pattern

try:
    import re2
except ImportError:
    re2 = None

MAX_WORK = 100_000_000
"""The most of characters times instructions that a search may take: about a second of google-re2's worst."""

_MEMORY_SIZES = (1 << 20, 16 << 20)
"""What google-re2 may use for a pattern: little, unless its program alone needs more."""

_MAX_CACHED = 256
_MAX_CACHED_INSTRUCTIONS = 200_000


class Pattern:
    """Searches in texts; each search raises PatternWorkError if it would take too long."""

    def __init__(self, program: Fragment, *, is_native: bool = True) -> None:
        self._program = program
        self._automaton: Automaton | None = None
        self._native = _native(program.text) if is_native else None
        self._needs_characters = PatternPlace.NO_WORD_BOUNDARY in program.code

    @property
    def n_instructions(self) -> int:
        return len(self._program.code)

    def is_found_in(self, text: str) -> bool:
        self._check_work(text)
        data = self._data(text)
        if data is None:
            return self._own.is_found_in(text)
        return self._search(data, 0) is not None

    def find(self, text: str) -> str | None:
        """The first match."""
        found = self.find_all(text, 1)
        return found[0] if found else None

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """All matches that do not overlap, at most `limit`; an empty one right after another match does not count."""
        self._check_work(text)
        data = self._data(text)
        if data is None:
            return self._find_all_by_steps(text, limit)
        found: list[str] = []
        work, position, previous_end = 0, 0, -1
        while position <= len(data) and len(found) != limit:
            work += (len(data) - position + 1) * self.n_instructions
            if work > MAX_WORK:
                return self._find_all_by_steps(text, limit)
            span = self._search(data, position)
            if span is None:
                break
            start, end = span
            is_counted = end > position or start != previous_end
            position = end if end > position else _next_character(data, position)
            previous_end = end
            if is_counted:
                found.append(data[start:end].decode())
        return found

    def _find_all_by_steps(self, text: str, limit: int) -> list[str]:
        """The same with our own automaton, which can tell how far each search went."""
        found: list[str] = []
        steps, position, previous_end = 0, 0, -1
        while position <= len(text) and len(found) != limit:
            span, taken = self._own.find_span(text, position)
            steps += taken
            if steps > MAX_STEPS:
                raise PatternWorkError("pattern takes too much work on this text")
            if span is None:
                break
            start, end = span
            is_counted = end > position or start != previous_end
            position = end if end > position else position + 1
            previous_end = end
            if is_counted:
                found.append(text[start:end])
        return found

    def _check_work(self, text: str) -> None:
        if (len(text) + 1) * self.n_instructions > MAX_WORK:
            raise PatternWorkError("pattern takes too much work on this text")

    @property
    def _own(self) -> Automaton:
        if self._automaton is None:
            self._automaton = Automaton(self._program.code)
        return self._automaton

    def _data(self, text: str) -> bytes | None:
        """The text for google-re2; None if that would answer otherwise than by characters, or is not there."""
        if self._native is None or (self._needs_characters and not text.isascii()):
            return None
        try:
            return text.encode()
        except UnicodeEncodeError:
            return None

    def _search(self, data: bytes, position: int) -> tuple[int, int] | None:
        assert self._native is not None
        start, end = self._native(data, position)
        return None if start < 0 else (start, end)


_NativeSearch = Callable[[bytes, int], tuple[int, int]]


def _native(text: str) -> _NativeSearch | None:
    """A search by google-re2, which gives -1 if there is no match; None if it is not there or finds this too large."""
    if re2 is None:
        return None
    for size in _MEMORY_SIZES:
        options: Any = re2.Options()
        options.max_mem, options.never_capture, options.log_errors = size, True, False
        compiled: Any = re2._re2.RE2(text.encode(), options)
        if compiled.ok():
            match, anywhere = compiled.Match, re2._re2.RE2.Anchor.UNANCHORED
            return lambda data, position: match(anywhere, data, position, len(data))[0]
    return None


def _next_character(data: bytes, position: int) -> int:
    position += 1
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position


class _PatternCache:
    """The patterns used last, by their text, bounded in number and in instructions; and all that others still hold."""

    def __init__(self) -> None:
        self._patterns: OrderedDict[str, Pattern] = OrderedDict()
        self._held: WeakValueDictionary[str, Pattern] = WeakValueDictionary()
        self._n_instructions = 0
        self._lock = threading.Lock()

    def get(self, text: str) -> Pattern:
        with self._lock:
            known = self._patterns.get(text)
            if known is not None:
                self._patterns.move_to_end(text)
                return known
            held = self._held.get(text)
        made = held if held is not None else Pattern(parse_pattern(text))
        with self._lock:
            if text not in self._patterns:
                self._patterns[text] = self._held[text] = made
                self._n_instructions += made.n_instructions
            while len(self._patterns) > _MAX_CACHED or self._n_instructions > _MAX_CACHED_INSTRUCTIONS:
                _, oldest = self._patterns.popitem(last=False)
                self._n_instructions -= oldest.n_instructions
        return made


_CACHE = _PatternCache()


def compile_pattern(pattern: str) -> Pattern:
    """The pattern, ready to search with; raises PatternError in Go's words."""
    return _CACHE.get(pattern)
