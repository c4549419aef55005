"""Closures that decide what is evaluated: &&, || and ?:, or() and its kin on optionals, and the macros that loop.

&& and || do not care for the order of their terms: a term that decides the result absorbs the errors of the others, and
otherwise the first error is the result. The quantifiers all() and exists() work the same way. Loops that count or
filter go on after an error of the predicate, and the last such error is the result; that is what folding with CEL's
conditional operator gives. or(), orValue(), optMap() and optFlatMap() evaluate their second part only if they need it.

Next: `compiler` compiles their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kubesched.k8s.cel import operations
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.library.lists import insert_entry
from kubesched.k8s.cel.steps import METER_SLOT, Evaluate, Frame
from kubesched.k8s.cel.values import NONE, CelOptional, go_type_name, type_name


def junction(terms: list[Evaluate], deciding: bool) -> Evaluate:
    """All of the terms (deciding is False) or any of them (deciding is True)."""
    if len(terms) == 2:
        return _junction_of_two(terms[0], terms[1], deciding)

    def run(frame: Frame) -> bool:
        error: CelEvaluationError | None = None
        for term in terms:
            try:
                value: object = term(frame)
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


def _junction_of_two(first: Evaluate, second: Evaluate, deciding: bool) -> Evaluate:
    other = not deciding

    def run(frame: Frame) -> bool:
        try:
            value: object = first(frame)
        except CelEvaluationError as error:
            return _decided_by(second, frame, deciding, error)
        if value is deciding:
            return deciding
        if value is not other:
            return _decided_by(second, frame, deciding, no_such_overload())
        value = second(frame)
        if value is deciding or value is other:
            return bool(value)
        raise no_such_overload()

    return run


def _decided_by(term: Evaluate, frame: Frame, deciding: bool, error: CelEvaluationError) -> bool:
    """The deciding value if the last term has it, the error of the term before otherwise."""
    try:
        value: object = term(frame)
    except CelEvaluationError:
        raise error from None
    if value is deciding:
        return deciding
    raise error


def conditional(condition: Evaluate, when_true: Evaluate, when_false: Evaluate) -> Evaluate:
    def run(frame: Frame) -> object:
        value = condition(frame)
        if value is True:
            return when_true(frame)
        if value is False:
            return when_false(frame)
        raise no_such_overload()

    return run


def first_present(left: Evaluate, right: Evaluate) -> Evaluate:
    """left.or(right)."""

    def run(frame: Frame) -> object:
        value = left(frame)
        return value if type(value) is not CelOptional or value.has_value else right(frame)

    return run


def present_or(left: Evaluate, right: Evaluate) -> Evaluate:
    """left.orValue(right)."""

    def run(frame: Frame) -> object:
        value = left(frame)
        if type(value) is not CelOptional:
            return value
        return value.value if value.has_value else right(frame)

    return run


def optional_map(subject: Evaluate, slot: int, body: Evaluate, is_flat: bool) -> Evaluate:
    """The body for the value of an optional, which is in `slot` meanwhile; none for none."""

    def run(frame: Frame) -> object:
        optional = subject(frame)
        if type(optional) is not CelOptional:
            raise CelEvaluationError(f"no such overload: hasValue({type_name(optional)})")
        if not optional.has_value:
            return NONE
        frame[slot] = optional.value
        result = body(frame)
        return result if is_flat else CelOptional(result)

    return run


@dataclass(frozen=True, slots=True)
class Iteration:
    """What is iterated, the slots of the variables, and what a round costs beyond its parts, if costs are counted.

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
        return operations.keys(value)
    raise CelEvaluationError(f"got '{go_type_name(value)}', expected iterable type")


def _pairs(value: object) -> Iterable[tuple[object, object]]:
    if type(value) is list:
        return enumerate(value)
    if isinstance(value, dict):
        return operations.entries(value)
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
            for key, value in operations.entries(transform(frame)):
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
