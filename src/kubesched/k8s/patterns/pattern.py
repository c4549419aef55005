"""A compiled pattern, which google-re2 runs where it is installed, and our own automaton elsewhere.

Both get what our own parser made of the pattern: what is refused, and in which words, does not depend on what is
installed, nor do the answers. docs/decisions/0007-patterns-in-linear-time.md says why there are two.

The automaton advances all alternatives together, and counts what that takes. `is_found_in` remembers what followed from
which set of instructions and which character, so that most texts cost one look-up per character. `find_span` also keeps
where each alternative began; of the ways to match, the preferred one is RE2's: leftmost first, then by the order of
alternatives and the greed of repetitions.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.patterns.syntax import Consume, Fragment, Goto, Instruction, PatternPlace, parse_pattern

MAX_STEPS = 3_000_000
"""How many instructions one search may look at: about a second's worth."""

_MAX_REMEMBERED = 50_000
"""How many instructions all remembered sets may hold together, before they are forgotten."""

_CHARACTERS_PER_STEP = 8
_OUTSIDE = ""
"""Before the first character, and behind the last."""


class PatternWorkError(KubeschedError, ValueError):
    """A search that takes more work than is allowed."""


class _State:
    """A set of instructions to go on from, behind a character of some sort."""

    __slots__ = ("addresses", "before", "following")

    def __init__(self, before: str, addresses: frozenset[int]) -> None:
        self.before = before
        self.addresses = addresses
        self.following: dict[str, _State | None] = {}
        """By the next character; None where the text up to here matches."""


class Automaton:
    """A program ready to search with."""

    def __init__(self, code: tuple[Instruction, ...]) -> None:
        self._code = code
        self._end = len(code)
        lows: dict[int, list[int]] = {}
        for one in code:
            if isinstance(one, Consume) and id(one) not in lows:
                lows[id(one)] = [low for low, _ in one.ranges]
        self._lows = [lows.get(id(one), []) for one in code]
        self._knows_words = any(one in (PatternPlace.WORD_BOUNDARY, PatternPlace.NO_WORD_BOUNDARY) for one in code)
        self._states: dict[tuple[str, frozenset[int]], _State] = {}
        self._remembered = 0

    def is_found_in(self, text: str) -> bool:
        """Raises PatternWorkError."""
        state: _State | None = self._state(_OUTSIDE, frozenset())
        steps = len(text) // _CHARACTERS_PER_STEP
        for char in (*text, _OUTSIDE):
            assert state is not None
            known = state.following.get(char, state)
            if known is state and char not in state.following:
                known, taken = self._follow(state, char)
                steps += taken
                if steps > MAX_STEPS:
                    raise PatternWorkError("pattern takes too much work on this text")
            if known is None:
                return True
            state = known
        return False

    def find_span(self, text: str, start: int = 0) -> tuple[tuple[int, int] | None, int]:
        """Where the first match at or after `start` begins and ends, and how many steps that took."""
        best: tuple[int, int] | None = None
        threads: list[tuple[int, int]] = []
        steps = 0
        for position in range(start, len(text) + 1):
            before = text[position - 1] if position else _OUTSIDE
            char = text[position] if position < len(text) else _OUTSIDE
            if best is None:
                threads.append((0, position))
            waiting, ended, taken = self._close(threads, before, char)
            steps += taken + len(waiting) + 1
            if steps > MAX_STEPS:
                raise PatternWorkError("pattern takes too much work on this text")
            if ended is not None:
                best = (ended, position)
            threads = [(address + 1, began) for address, began in waiting if self._takes(address, char)]
            if not threads and best is not None:
                break
        return best, steps

    # -- one step ----------------------------------------------------------------------------------------------------

    def _follow(self, state: _State, char: str) -> tuple[_State | None, int]:
        """What is left behind the next character, which is remembered; a search may begin at any place."""
        waiting, ended, taken = self._close([(address, 0) for address in (*state.addresses, 0)], state.before, char)
        if ended is not None:
            state.following[char] = None
            return None, taken
        left = frozenset(address + 1 for address, _ in waiting if self._takes(address, char))
        known = self._state(self._sort(char), left)
        state.following[char] = known
        return known, taken + len(waiting)

    def _state(self, before: str, addresses: frozenset[int]) -> _State:
        self._remembered += 1
        if self._remembered > _MAX_REMEMBERED:
            self._forget()
        known = self._states.get((before, addresses))
        if known is None:
            known = self._states[before, addresses] = _State(before, addresses)
            self._remembered += len(addresses)
        return known

    def _forget(self) -> None:
        for state in self._states.values():
            state.following.clear()
        self._states.clear()
        self._remembered = 0

    def _sort(self, char: str) -> str:
        """A character that the places of this program cannot tell from `char`."""
        if char == "\n" or char == _OUTSIDE:
            return char
        return "w" if self._knows_words and _is_word(char) else "-"

    def _close(
        self, threads: list[tuple[int, int]], before: str, char: str
    ) -> tuple[list[tuple[int, int]], int | None, int]:
        """Follow what takes no character: who waits for one, where the match that ends here began, and the steps.

        A match ends all threads that are preferred less.
        """
        code, end = self._code, self._end
        waiting: list[tuple[int, int]] = []
        seen: set[int] = set()
        for thread in threads:
            stack = [thread]
            while stack:
                address, began = stack.pop()
                if address in seen:
                    continue
                seen.add(address)
                if address == end:
                    return waiting, began, len(seen)
                instruction = code[address]
                if type(instruction) is Consume:
                    waiting.append((address, began))
                elif type(instruction) is Goto:
                    stack.extend([(address + step, began) for step in reversed(instruction.steps)])
                elif _is_at(instruction, before, char):
                    stack.append((address + 1, began))
        return waiting, None, len(seen)

    def _takes(self, address: int, char: str) -> bool:
        if char == _OUTSIDE:
            return False
        instruction = self._code[address]
        assert type(instruction) is Consume
        code = ord(char)
        index = bisect_right(self._lows[address], code) - 1
        return index >= 0 and code <= instruction.ranges[index][1]


def _is_at(place: object, before: str, char: str) -> bool:
    match place:
        case PatternPlace.TEXT_START:
            return before == _OUTSIDE
        case PatternPlace.TEXT_END:
            return char == _OUTSIDE
        case PatternPlace.LINE_START:
            return before in (_OUTSIDE, "\n")
        case PatternPlace.LINE_END:
            return char in (_OUTSIDE, "\n")
        case PatternPlace.WORD_BOUNDARY:
            return _is_word(before) != _is_word(char)
        case _:
            return _is_word(before) == _is_word(char)


def _is_word(char: str) -> bool:
    return char == "_" or (char.isascii() and char.isalnum())


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
