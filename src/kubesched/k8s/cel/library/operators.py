"""The operators of CEL, and size() and the like that work on many types: their signatures and what they do.

Logical and conditional operators have no implementation here: they decide what to evaluate, so the compiler does them.

Next: `conversions` for int(), string() and their kin.
"""

from __future__ import annotations

from kubesched.k8s.cel.checking.declarations import CelFunction, CelOverload, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values import arithmetic, containers, equality, ordering
from kubesched.k8s.cel.values.scalars import CelDuration, CelTimestamp

_ARITHMETIC = {
    "add": "bytes double duration int list(A) string uint",
    "subtract": "double duration int uint",
    "multiply": "double int uint",
    "divide": "double int uint",
    "modulo": "int uint",
}
_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_CROSS_NUMERIC = (
    ("int", "double"), ("int", "uint"), ("uint", "double"), ("uint", "int"), ("double", "int"), ("double", "uint"),
)  # fmt: skip


def size(value: object) -> int:
    """size(value)."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if type(value) in (CelDuration, CelTimestamp):
        raise no_such_overload()
    raise CelEvaluationError("no such overload: size")


def _arithmetic(verb: str, *more: CelOverload) -> tuple[CelOverload, ...]:
    same = (overload(f"{verb}_{name}", f"({name}, {name}) -> {name}") for name in _ARITHMETIC[verb].split())
    return (*same, *more)


def _orderings(verb: str) -> tuple[CelOverload, ...]:
    same = (overload(f"{verb}_{name}", f"({name}, {name}) -> bool") for name in _ORDERED)
    crossed = (overload(f"{verb}_{one}_{other}", f"({one}, {other}) -> bool") for one, other in _CROSS_NUMERIC)
    return (*same, *crossed)


FUNCTIONS: tuple[CelFunction, ...] = (
    function("_?_:_", overload("conditional", "(bool, A, A) -> A")),
    function("_&&_", overload("logical_and", "(bool, bool) -> bool")),
    function("_||_", overload("logical_or", "(bool, bool) -> bool")),
    function("!_", overload("logical_not", "(bool) -> bool"), shared=arithmetic.logical_not),
    function("@not_strictly_false", overload("not_strictly_false", "(bool) -> bool")),
    function("_==_", overload("equals", "(A, A) -> bool"), shared=equality.equal),
    function("_!=_", overload("not_equals", "(A, A) -> bool"), shared=equality.not_equal),
    function(
        "_+_",
        *_arithmetic(
            "add",
            overload("add_duration_timestamp", "(duration, timestamp) -> timestamp"),
            overload("add_timestamp_duration", "(timestamp, duration) -> timestamp"),
        ),
        shared=arithmetic.operator("_+_", arithmetic.ADD),
    ),
    function(
        "_-_",
        *_arithmetic(
            "subtract",
            overload("subtract_timestamp_duration", "(timestamp, duration) -> timestamp"),
            overload("subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration"),
        ),
        shared=arithmetic.operator("_-_", arithmetic.SUBTRACT),
    ),
    function("_*_", *_arithmetic("multiply"), shared=arithmetic.operator("_*_", arithmetic.MULTIPLY)),
    function("_/_", *_arithmetic("divide"), shared=arithmetic.operator("_/_", arithmetic.DIVIDE)),
    function("_%_", *_arithmetic("modulo"), shared=arithmetic.operator("_%_", arithmetic.MODULO)),
    function(
        "-_",
        overload("negate_double", "(double) -> double"),
        overload("negate_int", "(int) -> int"),
        shared=arithmetic.negate,
    ),
    function("_<_", *_orderings("less"), shared=ordering.less),
    function("_<=_", *_orderings("less_equals"), shared=ordering.less_equal),
    function("_>_", *_orderings("greater"), shared=ordering.greater),
    function("_>=_", *_orderings("greater_equals"), shared=ordering.greater_equal),
    function(
        "_[_]",
        overload("index_list", "(list(A), int) -> A"),
        overload("index_map", "(map(A, B), A) -> B"),
        overload("optional_list_index_int", "(optional(list(V)), int) -> optional(V)"),
        overload("optional_map_index_value", "(optional(map(K, V)), K) -> optional(V)"),
    ),
    function(
        "_[?_]",
        overload("list_optindex_optional_int", "(list(V), int) -> optional(V)"),
        overload("optional_list_optindex_optional_int", "(optional(list(V)), int) -> optional(V)"),
        overload("map_optindex_optional_value", "(map(K, V), K) -> optional(V)"),
        overload("optional_map_optindex_optional_value", "(optional(map(K, V)), K) -> optional(V)"),
    ),
    function("_?._", overload("select_optional_field", "(dyn, string) -> optional(V)")),
    function(
        "@in",
        overload("in_list", "(A, list(A)) -> bool"),
        overload("in_map", "(A, map(A, B)) -> bool"),
        shared=containers.contains,
    ),
    function(
        "size",
        overload("size_bytes", "(bytes) -> int"),
        overload("bytes_size", "bytes.() -> int"),
        overload("size_list", "(list(A)) -> int"),
        overload("list_size", "list(A).() -> int"),
        overload("size_map", "(map(A, B)) -> int"),
        overload("map_size", "map(A, B).() -> int"),
        overload("size_string", "(string) -> int"),
        overload("string_size", "string.() -> int"),
        shared=size,
    ),
)
