"""Macros: calls that the parser rewrites because a function could not do what they do.

`expand` returns None for a call that is no macro. A malformed one raises MacroError with the offset to blame. This
module has has(), cel.bind(), optMap(), optFlatMap() and sortBy(); the loops are in `loops`.

Next: `loops`; then `parser`, which calls `expand`.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.k8s.cel.syntax import loops
from kubesched.k8s.cel.syntax.building import MacroError, call, constant, empty_list, member_call, name_of
from kubesched.k8s.cel.syntax.nodes import (
    CallExpr,
    Expr,
    FoldExpr,
    MacroExpr,
    MacroKind,
    NameExpr,
    SameExpr,
    SelectExpr,
)

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
    if not isinstance(target, loops.SORTABLE):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, message)
    keys = loops.collect_list(offset, NameExpr(offset, _SORT_INPUT), args)
    body = member_call(offset, "@sortByAssociatedKeys", NameExpr(offset, _SORT_INPUT), keys)
    return _binding(offset, _SORT_INPUT, target, body)


_MEMBER_MACROS: dict[tuple[str, int], Expander] = {
    **loops.MACROS,
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
}
