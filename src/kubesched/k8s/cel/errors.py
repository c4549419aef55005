"""What can go wrong with a CEL selector, told apart by when: compiling it, or evaluating it for a device.

Messages are the ones that cel-go and Kubernetes give, because users see them in pod conditions and events.

Next: `syntax.source` puts places in the expression into the compile errors.
"""

from __future__ import annotations


class CelError(Exception):
    """Anything wrong with a CEL selector."""


class CelCompileError(CelError):
    """The expression is not a valid selector, whatever the device."""


class CelEvaluationError(CelError):
    """The expression has no value for this device. `&&`, `||` and the quantifiers may absorb it."""


class CelAbort(CelError):  # noqa: N818 - a signal within an evaluation; who evaluates gets a CelEvaluationError
    """The whole evaluation is given up, as too expensive or because cel-go itself fails there. Nothing absorbs it."""


MAX_COST = 1_000_000
"""What one evaluation may cost, in CEL's cost units."""

COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"

NO_SUCH_OVERLOAD = "no such overload"


def no_such_overload() -> CelEvaluationError:
    """An operation met a value of a type that it does not take."""
    return CelEvaluationError(NO_SUCH_OVERLOAD)
