"""What compiling a node gives: a closure, and what is known of its value beforehand.

A frame is a list: the device, the meter if costs are counted, then one slot per local variable of the expression.

Next: `compiler` combines steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.k8s.cel.checking.kinds import DYN, CelType

DEVICE_SLOT = 0
METER_SLOT = 1
FIRST_LOCAL_SLOT = 2

Frame = list[Any]
Evaluate = Callable[[Frame], Any]


class _Unset:
    """Marks a local variable whose value nobody has asked for yet."""


UNSET = _Unset()


@dataclass(frozen=True, slots=True)
class CelStep:
    """A compiled expression.

    `is_literal` says that cel-go, too, knows the value before it sees a device: it then reports faults of conversions
    as faults of the expression. `is_constant` says that we do.
    """

    run: Evaluate
    type: CelType = DYN
    is_constant: bool = False
    is_literal: bool = False
    value: Any = None


def constant(value: object, static_type: CelType, *, is_literal: bool = False) -> CelStep:
    """A step that always gives the same value."""

    def run(_: Frame) -> object:
        return value

    return CelStep(run, static_type, is_constant=True, is_literal=is_literal, value=value)
