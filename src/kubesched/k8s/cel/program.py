"""Compiles selectors and runs them.

`compile` parses, checks and compiles an expression, and remembers the result by its text. A Program answers for one
device at a time and keeps nothing between devices.

Next: `syntax.parser`, `checking.checker` and `compiling.compiler` are the three stages, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kubesched.k8s.cel.checking.checker import Checker, may_be_result
from kubesched.k8s.cel.checking.validators import validate
from kubesched.k8s.cel.compiling.compiler import Compiler
from kubesched.k8s.cel.compiling.metering import CostMeter, needs_metering
from kubesched.k8s.cel.compiling.steps import FIRST_LOCAL_SLOT, METER_SLOT, UNSET, Evaluate, Frame
from kubesched.k8s.cel.device import DeviceView
from kubesched.k8s.cel.errors import CelAbort, CelCompileError, CelEvaluationError, SourceText
from kubesched.k8s.cel.library import environment
from kubesched.k8s.cel.syntax.nodes import Expr
from kubesched.k8s.cel.syntax.parser import parse
from kubesched.k8s.cel.values.scalars import type_name

_CACHE_SIZE = 4096
_CHARACTERS_PER_UNIT = 5
TOO_DEEP = "expression recursion limit exceeded: 250"
_NOT_A_BOOL = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
}


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled selector."""

    expression: str
    list_type_attributes: bool
    is_metered: bool
    _run: Evaluate
    _locals: tuple[object, ...]

    def evaluate(self, device: DeviceView, meter: CostMeter | None = None) -> bool:
        """Whether the device is selected; raises CelEvaluationError if the expression has no value for it.

        What it cost is in `meter` afterwards; a program that is not metered costs by its length.
        """
        if device.list_attribute and not self.list_type_attributes:
            raise CelEvaluationError(f"attribute {device.list_attribute}: unsupported attribute value")
        frame: Frame = [device, None, *self._locals]
        if self.is_metered:
            frame[METER_SLOT] = meter if meter is not None else CostMeter()
        elif meter is not None:
            meter.spent += 1 + len(self.expression) // _CHARACTERS_PER_UNIT
        try:
            result = self._run(frame)
        except CelAbort as abort:
            raise CelEvaluationError(str(abort)) from None
        except RecursionError:
            raise CelEvaluationError(TOO_DEEP) from None
        if result is True or result is False:
            return result
        raise _not_a_bool(result)


def _not_a_bool(result: object) -> CelEvaluationError:
    name = type_name(result)
    reason = _NOT_A_BOOL.get(name, f"type conversion error from {name} to 'bool'")
    return CelEvaluationError(f"CEL result of type {name} could not be converted to bool: {reason}")


@lru_cache(maxsize=_CACHE_SIZE)
def compile(expression: str, *, list_type_attributes: bool = False) -> Program:
    """The program of a selector; raises CelCompileError. `list_type_attributes` is the gate DRAListTypeAttributes."""
    source = SourceText(expression)
    try:
        tree = check(source, list_type_attributes)
        is_metered = needs_metering(tree, expression)
        compiler = Compiler(is_metered)
        step = compiler.compile(tree)
    except RecursionError:
        raise CelCompileError(f"compilation failed: ERROR: <input>:-1:0: {TOO_DEEP}") from None
    unset = (UNSET,) * (compiler.n_slots - FIRST_LOCAL_SLOT)
    return Program(expression, list_type_attributes, is_metered, step.run, unset)


def check(source: SourceText, list_type_attributes: bool) -> Expr:
    """The typed tree of a selector; raises CelCompileError if it is none."""
    tree = parse(source)
    fields = environment.DeviceFields(list_type_attributes)
    checker = Checker(source, environment.VARIABLES, environment.TYPE_NAMES, fields, environment.FUNCTIONS)
    output = checker.check(tree)
    source.raise_issues()
    validate(tree, source)
    source.raise_issues()
    if not may_be_result(output, list_type_attributes):
        raise CelCompileError(f"must evaluate to bool or the unknown type, not {output}")
    return tree
