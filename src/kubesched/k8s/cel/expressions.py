"""Expressions over variables of any type: validation rules of custom resources, admission policies.

`compile_expression` checks and compiles a text against the variables it may use; the result is evaluated with a value
for each of them, as decoded JSON, and its cost is always counted. Device selectors have a faster way of their own,
in `program`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.k8s.cel.checking.checker import Checker, FieldTypes
from kubesched.k8s.cel.checking.declarations import CelFunction
from kubesched.k8s.cel.checking.kinds import CelType
from kubesched.k8s.cel.checking.validators import validate
from kubesched.k8s.cel.compiling.compiler import Compiler
from kubesched.k8s.cel.compiling.metering import CostMeter
from kubesched.k8s.cel.compiling.steps import FIRST_LOCAL_SLOT, METER_SLOT, UNSET, Evaluate, Frame
from kubesched.k8s.cel.errors import CelAbort, CelCompileError, CelEvaluationError, SourceText
from kubesched.k8s.cel.library import environment
from kubesched.k8s.cel.program import TOO_DEEP
from kubesched.k8s.cel.syntax.parser import parse


class StructFields:
    """Struct types by name, each with its fields; an expression can build those that are `constructible`."""

    def __init__(
        self, types: Mapping[str, Mapping[str, CelType]] | None = None, constructible: frozenset[str] = frozenset()
    ) -> None:
        self._types = types or {}
        self._constructible = constructible

    def is_constructible(self, type_name: str) -> bool:
        return type_name in self._constructible

    def field_type(self, type_name: str, field: str) -> CelType | None:
        return self._types[type_name].get(field)


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; `type` is what the checker knows of its value."""

    text: str
    type: CelType
    variables: tuple[str, ...]
    _run: Evaluate
    _locals: tuple[object, ...]

    def evaluate(self, values: Mapping[str, object], meter: CostMeter | None = None) -> object:
        """The value; raises CelEvaluationError. A meter that is handed in goes on counting where it stands."""
        frame: Frame = [None, None, *(values[name] for name in self.variables), *self._locals]
        frame[METER_SLOT] = CostMeter() if meter is None else meter
        try:
            return self._run(frame)
        except CelAbort as abort:
            raise CelEvaluationError(str(abort)) from None
        except RecursionError:
            raise CelEvaluationError(TOO_DEEP) from None


def compile_expression(
    text: str,
    variables: Mapping[str, CelType],
    fields: FieldTypes | None = None,
    functions: Mapping[str, CelFunction] | None = None,
) -> Expression:
    """Checks and compiles a text; raises CelCompileError. `functions` are added to the usual ones."""
    source = SourceText(text)
    known = environment.FUNCTIONS if functions is None else {**environment.FUNCTIONS, **functions}
    try:
        tree = parse(source)
        checker = Checker(source, variables, environment.TYPE_NAMES, fields or StructFields(), known)
        output = checker.check(tree)
        source.raise_issues()
        validate(tree, source)
        source.raise_issues()
        compiler = Compiler(is_metered=True, variables=tuple(variables))
        step = compiler.compile(tree)
    except RecursionError:
        raise CelCompileError(f"compilation failed: ERROR: <input>:-1:0: {TOO_DEEP}") from None
    unset = (UNSET,) * (compiler.n_slots - FIRST_LOCAL_SLOT - len(variables))
    return Expression(text, output, tuple(variables), step.run, unset)
