"""Closures for &&, || and ?:, which decide what is evaluated.

&& and || do not care for the order of their terms: a term that decides the result absorbs the errors of the others, and
otherwise the first error is the result.

Next: `comprehensions`, whose quantifiers work the same way.
"""

from __future__ import annotations

from kubesched.k8s.cel.compiling.steps import Evaluate, Frame
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload


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
