"""Types every node of an expression and resolves its calls, or says what does not fit; then tries out its literals.

CEL is checked before it runs: only what is dyn or any is left to run time. A fault is reported where cel-go reports it,
and the check goes on with the type error, which fits everything, so that one fault is one message.

What is still wrong with a well-typed expression, `validate` finds: durations, timestamps and patterns given as literals
are tried out. Lists and maps must have elements of one type, except in the arguments of format(), whose clauses are
checked against the types given.

Next: `compiler` makes closures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kubesched.k8s.cel import kinds
from kubesched.k8s.cel.errors import CelEvaluationError, SourceText
from kubesched.k8s.cel.kinds import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    CelFunction,
    CelOverload,
    CelType,
    Substitution,
    TypeKind,
    more_general,
    type_params,
    unwrap_optional,
    written,
    written_call,
)
from kubesched.k8s.cel.library import standard
from kubesched.k8s.cel.library.strings import COMPLAINTS, FormatError, expand
from kubesched.k8s.cel.nodes import (
    CallExpr,
    ErrorExpr,
    Expr,
    FoldExpr,
    ListExpr,
    LiteralExpr,
    MacroExpr,
    MapExpr,
    NameExpr,
    SameExpr,
    SelectExpr,
    StructExpr,
    children,
    walk,
)
from kubesched.k8s.cel.values import Uint
from kubesched.k8s.patterns import PatternError, compile_pattern

_LITERAL_TYPES: dict[type, CelType] = {
    bool: BOOL,
    bytes: BYTES,
    float: DOUBLE,
    int: INT,
    str: STRING,
    type(None): NULL,
    Uint: UINT,
}


class FieldTypes(Protocol):
    """The fields of struct types, by the type's name and the field's."""

    def is_constructible(self, type_name: str) -> bool:
        """Whether an expression may build a value of this type, `Type{field: value}`."""

    def field_type(self, type_name: str, field: str) -> CelType | None:
        """The type of a field, None if the struct has no such field. Raises KeyError for a struct without fields."""


class Checker:
    """Checks one expression against an environment: its variables, named types, struct fields and functions."""

    def __init__(
        self,
        source: SourceText,
        variables: Mapping[str, CelType],
        type_names: Mapping[str, CelType],
        fields: FieldTypes,
        functions: Mapping[str, CelFunction],
    ) -> None:
        self._source = source
        self._scopes: list[Mapping[str, CelType]] = [variables]
        self._type_names = type_names
        self._fields = fields
        self._functions = functions
        self._substitution = Substitution()
        self._n_type_variables = 0

    def check(self, tree: Expr) -> CelType:
        """Type the whole tree and return its type; faults are reported to the source."""
        self._check(tree)
        self._settle(tree)
        return tree.type

    def _settle(self, node: Expr) -> None:
        """Replace the type parameters in the types found, now that all that can be known of them is known."""
        node.type = self._substitution.apply(node.type, free_to_dyn=True)
        for child in children(node):
            self._settle(child)

    def _check(self, node: Expr) -> CelType:
        node.type = self._type_of(node)
        return node.type

    def _type_of(self, node: Expr) -> CelType:
        match node:
            case LiteralExpr():
                return _LITERAL_TYPES[type(node.value)]
            case NameExpr():
                return self._check_name(node)
            case SelectExpr():
                return self._check_select(node)
            case CallExpr():
                return self._check_call(node)
            case ListExpr():
                return self._check_list(node)
            case MapExpr():
                return self._check_map(node)
            case MacroExpr():
                return self._check(node.expansion)
            case FoldExpr():
                return self._check_fold(node)
            case SameExpr():
                return node.original.type
            case StructExpr():
                return self._check_struct(node)
            case _:
                assert isinstance(node, ErrorExpr)
                return ERROR

    # -- names and fields --------------------------------------------------------------------------------------------

    def _check_name(self, node: NameExpr) -> CelType:
        found = self._lookup(node.name)
        if found is not None:
            return found
        self._undeclared(node.offset, node.name)
        return ERROR

    def _lookup(self, name: str) -> CelType | None:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        named = self._type_names.get(name)
        return kinds.type_of(named) if named is not None else None

    def _undeclared(self, offset: int, name: str) -> None:
        self._source.report(offset, f"undeclared reference to '{name}' (in container '')")

    def _check_struct(self, node: StructExpr) -> CelType:
        if not self._fields.is_constructible(node.type_name):
            if self._lookup(node.type_name) is None:
                self._undeclared(node.offset, node.type_name)
            else:
                self._source.report(node.offset, f"'{node.type_name}' is not a message type")
            return ERROR
        for name, entry in node.fields:
            value_type = self._check(entry.value)
            if entry.is_optional:
                value_type = self._inside_optional(entry.value)
            wanted = self._fields.field_type(node.type_name, name)
            if wanted is None:
                self._source.report(entry.key.offset, f"undefined field '{name}'")
            elif not self._substitution.assign((value_type,), (wanted,)):
                shown, found = written(wanted), written(value_type)
                message = f"expected type of field '{name}' is '{shown}' but provided type is '{found}'"
                self._source.report(entry.key.offset, message)
        return CelType(TypeKind.STRUCT, node.type_name)

    def _check_select(self, node: SelectExpr) -> CelType:
        qualified = None if node.presence else qualified_name(node)
        if qualified is not None and qualified in self._type_names:
            node.type_name = qualified
            return kinds.type_of(self._type_names[qualified])
        selected = self._check_field(node.offset, node.operand, node.field, is_optional=False)
        return BOOL if node.presence else selected

    def _check_field(self, offset: int, operand: Expr, field: str, is_optional: bool) -> CelType:
        operand_type, was_optional = kinds.unwrap_optional(self._substitution.apply(self._check(operand)))
        selected = self._field_type(offset, operand_type, field)
        return kinds.optional_of(selected) if is_optional or was_optional else selected

    def _field_type(self, offset: int, operand_type: CelType, field: str) -> CelType:
        if operand_type.kind is TypeKind.MAP:
            return operand_type.params[1]
        if operand_type.kind is TypeKind.STRUCT:
            try:
                found = self._fields.field_type(operand_type.name, field)
            except KeyError:
                self._source.report(offset, f"unexpected failed resolution of '{operand_type.name}'")
                return ERROR
            if found is None:
                self._source.report(offset, f"undefined field '{field}'")
            return found or ERROR
        if operand_type.kind is TypeKind.TYPE_PARAM:
            self._substitution.assign((DYN,), (operand_type,))
        elif not operand_type.is_dynamic and operand_type.kind is not TypeKind.ERROR:
            self._source.report(offset, f"type '{written(operand_type)}' does not support field selection")
        return DYN

    # -- calls -------------------------------------------------------------------------------------------------------

    def _check_call(self, node: CallExpr) -> CelType:
        if node.function == "_?._":
            return self._check_optional_select(node)
        for argument in node.args:
            self._check(argument)
        found = self._namespaced(node) if node.target is not None else self._function(node.function)
        if found is None and node.target is not None:
            self._check(node.target)
            found = self._function(node.function)
        if found is None:
            self._undeclared(node.offset, node.function)
            return ERROR
        node.resolved = found
        if found.name in ("_&&_", "_||_"):
            return self._check_logical(node)
        return self._resolve(node, found)

    def _function(self, name: str) -> CelFunction | None:
        return self._functions.get(name.removeprefix("."))

    def _namespaced(self, node: CallExpr) -> CelFunction | None:
        """The function of a call such as sets.contains(), whose target is no value."""
        assert node.target is not None
        prefix = qualified_name(node.target)
        found = self._function(f"{prefix}.{node.function}") if prefix is not None else None
        node.is_namespaced = found is not None
        return found

    def _check_optional_select(self, node: CallExpr) -> CelType:
        operand, field = node.args
        field.type = STRING
        assert isinstance(field, LiteralExpr)
        return self._check_field(node.offset, operand, str(field.value), is_optional=True)

    def _check_logical(self, node: CallExpr) -> CelType:
        fits = True
        for argument in node.args:
            if not self._substitution.assign((argument.type,), (BOOL,)):
                self._expected(argument.offset, BOOL, argument.type)
                fits = False
        return BOOL if fits else ERROR

    def _resolve(self, node: CallExpr, found: CelFunction) -> CelType:
        is_member = node.target is not None and not node.is_namespaced
        arguments = tuple(operand.type for operand in node.operands)
        result: CelType | None = None
        fitting: list[CelOverload] = []
        for candidate in found.overloads:
            if candidate.is_member is not is_member:
                continue
            params, candidate_result = self._instantiate(candidate)
            if not self._substitution.assign(arguments, params):
                continue
            fitting.append(candidate)
            candidate_result = self._substitution.apply(candidate_result)
            if result is None:
                result = candidate_result
            elif not result.is_dynamic and candidate_result != result:
                result = DYN
        if result is None:
            shown = [self._substitution.apply(argument, free_to_dyn=True) for argument in arguments]
            applied = written_call(shown, is_member)
            self._source.report(node.offset, f"found no matching overload for '{found.name}' applied to '{applied}'")
            return ERROR
        node.overloads = tuple(fitting)
        return result

    def _instantiate(self, candidate: CelOverload) -> tuple[tuple[CelType, ...], CelType]:
        """The signature with fresh type variables for its type parameters."""
        names = type_params(candidate)
        if not names:
            return candidate.params, candidate.result
        fresh = Substitution()
        for name in names:
            fresh.assign((self._type_variable(),), (kinds.type_param(name),))
        return tuple(fresh.apply(param) for param in candidate.params), fresh.apply(candidate.result)

    def _type_variable(self) -> CelType:
        self._n_type_variables += 1
        return kinds.type_param(f"_var{self._n_type_variables - 1}")

    # -- aggregates --------------------------------------------------------------------------------------------------

    def _check_list(self, node: ListExpr) -> CelType:
        joined: CelType | None = None
        for index, element in enumerate(node.elements):
            element_type = self._check(element)
            if index in node.optional:
                element_type = self._inside_optional(element)
            joined = self._join(joined, element_type)
        return kinds.list_of(joined if joined is not None else self._type_variable())

    def _check_map(self, node: MapExpr) -> CelType:
        key_type: CelType | None = None
        value_type: CelType | None = None
        for entry in node.entries:
            key_type = self._join(key_type, self._check(entry.key))
            one_type = self._check(entry.value)
            if entry.is_optional:
                one_type = self._inside_optional(entry.value)
            value_type = self._join(value_type, one_type)
        if key_type is None or value_type is None:
            return kinds.map_of(self._type_variable(), self._type_variable())
        return kinds.map_of(key_type, value_type)

    def _inside_optional(self, node: Expr) -> CelType:
        inner, was_optional = kinds.unwrap_optional(node.type)
        if not was_optional and not inner.is_dynamic:
            self._expected(node.offset, kinds.optional_of(inner), inner)
        return inner

    def _join(self, joined: CelType | None, one: CelType) -> CelType:
        """The type of elements that are of either type: the more general one, or dyn."""
        if joined is None:
            return one
        return more_general(joined, one) if self._substitution.assign((joined,), (one,)) else DYN

    # -- comprehensions ----------------------------------------------------------------------------------------------

    def _check_fold(self, node: FoldExpr) -> CelType:
        iterated = self._substitution.apply(self._check(node.iterated))
        accumulated = self._check(node.initial)
        self._scopes.append({node.accumulator: accumulated})
        self._scopes.append(dict(zip(node.variables, self._variable_types(node, iterated), strict=True)))
        self._check(node.condition)
        self._assert_type(node.condition, BOOL)
        self._check(node.step)
        self._assert_type(node.step, accumulated)
        self._scopes.pop()
        self._check(node.result)
        self._scopes.pop()
        return self._substitution.apply(node.result.type)

    def _variable_types(self, node: FoldExpr, iterated: CelType) -> list[CelType]:
        count = len(node.variables)
        if iterated.kind is TypeKind.LIST:
            return [INT, iterated.params[0]] if count == 2 else [iterated.params[0]]
        if iterated.kind is TypeKind.MAP:
            return list(iterated.params[:count])
        if iterated.kind in (TypeKind.DYN, TypeKind.ERROR, TypeKind.TYPE_PARAM):
            self._substitution.assign((DYN,), (iterated,))
            return [DYN] * count
        shown = written(iterated)
        message = f"expression of type '{shown}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._source.report(node.iterated.offset, message)
        return [ERROR] * count

    def _assert_type(self, node: Expr, wanted: CelType) -> None:
        if not self._substitution.assign((wanted,), (node.type,)):
            self._expected(node.offset, wanted, node.type)

    def _expected(self, offset: int, wanted: CelType, found: CelType) -> None:
        self._source.report(offset, f"expected type '{written(wanted)}' but found '{written(found)}'")


def qualified_name(node: Expr) -> str | None:
    """`a.b.c` if the node is a chain of names and nothing else."""
    names: list[str] = []
    while isinstance(node, SelectExpr) and not node.presence:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, NameExpr):
        return None
    return ".".join((node.name, *reversed(names)))


def may_be_result(output: CelType, list_type_attributes: bool) -> bool:
    """Whether an expression of this type may be a selector: bool, or the type of an attribute."""
    return output in (BOOL, ANY) or (list_type_attributes and output == DYN)


_NUMBERS = frozenset({TypeKind.INT, TypeKind.UINT})
_PRINTABLE = _NUMBERS | {
    TypeKind.BOOL,
    TypeKind.BYTES,
    TypeKind.DOUBLE,
    TypeKind.DURATION,
    TypeKind.LIST,
    TypeKind.MAP,
    TypeKind.NULL,
    TypeKind.STRING,
    TypeKind.TIMESTAMP,
    TypeKind.TYPE,
}
_CLAUSE_KINDS = {
    "s": _PRINTABLE,
    "d": _NUMBERS,
    "f": frozenset({TypeKind.DOUBLE, TypeKind.STRING}),
    "e": frozenset({TypeKind.DOUBLE, TypeKind.STRING}),
    "b": _NUMBERS | {TypeKind.BOOL},
    "x": _NUMBERS | {TypeKind.STRING, TypeKind.BYTES},
    "o": _NUMBERS,
}


def validate(tree: Expr, source: SourceText) -> None:
    """Report what is wrong with a typed tree to its source."""
    for node, enclosing in walk(tree):
        if isinstance(node, CallExpr):
            _validate_literal_argument(node, source)
            _validate_format(node, source)
        elif isinstance(node, ListExpr | MapExpr) and "format" not in enclosing:
            _validate_same_types(node, source)


def _validate_literal_argument(node: CallExpr, source: SourceText) -> None:
    trial = _TRIALS.get(node.function)
    if trial is None or not node.args:
        return
    argument = node.args[0]
    if isinstance(argument, LiteralExpr) and not trial(argument.value):
        source.report(argument.offset, f"invalid {node.function} argument")


def _is_duration(value: object) -> bool:
    try:
        return type(value) is str and standard.duration_from_string(value) is not None
    except CelEvaluationError:
        return False


def _is_timestamp(value: object) -> bool:
    try:
        if type(value) is int:
            return standard.timestamp_from_int(value) is not None
        return type(value) is str and standard.timestamp_from_string(value) is not None
    except CelEvaluationError:
        return False


def _is_pattern(value: object) -> bool:
    """cel-go looks at the first argument, which of matches(text, pattern) is the text."""
    try:
        return type(value) is str and compile_pattern(value) is not None
    except PatternError:
        return False


_TRIALS: dict[str, Callable[[object], bool]] = {
    "duration": _is_duration,
    "timestamp": _is_timestamp,
    "matches": _is_pattern,
}


def _validate_same_types(node: ListExpr | MapExpr, source: SourceText) -> None:
    if isinstance(node, ListExpr):
        elements = [(item, index in node.optional) for index, item in enumerate(node.elements)]
        _report_first_stranger(elements, source, stop=True)
        return
    _report_first_stranger([(entry.key, False) for entry in node.entries], source, stop=False)
    _report_first_stranger([(entry.value, entry.is_optional) for entry in node.entries], source, stop=False)


def _report_first_stranger(elements: list[tuple[Expr, bool]], source: SourceText, stop: bool) -> None:
    types = [unwrap_optional(item.type)[0] if is_optional else item.type for item, is_optional in elements]
    for (item, _), found in zip(elements, types, strict=True):
        if found != types[0]:
            source.report(item.offset, f"expected type '{written(types[0])}' but found '{written(found)}'")
            if stop:
                return


def _validate_format(node: CallExpr, source: SourceText) -> None:
    """Check the clauses of a literal format string against the types of a literal list."""
    if node.function != "format" or node.target is None or node.is_namespaced or len(node.args) != 1:
        return
    pattern, arguments = node.target, node.args[0]
    if not (isinstance(pattern, LiteralExpr) and type(pattern.value) is str and isinstance(arguments, ListExpr)):
        return
    items = arguments.elements
    n_used = 0

    def check(index: int, clause: str, _: int | None) -> str:
        nonlocal n_used
        n_used += 1
        stranger = _stranger(items[index], clause.lower())
        if stranger is not None:
            raise FormatError(COMPLAINTS[clause.lower()].format(stranger.type.name), stranger.offset)
        return ""

    try:
        expand(pattern.value, len(items), check)
    except FormatError as error:
        source.report(node.offset if error.argument is None else error.argument, str(error))
        return
    if len(items) > n_used:
        message = f"too many arguments supplied to string.format (expected {n_used}, got {len(items)})"
        source.report(node.offset, message)


def _stranger(item: Expr, clause: str) -> Expr | None:
    """The argument, or the part of it, that a clause does not take."""
    if not _fits(item.type, clause):
        return item
    if clause != "s":
        return None
    parts: list[Expr] = []
    if isinstance(item, ListExpr):
        parts = item.elements
    elif isinstance(item, MapExpr):
        parts = [part for entry in item.entries for part in (entry.key, entry.value)]
    return next((found for part in parts if (found := _stranger(part, clause)) is not None), None)


def _fits(candidate: CelType, clause: str) -> bool:
    return candidate == DYN or candidate.kind in _CLAUSE_KINDS[clause]
