"""What compiling a node gives: a closure, and what is known of its value beforehand. And what running it costs.

A frame is a list: the device, the meter if costs are counted, then one slot per local variable of the expression.

Costs are in the units of cel-go with the prices of Kubernetes. Patterns with counted repetitions can cost more than in
cel-go, which prices a pattern by the length of its text: `((a{0,30}){0,30})b` is eighteen characters and a program of
two thousand instructions. And functions that take long in Python cost at least what that is, so that a million units
are about a second of anything.

An expression may cost a million. Few expressions can come near that, and only those are metered; for the others
`needs_metering` says no, and they run without counting.

Next: `compiler` combines steps, and puts the charges into the closures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.k8s.cel.errors import COST_EXCEEDED, MAX_COST, CelAbort
from kubesched.k8s.cel.kinds import DYN, CelType
from kubesched.k8s.cel.library.addresses import CidrValue, IpValue
from kubesched.k8s.cel.library.urls import NamedFormat
from kubesched.k8s.cel.nodes import CallExpr, Expr, LiteralExpr, MacroExpr, MacroKind, walk
from kubesched.k8s.cel.operations import entries
from kubesched.k8s.cel.values import CelOptional, OpaqueValue
from kubesched.k8s.patterns import Pattern, PatternError, compile_pattern

DEVICE_SLOT = 0
METER_SLOT = 1
FIRST_LOCAL_SLOT = 2

Frame = list[Any]
Evaluate = Callable[[Frame], Any]


class _Unset:
    """Marks a local variable that has not been evaluated yet."""


UNSET = _Unset()


@dataclass(frozen=True, slots=True)
class CelStep:
    """A compiled expression.

    `is_literal` says that cel-go, too, knows the value before it sees a device: it then reports faults of conversions
    as faults of the expression. `is_constant` says that we do.
    """

    run: Evaluate
    type: CelType = DYN
    is_constant: bool = False
    is_literal: bool = False
    value: Any = None


def constant(value: object, static_type: CelType, *, is_literal: bool = False) -> CelStep:
    """A step that always gives the same value."""

    def run(_: Frame) -> object:
        return value

    return CelStep(run, static_type, is_constant=True, is_literal=is_literal, value=value)


LIST_COST = 10
MAP_COST = 30
STRUCT_COST = 40

ROUND_COSTS = {
    MacroKind.ALL: 3,
    MacroKind.EXISTS: 4,
    MacroKind.EXISTS_ONE: 2,
    MacroKind.COLLECT_LIST: 12,
    MacroKind.COLLECT_MAP: 3,
    MacroKind.COLLECT_ENTRIES: 2,
}
"""What a round of each loop costs for its accumulator, beyond its predicate and transformation."""

RESULT_COSTS = {MacroKind.EXISTS_ONE: 2}

PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})

_UNMETERED_LENGTH = 1000
_SMALL_PATTERN = 200
"""Instructions up to which a pattern's price is cel-go's, in the main, and compiling it counts for nothing."""

_WORK_PER_UNIT = 100
"""How many characters times instructions a pattern gets through in the time of a cost unit."""

_LOCAL_VARIABLES = frozenset({MacroKind.BIND, MacroKind.OPTIONAL_MAP, MacroKind.OPTIONAL_FLAT_MAP})
_GROWING = frozenset({"replace", "join", "format", "lists.range"})

Price = Callable[[tuple[object, ...]], int]


class CostMeter:
    """Counts the cost of one evaluation and ends it when it is too much."""

    __slots__ = ("_patterns", "limit", "spent")

    def __init__(self, limit: int = MAX_COST) -> None:
        self.limit = limit
        self.spent = 0
        self._patterns: dict[str, Pattern] = {}
        """Large patterns met so far: kept, so that none is compiled twice in an evaluation."""

    def charge(self, cost: int) -> None:
        self.spent += cost
        if self.spent > self.limit:
            raise CelAbort(COST_EXCEEDED)

    def meet_pattern(self, text: object) -> None:
        """A large pattern costs what it takes to compile it, once."""
        if not isinstance(text, str) or text in self._patterns:
            return
        try:
            pattern = compile_pattern(text)
        except PatternError:
            return  # the call itself says so
        if pattern.n_instructions > _SMALL_PATTERN:
            self._patterns[text] = pattern
            self.charge(pattern.n_instructions)


def needs_metering(tree: Expr, expression: str) -> bool:
    """Whether the cost could exceed the limit.

    Without a loop, nothing that fits into a short text can, but for strings and lists that grow and are used again.
    """
    if len(expression) > _UNMETERED_LENGTH:
        return True
    nodes = [node for node, _ in walk(tree)]
    if any(isinstance(node, MacroExpr) and node.kind not in _LOCAL_VARIABLES for node in nodes):
        return True
    if any(_has_large_pattern(node) for node in nodes):
        return True
    called = {node.resolved.name for node in nodes if isinstance(node, CallExpr) and node.resolved is not None}
    has_locals = any(isinstance(node, MacroExpr) and node.kind in _LOCAL_VARIABLES for node in nodes)
    return not _GROWING.isdisjoint(called) or (has_locals and "_+_" in called)


def _has_large_pattern(node: Expr) -> bool:
    """Whether a pattern is, or could become, one that costs more than its length tells."""
    if not isinstance(node, CallExpr) or node.function not in PATTERN_FUNCTIONS:
        return False
    pattern = node.operands[1]
    if not isinstance(pattern, LiteralExpr) or not isinstance(pattern.value, str):
        return True
    return _pattern_size(pattern.value) > _SMALL_PATTERN


def _pattern_size(pattern: str) -> int:
    """Its instructions; none if it is no pattern, which the call itself will say."""
    try:
        return compile_pattern(pattern).n_instructions
    except PatternError:
        return 0


def size_of(value: object) -> int:
    """How large a value counts: its length, or 1."""
    if isinstance(value, str | bytes | list | dict | IpValue | CidrValue):
        return len(value)
    if type(value) is CelOptional and value.has_value:
        return size_of(value.value)
    return 1


def price_of(node: CallExpr) -> Price:
    """The price of a call from the values of its arguments."""
    assert node.resolved is not None
    price, least = _listed_price(node), _LEAST.get(node.resolved.name, 0)
    return (lambda arguments: max(price(arguments), least)) if least else price


def _listed_price(node: CallExpr) -> Price:
    assert node.resolved is not None
    identity = node.overloads[0].id if len(node.overloads) == 1 else ""
    if node.function in ("_==_", "_!=_"):
        return _comparison
    for prices, key in ((_BY_OVERLOAD, identity), (_BY_FUNCTION, node.resolved.name), (_STANDARD, identity)):
        price = prices.get(key)
        if price is not None:
            return price
    return lambda _: 1


def price_of_result(function: str, result: object) -> int:
    """What a call costs for the result it gave."""
    return _traversal(size_of(result), 0.2) if function == "join" else 0


def _traversal(size: int, factor: float = 0.1) -> int:
    return math.ceil(size * factor)


def _over_first(factor: float) -> Price:
    return lambda arguments: _traversal(size_of(arguments[0]), factor)


def _free(_: tuple[object, ...]) -> int:
    return 0


def _comparison(arguments: tuple[object, ...]) -> int:
    if isinstance(arguments[0], OpaqueValue):
        return 1
    return _traversal(min(size_of(arguments[0]), size_of(arguments[1])))


def _pattern(arguments: tuple[object, ...]) -> int:
    """cel-go's price, unless the program of the pattern takes more."""
    price = _traversal(1 + size_of(arguments[0])) * math.ceil(size_of(arguments[1]) * 0.25)
    if not isinstance(arguments[1], str):
        return price
    return max(price, _pattern_size(arguments[1]) * (size_of(arguments[0]) + 1) // _WORK_PER_UNIT)


def _validation(arguments: tuple[object, ...]) -> int:
    named = arguments[0]
    pattern_size = named.pattern_size if isinstance(named, NamedFormat) else 0
    return _traversal(1 + size_of(arguments[1])) * math.ceil(pattern_size * 0.25)


def _whole_tree(arguments: tuple[object, ...]) -> int:
    return _tree_size(arguments[0])


def _tree_size(value: object) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * 0.1)
    if isinstance(value, bytes):
        return int(len(value) * 0.1)
    if isinstance(value, list):
        return sum(map(_tree_size, value))
    if isinstance(value, dict):
        return sum(_tree_size(key) + _tree_size(item) for key, item in entries(value))
    return 1


