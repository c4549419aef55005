"""Small constructors that macros share, and the error that a malformed macro raises.

Next: `macros` and `loops` use them.
"""

from __future__ import annotations

from kubesched.k8s.cel.syntax.nodes import CallExpr, Expr, ListExpr, LiteralExpr, NameExpr


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
