"""Macros that loop: all, exists, exists_one, map, filter, and their forms with two variables.

With one variable a list gives its elements and a map its keys; with two, a list gives index and element, a map key and
value. The expansions follow the CEL specification, so that the checker finds the same faults as any other CEL.

Next: `macros` lists them together with the other macros.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.k8s.cel.syntax.building import MacroError, call, constant, empty_list, name_of
from kubesched.k8s.cel.syntax.nodes import (
    CallExpr,
    Expr,
    FoldExpr,
    ListExpr,
    MacroExpr,
    MacroKind,
    MapExpr,
    NameExpr,
    SelectExpr,
)

SORTABLE = (ListExpr, SelectExpr, NameExpr, MacroExpr, CallExpr)
"""What sortBy() takes: anything but literals and maps."""

_RESULT = "@result"
_RESERVED = frozenset({_RESULT, "__result__"})
_NOT_SIMPLE = "argument must be a simple name"
_NOT_IDENTIFIER = "argument is not an identifier"


def _quantifier(kind: MacroKind, variable_count: int) -> Callable[[int, Expr, list[Expr]], Expr]:
    def expand(offset: int, target: Expr, args: list[Expr]) -> Expr:
        variables = _variables(args[:variable_count], _NOT_SIMPLE)
        predicate = args[variable_count]
        expansion = _QUANTIFIER_FOLDS[kind](offset, target, variables, predicate)
        return MacroExpr(offset, kind, expansion, subject=target, variables=variables, body=predicate)

    return expand


def _fold_all(offset: int, target: Expr, variables: tuple[str, ...], predicate: Expr) -> Expr:
    return FoldExpr(
        offset,
        iterated=target,
        variables=variables,
        accumulator=_RESULT,
        initial=constant(offset, True),
        condition=call(offset, "@not_strictly_false", _result(offset)),
        step=call(offset, "_&&_", _result(offset), predicate),
        result=_result(offset),
    )


def _fold_exists(offset: int, target: Expr, variables: tuple[str, ...], predicate: Expr) -> Expr:
    return FoldExpr(
        offset,
        iterated=target,
        variables=variables,
        accumulator=_RESULT,
        initial=constant(offset, False),
        condition=call(offset, "@not_strictly_false", call(offset, "!_", _result(offset))),
        step=call(offset, "_||_", _result(offset), predicate),
        result=_result(offset),
    )


def _fold_exists_one(offset: int, target: Expr, variables: tuple[str, ...], predicate: Expr) -> Expr:
    one_more = call(offset, "_+_", _result(offset), constant(offset, 1))
    return FoldExpr(
        offset,
        iterated=target,
        variables=variables,
        accumulator=_RESULT,
        initial=constant(offset, 0),
        condition=constant(offset, True),
        step=call(offset, "_?_:_", predicate, one_more, _result(offset)),
        result=call(offset, "_==_", _result(offset), constant(offset, 1)),
    )


_QUANTIFIER_FOLDS = {
    MacroKind.ALL: _fold_all,
    MacroKind.EXISTS: _fold_exists,
    MacroKind.EXISTS_ONE: _fold_exists_one,
}


def collect_list(offset: int, target: Expr, args: list[Expr]) -> Expr:
    """target.map(x, transform) or target.map(x, predicate, transform)."""
    predicate = args[1] if len(args) == 3 else None
    return _collect_list(offset, target, _variables(args[:1], _NOT_IDENTIFIER), predicate, args[-1])


def _filter(offset: int, target: Expr, args: list[Expr]) -> Expr:
    return _collect_list(offset, target, _variables(args[:1], _NOT_IDENTIFIER), args[1], args[0])


def _transform_list(offset: int, target: Expr, args: list[Expr]) -> Expr:
    predicate = args[2] if len(args) == 4 else None
    return _collect_list(offset, target, _variables(args[:2], _NOT_SIMPLE), predicate, args[-1])


def _collect_list(
    offset: int, target: Expr, variables: tuple[str, ...], predicate: Expr | None, transform: Expr
) -> Expr:
    step: Expr = call(offset, "_+_", _result(offset), ListExpr(offset, [transform]))
    expansion = _collecting_fold(offset, target, variables, predicate, step, empty_list(offset))
    return MacroExpr(offset, MacroKind.COLLECT_LIST, expansion, target, variables, transform, predicate)


def _transform_map(offset: int, target: Expr, args: list[Expr]) -> Expr:
    variables = _variables(args[:2], _NOT_SIMPLE)
    predicate = args[2] if len(args) == 4 else None
    step = call(offset, "cel.@mapInsert", _result(offset), NameExpr(offset, variables[0]), args[-1])
    expansion = _collecting_fold(offset, target, variables, predicate, step, MapExpr(offset, []))
    return MacroExpr(offset, MacroKind.COLLECT_MAP, expansion, target, variables, args[-1], predicate)


def _transform_map_entry(offset: int, target: Expr, args: list[Expr]) -> Expr:
    variables = _variables(args[:2], _NOT_SIMPLE)
    predicate = args[2] if len(args) == 4 else None
    step = call(offset, "cel.@mapInsert", _result(offset), args[-1])
    expansion = _collecting_fold(offset, target, variables, predicate, step, MapExpr(offset, []))
    return MacroExpr(offset, MacroKind.COLLECT_ENTRIES, expansion, target, variables, args[-1], predicate)


def _collecting_fold(
    offset: int, target: Expr, variables: tuple[str, ...], predicate: Expr | None, step: Expr, initial: Expr
) -> FoldExpr:
    if predicate is not None:
        step = call(offset, "_?_:_", predicate, step, _result(offset))
    return FoldExpr(
        offset,
        iterated=target,
        variables=variables,
        accumulator=_RESULT,
        initial=initial,
        condition=constant(offset, True),
        step=step,
        result=_result(offset),
    )


def _variables(arguments: list[Expr], complaint: str) -> tuple[str, ...]:
    names = tuple(name_of(argument, complaint) for argument in arguments)
    if len(names) == 2 and names[0] == names[1]:
        raise MacroError(arguments[1].offset, f"duplicate variable name: {names[0]}")
    for name, argument in zip(names, arguments, strict=True):
        if name in _RESERVED:
            raise MacroError(argument.offset, "iteration variable overwrites accumulator variable")
    return names


def _result(offset: int) -> NameExpr:
    return NameExpr(offset, _RESULT)


MACROS: dict[tuple[str, int], Callable[[int, Expr, list[Expr]], Expr | None]] = {
    ("all", 2): _quantifier(MacroKind.ALL, 1),
    ("all", 3): _quantifier(MacroKind.ALL, 2),
    ("exists", 2): _quantifier(MacroKind.EXISTS, 1),
    ("exists", 3): _quantifier(MacroKind.EXISTS, 2),
    ("exists_one", 2): _quantifier(MacroKind.EXISTS_ONE, 1),
    ("exists_one", 3): _quantifier(MacroKind.EXISTS_ONE, 2),
    ("existsOne", 2): _quantifier(MacroKind.EXISTS_ONE, 1),
    ("existsOne", 3): _quantifier(MacroKind.EXISTS_ONE, 2),
    ("map", 2): collect_list,
    ("map", 3): collect_list,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
}