def _product(factor: int) -> Price:
    return lambda arguments: 1 + size_of(arguments[0]) * size_of(arguments[1]) * factor


def _list_of_size(arguments: tuple[object, ...]) -> int:
    return size_of(arguments[0]) + 1 + LIST_COST


def _range_cost(arguments: tuple[object, ...]) -> int:
    count = arguments[0]
    return max(count if isinstance(count, int) else 0, 0) + 1 + LIST_COST


def _slice_cost(arguments: tuple[object, ...]) -> int:
    start, end = arguments[1], arguments[2]
    return (max(end - start, 0) if isinstance(start, int) and isinstance(end, int) else 0) + 1 + LIST_COST


def _self_comparison(index: int) -> Price:
    def price(arguments: tuple[object, ...]) -> int:
        elements = arguments[index]
        size = size_of(elements)
        is_text = isinstance(elements, list) and size > 0 and isinstance(elements[0], str | bytes)
        return int(size * size * (2.1 if is_text else 2.0)) + 1 + LIST_COST

    return price


def _network(extra_bytes: bool, other_is_text: bool) -> Price:
    def price(arguments: tuple[object, ...]) -> int:
        size = size_of(arguments[0])
        cost = _traversal(size + size)
        if extra_bytes:
            cost += _traversal(size) + 1
        return cost + (_traversal(size_of(arguments[1])) if other_is_text else 0)

    return price


