"""Runs patterns in time proportional to the text, whatever the pattern: all alternatives advance together.

This is for patterns on which Python's re could backtrack for ages. Of the ways to match, the preferred one is the same:
leftmost first, then by the order of alternatives and the greed of repetitions.

Next: `re2` decides which patterns run here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubesched.cel.library.re2_syntax import PatternAtom, PatternChoice, PatternNode, PatternRepeat, PatternSequence

_MAX_INSTRUCTIONS = 20_000


class MachineTooLargeError(ValueError):
    """The counts in a pattern multiply to more than is reasonable."""


@dataclass(slots=True)
class _Instruction:
    """Consume a character, test a place, or go on in one of two places, the first being preferred.

    An instruction without any of these is the end of a match.
    """

    character: re.Pattern[str] | None = None
    assertion: re.Pattern[str] | None = None
    targets: tuple[int, ...] = ()


class PatternMachine:
    """A compiled pattern with the one method of Python's patterns that is needed."""

    def __init__(self, tree: PatternNode) -> None:
        self._program: list[_Instruction] = []
        self._add(tree)
        self._emit(_Instruction())

    def find_span(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the first match at or after `start` begins and ends."""
        best: tuple[int, int] | None = None
        threads: list[tuple[int, int]] = []
        for position in range(start, len(text) + 1):
            if best is None:
                threads.append((0, position))
            threads, ended = self._close(threads, text, position)
            best = ended or best
            if not threads and best is not None:
                return best
            threads = self._advance(threads, text, position)
        return best

    def _close(
        self, threads: list[tuple[int, int]], text: str, position: int
    ) -> tuple[list[tuple[int, int]], tuple[int, int] | None]:
        """Follow what consumes nothing; a match ends all threads that are preferred less."""
        waiting: list[tuple[int, int]] = []
        seen: set[int] = set()
        for thread in threads:
            stack = [thread]
            while stack:
                address, began = stack.pop()
                if address in seen:
                    continue
                seen.add(address)
                instruction = self._program[address]
                if instruction.character is not None:
                    waiting.append((address, began))
                elif instruction.assertion is not None:
                    if instruction.assertion.match(text, position):
                        stack.append((address + 1, began))
                elif instruction.targets:
                    stack.extend((target, began) for target in reversed(instruction.targets))
                else:
                    return waiting, (began, position)
        return waiting, None

    def _advance(self, threads: list[tuple[int, int]], text: str, position: int) -> list[tuple[int, int]]:
        if position >= len(text):
            return []
        advanced: list[tuple[int, int]] = []
        for address, began in threads:
            character = self._program[address].character
            if character is not None and character.match(text, position):
                advanced.append((address + 1, began))
        return advanced

    # -- compiling ---------------------------------------------------------------------------------------------------

    def _emit(self, instruction: _Instruction) -> int:
        if len(self._program) >= _MAX_INSTRUCTIONS:
            raise MachineTooLargeError
        self._program.append(instruction)
        return len(self._program) - 1

    def _add(self, node: PatternNode) -> None:
        match node:
            case PatternAtom():
                compiled = re.compile(node.text)
                is_assertion = node.is_assertion
                self._emit(_Instruction(assertion=compiled) if is_assertion else _Instruction(character=compiled))
            case PatternSequence():
                for part in node.parts:
                    self._add(part)
            case PatternChoice():
                self._add_choice(node)
            case PatternRepeat():
                self._add_repeat(node)

    def _add_choice(self, node: PatternChoice) -> None:
        exits: list[int] = []
        for part in node.parts[:-1]:
            split = self._emit(_Instruction())
            self._add(part)
            exits.append(self._emit(_Instruction()))
            self._program[split].targets = (split + 1, len(self._program))
        self._add(node.parts[-1])
        for address in exits:
            self._program[address].targets = (len(self._program),)

    def _add_repeat(self, node: PatternRepeat) -> None:
        for _ in range(node.least):
            self._add(node.part)
        if node.most is None:
            split = self._emit(_Instruction())
            self._add(node.part)
            self._emit(_Instruction(targets=(split,)))
            self._branch(split, node.is_lazy)
            return
        splits: list[int] = []
        for _ in range(node.most - node.least):
            splits.append(self._emit(_Instruction()))
            self._add(node.part)
        for split in splits:
            self._branch(split, node.is_lazy)

    def _branch(self, split: int, is_lazy: bool) -> None:
        """Go on into the part right after, or to what comes next."""
        targets = (split + 1, len(self._program))
        self._program[split].targets = targets[::-1] if is_lazy else targets
