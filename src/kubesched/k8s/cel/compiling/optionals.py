"""Closures for or(), orValue(), optMap() and optFlatMap(), which evaluate their second part only if they need it.

Next: `library.optionals` has the other functions on optionals.
"""

from __future__ import annotations

from kubesched.k8s.cel.compiling.steps import Evaluate, Frame
from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.values.naming import type_name
from kubesched.k8s.cel.values.scalars import NONE, CelOptional


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
