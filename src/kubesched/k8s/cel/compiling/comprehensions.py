"""Closures for the macros that loop: all, exists, exists_one, map, filter and the transformations.

Quantifiers absorb errors as && and || do. Those that count or filter go on after an error of the predicate, and the
last such error is the result; that is what folding with CEL's conditional operator gives.

Next: `compiler` compiles their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kubesched.k8s.cel.compiling.steps import METER_SLOT, Evaluate, Frame
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.library.lists import insert_entry
from kubesched.k8s.cel.values import containers
from kubesched.k8s.cel.values.naming import go_type_name


@dataclass(frozen=True, slots=True)
class Iteration:
    """What is iterated, the slots of the variables, and what a round costs beyond its parts, 0 if nobody counts.

    Quantifiers pay for every round, the others for those whose predicate holds.
    """

    iterated: Evaluate
    slots: tuple[int, ...]
    cost: int

    def rounds(self, frame: Frame) -> Iterator[None]:
        """One round per element, with the variables set."""
        value = self.iterated(frame)
        if len(self.slots) == 1:
            (slot,) = self.slots
            for frame[slot] in _elements(value):
                yield None
        else:
            first, second = self.slots
            for frame[first], frame[second] in _pairs(value):
                yield None

    def charge(self, frame: Frame) -> None:
        if self.cost:
            frame[METER_SLOT].charge(self.cost)


def _elements(value: object) -> Iterable[object]:
    if type(value) is list:
        return value
    if isinstance(value, dict):
        return containers.keys(value)
    raise CelEvaluationError(f"got '{go_type_name(value)}', expected iterable type")


def _pairs(value: object) -> Iterable[tuple[object, object]]:
    if type(value) is list:
        return enumerate(value)
    if isinstance(value, dict):
        return containers.entries(value)
    raise CelEvaluationError(f"unsupported comprehension range type: {go_type_name(value)}")


def quantifier(loop: Iteration, predicate: Evaluate, deciding: bool) -> Evaluate:
    """all (deciding is False) or exists (deciding is True)."""

    def run(frame: Frame) -> bool:
        error: CelEvaluationError | None = None
        for _ in loop.rounds(frame):
            loop.charge(frame)
            try:
                value: object = predicate(frame)
            except CelEvaluationError as raised:
                error = error or raised
                continue
            if value is deciding:
                return deciding
            if value is not (not deciding):
                error = error or no_such_overload()
        if error is not None:
            raise error
        return not deciding

    return run


def exists_one(loop: Iteration, predicate: Evaluate) -> Evaluate:
    def run(frame: Frame) -> bool:
        count = 0

        def found() -> None:
            nonlocal count
            count += 1

        _select(loop, predicate, frame, found)
        return count == 1

    return run


def collect_list(loop: Iteration, predicate: Evaluate | None, transform: Evaluate) -> Evaluate:
    def run(frame: Frame) -> list[object]:
        collected: list[object] = []
        _select(loop, predicate, frame, lambda: collected.append(transform(frame)))
        return collected

    return run


def collect_map(loop: Iteration, predicate: Evaluate | None, transform: Evaluate) -> Evaluate:
    """transformMap: the keys, or indices, stay."""
    key_slot = loop.slots[0]

    def run(frame: Frame) -> dict[object, object]:
        collected: dict[object, object] = {}

        def insert() -> None:
            nonlocal collected
            collected = insert_entry(collected, frame[key_slot], transform(frame))

        _select(loop, predicate, frame, insert)
        return collected

    return run


def collect_entries(loop: Iteration, predicate: Evaluate | None, transform: Evaluate) -> Evaluate:
    """transformMapEntry: each round gives a map whose entries are added."""

    def run(frame: Frame) -> dict[object, object]:
        collected: dict[object, object] = {}

        def insert() -> None:
            nonlocal collected
            for key, value in containers.entries(transform(frame)):
                collected = insert_entry(collected, key, value)

        _select(loop, predicate, frame, insert)
        return collected

    return run


def _select(loop: Iteration, predicate: Evaluate | None, frame: Frame, action: Callable[[], None]) -> None:
    """Do `action` in each round whose predicate holds; raise the error that folding would end with."""
    if predicate is None:
        for _ in loop.rounds(frame):
            loop.charge(frame)
            action()
        return
    error: CelEvaluationError | None = None
    for _ in loop.rounds(frame):
        try:
            value = predicate(frame)
        except CelEvaluationError as raised:
            error = raised
            continue
        if value is not True and value is not False:
            error = no_such_overload()
        elif value and error is None:
            loop.charge(frame)
            try:
                action()
            except CelEvaluationError as raised:
                error = raised
    if error is not None:
        raise error
