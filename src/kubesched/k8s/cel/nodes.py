"""The tree of an expression.

Each node knows the offset it is reported at, as cel-go has it: an operator at its sign, a call at its parenthesis.
The checker fills in `type`, and for calls what they resolve to. A macro carries both its expansion, which the checker
reads, and its parts, from which the compiler makes a direct loop.

Next: `parser` builds these, `checker` types them, `compiler` turns them into closures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from kubesched.k8s.cel.kinds import ERROR, CelType

if TYPE_CHECKING:
    from kubesched.k8s.cel.kinds import CelFunction, CelOverload


@dataclass(slots=True, eq=False)
class Expr:
    """Any expression."""

    offset: int
    type: CelType = field(default=ERROR, kw_only=True)


@dataclass(slots=True, eq=False)
class ErrorExpr(Expr):
    """Stands where something wrong was reported."""


@dataclass(slots=True, eq=False)
class SameExpr(Expr):
    """An expression that stands elsewhere in the same expansion, before this place, and is checked there."""

    original: Expr


@dataclass(slots=True, eq=False)
class LiteralExpr(Expr):
    """A constant: None, bool, int, Uint, float, str or bytes."""

    value: object


@dataclass(slots=True, eq=False)
class NameExpr(Expr):
    """A variable, or the name of a type."""

    name: str


@dataclass(slots=True, eq=False)
class SelectExpr(Expr):
    """`operand.field`; with `presence`, has(operand.field)."""

    operand: Expr
    field: str
    presence: bool = False
    type_name: str | None = None
    """Set by the checker where the whole chain of names is the qualified name of a type."""


@dataclass(slots=True, eq=False)
class CallExpr(Expr):
    """A function or operator applied to arguments; `target` is the receiver of a member call."""

    function: str
    target: Expr | None
    args: list[Expr]
    resolved: CelFunction | None = None
    overloads: tuple[CelOverload, ...] = ()
    is_namespaced: bool = False
    """Set by the checker where the target is only the namespace of the function, as in sets.contains()."""

    @property
    def operands(self) -> list[Expr]:
        """The arguments as the implementation takes them, the receiver first."""
        return self.args if self.target is None or self.is_namespaced else [self.target, *self.args]


@dataclass(slots=True, eq=False)
class ListExpr(Expr):
    """`[a, ?b]`; `optional` has the indices of the elements with a question mark."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapEntry:
    """`key: value` in a map, or `?key: value`."""

    key: Expr
    value: Expr
    is_optional: bool


@dataclass(slots=True, eq=False)
class MapExpr(Expr):
    entries: list[MapEntry]


@dataclass(slots=True, eq=False)
class StructExpr(Expr):
    """`Name{field: value}`: each field by name with its entry, whose key is where a wrong name is reported."""

    type_name: str
    fields: list[tuple[str, MapEntry]]


@dataclass(slots=True, eq=False)
class FoldExpr(Expr):
    """A comprehension as the specification defines it; exists for the checker alone."""

    iterated: Expr
    variables: tuple[str, ...]
    accumulator: str
    initial: Expr
    condition: Expr
    step: Expr
    result: Expr


class MacroKind(Enum):
    """The shapes that macros expand to."""

    ALL = auto()
    EXISTS = auto()
    EXISTS_ONE = auto()
    COLLECT_LIST = auto()
    COLLECT_MAP = auto()
    COLLECT_ENTRIES = auto()
    BIND = auto()
    OPTIONAL_MAP = auto()
    OPTIONAL_FLAT_MAP = auto()


@dataclass(slots=True, eq=False)
class MacroExpr(Expr):
    """A macro call.

    `subject` is what is iterated, bound or unwrapped, `body` the predicate, transformation or result. `predicate` says
    which elements to collect, None for all.
    """

    kind: MacroKind
    expansion: Expr
    subject: Expr
    variables: tuple[str, ...]
    body: Expr
    predicate: Expr | None = None


def children(node: Expr) -> list[Expr]:
    """The direct parts of a node, in the order of the checker."""
    match node:
        case SelectExpr():
            return [node.operand]
        case CallExpr():
            return [node.target, *node.args] if node.target is not None else node.args
        case ListExpr():
            return node.elements
        case MapExpr():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case StructExpr():
            return [entry.value for _, entry in node.fields]
        case FoldExpr():
            return [node.iterated, node.initial, node.condition, node.step, node.result]
        case MacroExpr():
            return [node.expansion]
        case _:
            return []


def walk(node: Expr, enclosing: tuple[str, ...] = ()) -> Iterator[tuple[Expr, tuple[str, ...]]]:
    """Every node below and including `node`, with the names of the functions around it."""
    yield node, enclosing
    inner = (*enclosing, node.function) if isinstance(node, CallExpr) else enclosing
    for child in children(node):
        yield from walk(child, inner)
