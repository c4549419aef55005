"""Macros: calls that the parser rewrites because a function could not do what they do.

`expand` returns None for a call that is no macro. A malformed one raises MacroError with the offset to blame. The
expansions follow the CEL specification, so that the checker finds the same faults as any other CEL.

Of those that loop (all, exists, exists_one, map, filter, and their forms with two variables), one variable stands for
the elements of a list or the keys of a map; two stand for index and element, or key and value.

Next: `parser`, which calls `expand`.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.k8s.cel.nodes import (
    CallExpr,
    Expr,
    FoldExpr,
    ListExpr,
    LiteralExpr,
    MacroExpr,
    MacroKind,
    MapExpr,
    NameExpr,
    SameExpr,
    SelectExpr,
)


class MacroError(ValueError):
    """A macro whose arguments are not what it needs, with the offset of the one to blame."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


def name_of(argument: Expr, complaint: str) -> str:
    """The name that a macro's argument introduces."""
    if isinstance(argument, NameExpr):
        return argument.name
    raise MacroError(argument.offset, complaint)


def call(offset: int, function: str, *args: Expr) -> CallExpr:
    return CallExpr(offset, function, None, list(args))


def member_call(offset: int, function: str, target: Expr, *args: Expr) -> CallExpr:
    return CallExpr(offset, function, target, list(args))


def constant(offset: int, value: object) -> LiteralExpr:
    return LiteralExpr(offset, value)


def empty_list(offset: int) -> ListExpr:
    return ListExpr(offset, [])


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


_UNUSED = "#unused"
_SORT_INPUT = "@__sortBy_input__"

Expander = Callable[[int, Expr, list[Expr]], Expr | None]


def expand(offset: int, function: str, target: Expr | None, args: list[Expr]) -> Expr | None:
    """What the call stands for if it is a macro."""
    if target is None:
        return _has(offset, args[0]) if function == "has" and len(args) == 1 else None
    expander = _MEMBER_MACROS.get((function, len(args)))
    return expander(offset, target, args) if expander is not None else None


def _has(offset: int, argument: Expr) -> Expr:
    if isinstance(argument, SelectExpr):
        return SelectExpr(offset, argument.operand, argument.field, presence=True)
    raise MacroError(argument.offset, "invalid argument to has() macro")


def _bind(offset: int, target: Expr, args: list[Expr]) -> Expr | None:
    if not (isinstance(target, NameExpr) and target.name == "cel"):
        return None
    name = name_of(args[0], "cel.bind() variable names must be simple identifiers")
    return _binding(offset, name, args[1], args[2])


def _binding(offset: int, name: str, value: Expr, body: Expr) -> MacroExpr:
    """A local variable: a fold over nothing whose accumulator is the variable."""
    expansion = FoldExpr(
        offset,
        iterated=empty_list(offset),
        variables=(_UNUSED,),
        accumulator=name,
        initial=value,
        condition=constant(offset, False),
        step=NameExpr(offset, name),
        result=body,
    )
    return MacroExpr(offset, MacroKind.BIND, expansion, subject=value, variables=(name,), body=body)


def _opt_map(offset: int, target: Expr, args: list[Expr]) -> Expr:
    name = name_of(args[0], "optMap() variable name must be a simple identifier")
    inner = _binding(offset, name, member_call(offset, "value", SameExpr(target.offset, target)), args[1])
    present = CallExpr(offset, "optional.of", None, [inner])
    return _if_present(offset, MacroKind.OPTIONAL_MAP, target, name, present, args[1])


def _opt_flat_map(offset: int, target: Expr, args: list[Expr]) -> Expr:
    name = name_of(args[0], "optFlatMap() variable name must be a simple identifier")
    present = _binding(offset, name, member_call(offset, "value", SameExpr(target.offset, target)), args[1])
    return _if_present(offset, MacroKind.OPTIONAL_FLAT_MAP, target, name, present, args[1])


def _if_present(offset: int, kind: MacroKind, target: Expr, name: str, present: Expr, body: Expr) -> Expr:
    absent = CallExpr(offset, "optional.none", None, [])
    expansion = call(offset, "_?_:_", member_call(offset, "hasValue", target), present, absent)
    return MacroExpr(offset, kind, expansion, subject=target, variables=(name,), body=body)


def _sort_by(offset: int, target: Expr, args: list[Expr]) -> Expr:
    if not isinstance(target, SORTABLE):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, message)
    keys = collect_list(offset, NameExpr(offset, _SORT_INPUT), args)
    body = member_call(offset, "@sortByAssociatedKeys", NameExpr(offset, _SORT_INPUT), keys)
    return _binding(offset, _SORT_INPUT, target, body)


_MEMBER_MACROS: dict[tuple[str, int], Expander] = {
    **MACROS,
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
}
