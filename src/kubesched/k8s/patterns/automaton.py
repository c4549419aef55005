"""Runs the program of a pattern, all alternatives advancing together, and counts what that takes.

`is_found_in` remembers what followed from which set of instructions and which character, so that most texts cost one
look-up per character. `find_span` also keeps where each alternative began; of the ways to match, the preferred one is
RE2's: leftmost first, then by the order of alternatives and the greed of repetitions.
"""

from __future__ import annotations

from bisect import bisect_right

from kubesched.k8s.patterns.syntax import Consume, Goto, Instruction, PatternPlace

MAX_STEPS = 3_000_000
"""How many instructions one search may look at: about a second's worth."""

_MAX_REMEMBERED = 50_000
"""How many instructions all remembered sets may hold together, before they are forgotten."""

_CHARACTERS_PER_STEP = 8
_OUTSIDE = ""
"""Before the first character, and behind the last."""


class PatternWorkError(ValueError):
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
