"""What is still wrong with a well-typed expression: literals that can never work, and lists and maps of mixed types.

Durations, timestamps and patterns given as literals are tried out. Lists and maps must have elements of one type,
except in the arguments of format(), whose clauses are checked against the types given.

Next: `compiling.compiler`.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.k8s.cel.checking.kinds import DYN, CelType, TypeKind, unwrap_optional, written
from kubesched.k8s.cel.errors import CelEvaluationError, SourceText
from kubesched.k8s.cel.library import standard
from kubesched.k8s.cel.library.strings import COMPLAINTS, FormatError, expand
from kubesched.k8s.cel.syntax.nodes import CallExpr, Expr, ListExpr, LiteralExpr, MapExpr, walk
from kubesched.k8s.patterns import PatternError, compile_pattern

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
