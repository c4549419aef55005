"""Maps and lists: looking up, iterating, membership.

A map is a dict. Its boolean keys are stored as BoolKey, because Python would take True for 1. The outermost maps of a
device are DomainMaps, in which any domain is present when it is looked up, and only real ones when it is asked for.

Next: `compiling.access` builds chains of lookups from these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum

from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values.go_text import plain
from kubesched.k8s.cel.values.operators import is_same
from kubesched.k8s.cel.values.scalars import MAX_INT, MIN_INT, Uint, go_type_name, type_name

_KEY_TYPES = frozenset({str, int, Uint, bool, float})
"""What may be between brackets."""

ABSENT = object()
"""What a lookup gives for a key that is not there."""


class BoolKey(Enum):
    """A boolean as the key of a map."""

    FALSE = False
    TRUE = True


class DomainMap(dict[str, dict[str, object]]):
    """Attributes or capacities by domain; a domain that the device lacks is an empty map."""

    __slots__ = ()

    def __missing__(self, domain: object) -> dict[str, object]:
        return {}


class StructValue(dict[str, object]):
    """A value built with `Type{field: value}`, which knows its type."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self.type_name = type_name


class LazyMap(dict[str, object]):
    """A map whose values are computed when they are first asked for; it cannot be iterated in an expression."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Mapping[str, Callable[[], object]]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: str) -> object:
        if key not in self._compute:
            raise KeyError(key)
        value = self[key] = self._compute[key]()
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._compute

    def get(self, key: str, default: object = None) -> object:
        return self[key] if key in self._compute else default


def encode_key(key: object) -> object:
    """How a key is stored in a dict."""
    return BoolKey(key) if type(key) is bool else key


def decode_key(key: object) -> object:
    return key.value if type(key) is BoolKey else key


def map_of(pairs: Iterable[tuple[object, object]]) -> dict[object, object]:
    """The map with these entries, of which later ones win."""
    result: dict[object, object] = {}
    for key, value in pairs:
        try:
            result[encode_key(key)] = value
        except TypeError:
            raise CelEvaluationError(f"unsupported map key type: {type_name(key)}") from None
    return result


def keys(mapping: dict[object, object]) -> Iterator[object]:
    return map(decode_key, mapping)


def entries(mapping: dict[object, object]) -> Iterator[tuple[object, object]]:
    return ((decode_key(key), value) for key, value in mapping.items())


def find(container: object, key: object) -> object:
    """What `container[key]` is, or ABSENT. A value that has no parts has none present."""
    if isinstance(container, DomainMap):
        return container[key] if type(key) is str else {}
    if type(key) not in _KEY_TYPES:
        raise CelEvaluationError(f"invalid qualifier type: {go_type_name(key)}")
    if isinstance(container, dict):
        return container.get(encode_key(key), ABSENT)
    if type(container) is list:
        index = list_index(key)
        return container[index] if 0 <= index < len(container) else ABSENT
    return ABSENT


def get(container: object, key: object) -> object:
    """`container[key]`; raises CelEvaluationError if it is not there."""
    found = find(container, key)
    if found is not ABSENT:
        return found
    if type(container) is list:
        raise CelEvaluationError(f"index out of bounds: {plain(key)}")
    raise missing_key(key)


def missing_key(key: object) -> CelEvaluationError:
    return CelEvaluationError(f"no such key: {plain(key)}")


def list_index(key: object) -> int:
    """The index that a number stands for, whatever its type, if it is whole."""
    if type(key) is int:
        return key
    if type(key) is Uint or type(key) is float:
        if key == key and abs(key) <= MAX_INT and int(key) == key and int(key) >= MIN_INT:
            return int(key)
        raise CelEvaluationError(f"unsupported index value {plain(key)} in list")
    raise CelEvaluationError(f"unsupported index type '{type_name(key)}' in list")


def contains(element: object, container: object) -> bool:
    """`element in container`."""
    if type(container) is list:
        return any(is_same(element, other) for other in container)
    if isinstance(container, dict):
        try:
            return encode_key(element) in container
        except TypeError:
            return False
    raise no_such_overload()
