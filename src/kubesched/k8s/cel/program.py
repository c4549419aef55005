"""Compiles expressions and runs them: selectors on a device, and other expressions on variables of any type.

`compile` parses, checks and compiles a selector, and remembers the result by its text. A Program answers for one device
at a time and keeps nothing between devices. A DeviceView is what it sees: the driver, attributes and capacities by
domain, and whether the device may be shared. Names without a domain belong to the driver's domain. Build one view per
device and evaluate as many programs on it as there are selectors.

`compile_expression` is for validation rules of custom resources and admission policies: it compiles a text against the
variables it may use. The result is evaluated with a value for each of them, as decoded JSON, and its cost is always
counted.

Next: `parser`, `checker` and `compiler` are the three steps, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kubesched.k8s.cel import library
from kubesched.k8s.cel.checker import Checker, FieldTypes, may_be_result, validate
from kubesched.k8s.cel.compiler import Compiler
from kubesched.k8s.cel.errors import CelAbort, CelCompileError, CelEvaluationError, SourceText
from kubesched.k8s.cel.kinds import CelFunction, CelType
from kubesched.k8s.cel.library import quantities
from kubesched.k8s.cel.library.quantities import Semver, SemverError
from kubesched.k8s.cel.nodes import Expr
from kubesched.k8s.cel.operations import DomainMap
from kubesched.k8s.cel.parser import parse
from kubesched.k8s.cel.steps import FIRST_LOCAL_SLOT, METER_SLOT, UNSET, CostMeter, Evaluate, Frame, needs_metering
from kubesched.k8s.cel.values import type_name
from kubesched.k8s.model.quantity import Quantity


@dataclass(frozen=True, slots=True)
class VersionText:
    """A version attribute, not yet parsed."""

    text: str


Scalar = str | int | bool | VersionText
AttributeValue = Scalar | tuple[Scalar, ...]
"""The value of an attribute; a tuple is a list attribute."""


@dataclass(frozen=True, slots=True)
class DeviceView:
    """A device as the variable `device` of an expression. Use `of` to build one from qualified names."""

    driver: str
    attributes: DomainMap
    capacity: DomainMap
    allow_multiple_allocations: bool
    list_attribute: str = ""
    """The name of an attribute that is a list, if there is one: programs without list attributes refuse the device."""

    @classmethod
    def of(
        cls,
        driver: str,
        attributes: Mapping[str, AttributeValue | None] | None = None,
        capacity: Mapping[str, Quantity] | None = None,
        allow_multiple_allocations: bool | None = None,
    ) -> DeviceView:
        """Raises CelEvaluationError for an attribute without a value, or one that is no version although it says so."""
        values = {name: _attribute(name, value) for name, value in (attributes or {}).items()}
        amounts = {name: quantities.from_quantity(value) for name, value in (capacity or {}).items()}
        list_attribute = next((name for name, value in values.items() if type(value) is list), "")
        return cls(
            driver,
            _by_domain(driver, values),
            _by_domain(driver, amounts),
            bool(allow_multiple_allocations),
            list_attribute,
        )

    def as_map(self) -> dict[str, object]:
        """The device as a value of its own, for an expression that does more than select fields of it."""
        return {
            "driver": self.driver,
            "allowMultipleAllocations": self.allow_multiple_allocations,
            "attributes": self.attributes,
            "capacity": self.capacity,
        }


def split_qualified_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier of an attribute or capacity name."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _by_domain(driver: str, values: Mapping[str, object]) -> DomainMap:
    domains = DomainMap()
    for name, value in values.items():
        domain, identifier = split_qualified_name(name, driver)
        domains.setdefault(domain, {})[identifier] = value
    return domains


def _attribute(name: str, value: AttributeValue | None) -> object:
    if value is None:
        raise CelEvaluationError(f"attribute {name}: unsupported attribute value")
    if isinstance(value, tuple):
        return [_attribute(name, element) for element in value]
    return _version(name, value.text) if isinstance(value, VersionText) else value


def _version(name: str, text: str) -> Semver:
    try:
        return quantities.parse(text)
    except SemverError as error:
        raise CelEvaluationError(f"attribute {name}: parse semantic version: {error}") from None


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
    fields = library.DeviceFields(list_type_attributes)
    checker = Checker(source, library.VARIABLES, library.TYPE_NAMES, fields, library.FUNCTIONS)
    output = checker.check(tree)
    source.raise_issues()
    validate(tree, source)
    source.raise_issues()
    if not may_be_result(output, list_type_attributes):
        raise CelCompileError(f"must evaluate to bool or the unknown type, not {output}")
    return tree


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
    known = library.FUNCTIONS if functions is None else {**library.FUNCTIONS, **functions}
    try:
        tree = parse(source)
        checker = Checker(source, variables, library.TYPE_NAMES, fields or StructFields(), known)
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