_LEAST = {
    **dict.fromkeys(("cidr", "isCIDR", "containsIP", "containsCIDR", "masked"), 15),
    **dict.fromkeys(("url", "isURL", "ip", "isIP", "ip.isCanonical"), 10),
    **dict.fromkeys(("semver", "isSemver", "format", "validate"), 6),
    **dict.fromkeys(("quantity", "isQuantity", "timestamp", "duration", "string", "double", "replace", "split"), 3),
    **dict.fromkeys(("matches", "find", "findAll", "sort", "distinct", "isSorted", "sum", "flatten"), 3),
}
"""By function: what it costs at least, about the microseconds it takes."""

_BY_OVERLOAD: dict[str, Price] = {
    "list_sets_contains_list": _product(1),
    "list_sets_intersects_list": _product(1),
    "list_sets_equivalent_list": _product(2),
    "list_slice": _slice_cost,
    "list_flatten": _list_of_size,
    "list_flatten_int": _list_of_size,
    "lists_range": _range_cost,
    "list_reverse": _list_of_size,
    "list_distinct": _self_comparison(0),
    "cidr_ip": lambda _: 1,
    "cidr_contains_ip_string": _network(False, True),
    "cidr_contains_ip_ip": _network(False, False),
    "cidr_contains_cidr_string": _network(True, True),
    "cidr_contains_cidr": _network(True, False),
}
_BY_FUNCTION: dict[str, Price] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _whole_tree),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _over_first(0.1)),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _over_first(0.2)),
    **dict.fromkeys(("cidr", "ip", "isIP", "isCIDR"), _over_first(0.1)),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _over_first(0.1)),
    **dict.fromkeys(("find", "findAll"), _pattern),
    "join": _free,
    "sort": _self_comparison(0),
    "@sortByAssociatedKeys": _self_comparison(1),
    "validate": _validation,
}
_STANDARD: dict[str, Price] = {
    **dict.fromkeys(
        (
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ),
        _over_first(0.1),
    ),
    **dict.fromkeys(
        [
            f"{verb}_{kind}"
            for verb in ("less", "less_equals", "greater", "greater_equals")
            for kind in ("string", "bytes")
        ],
        _comparison,
    ),
    "in_list": lambda arguments: size_of(arguments[1]),
    "add_string": lambda arguments: _traversal(size_of(arguments[0]) + size_of(arguments[1])),
    "add_bytes": lambda arguments: _traversal(size_of(arguments[0]) + size_of(arguments[1])),
    "matches_string": _pattern,
    "contains_string": lambda arguments: _traversal(size_of(arguments[0])) * _traversal(size_of(arguments[1])),
}
