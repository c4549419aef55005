"""Which type may stand for which, and what the type parameters met on the way stand for.

A Substitution is a set of bindings from type parameters to types. A trial that fails leaves the bindings as they were.

Next: `checker` asks these questions for every call and every aggregate.
"""

from __future__ import annotations

from kubesched.k8s.cel.checking.kinds import DYN, CelType, TypeKind

_NULLABLE = frozenset({TypeKind.OPAQUE, TypeKind.STRUCT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP})
_COMPOSITE = frozenset({TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP})


class Substitution:
    """What type parameters stand for."""

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}

    def assign(self, source: tuple[CelType, ...], target: tuple[CelType, ...]) -> bool:
        """Whether each of `source` may be used where `target` is wanted; binds parameters if all may."""
        before = self._bound.copy()
        if self._assignable_all(source, target):
            return True
        self._bound = before
        return False

    def apply(self, subject: CelType, *, free_to_dyn: bool = False) -> CelType:
        """`subject` with bound parameters replaced, and the free ones by dyn if so asked."""
        if subject.kind is TypeKind.TYPE_PARAM:
            bound = self._bound.get(subject.name)
            if bound is not None:
                return self.apply(bound, free_to_dyn=free_to_dyn)
            return DYN if free_to_dyn else subject
        if not subject.params:
            return subject
        params = tuple(self.apply(param, free_to_dyn=free_to_dyn) for param in subject.params)
        return CelType(subject.kind, subject.name, params)

    def _assignable_all(self, source: tuple[CelType, ...], target: tuple[CelType, ...]) -> bool:
        if len(source) != len(target):
            return False
        return all(self._assignable(one, other) for one, other in zip(source, target, strict=True))

    def _assignable(self, source: CelType, target: CelType) -> bool:
        if target.kind is TypeKind.TYPE_PARAM:
            is_valid, was_bound = self._bind(target, source)
            if is_valid or was_bound:
                return is_valid
        if source.kind is TypeKind.TYPE_PARAM:
            return self._bind(source, target)[0]
        if _is_wildcard(source) or _is_wildcard(target):
            return True
        if source.kind is TypeKind.NULL:
            return target.kind is TypeKind.NULL or target.kind in _NULLABLE
        if target.kind is TypeKind.NULL:
            return source.kind in _NULLABLE
        if source.kind is TypeKind.TYPE:
            return target.kind is TypeKind.TYPE
        if source.kind is not target.kind or source.name != target.name:
            return False
        return self._assignable_all(source.params, target.params) if source.kind in _COMPOSITE else True

    def _bind(self, param: CelType, candidate: CelType) -> tuple[bool, bool]:
        """Whether `candidate` may stand for `param`, and whether something already did."""
        if param == candidate:
            return True, True
        bound = self._bound.get(param.name)
        if bound is None:
            if self._occurs(param, candidate):
                return False, False
            self._bound[param.name] = candidate
            return True, False
        if bound == candidate:
            return True, True
        if not self._assignable(candidate, bound):
            return False, True
        general = more_general(candidate, bound)
        if not self._occurs(param, general):
            self._bound[param.name] = general
        return True, True

    def _occurs(self, param: CelType, inside: CelType) -> bool:
        if param == inside:
            return True
        if inside.kind is TypeKind.TYPE_PARAM:
            bound = self._bound.get(inside.name)
            return bound is not None and self._occurs(param, bound)
        return any(self._occurs(param, part) for part in inside.params)


def more_general(one: CelType, other: CelType) -> CelType:
    """The less specific of two types that agree."""
    return one if _is_equal_or_less_specific(one, other) else other


def _is_equal_or_less_specific(one: CelType, other: CelType) -> bool:
    if one.is_dynamic or one.kind is TypeKind.TYPE_PARAM:
        return True
    if other.is_dynamic or other.kind is TypeKind.TYPE_PARAM or one.kind is not other.kind:
        return False
    if one.kind is TypeKind.TYPE:
        return True
    if one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(_is_equal_or_less_specific(a, b) for a, b in zip(one.params, other.params, strict=True))


def _is_wildcard(subject: CelType) -> bool:
    return subject.is_dynamic or subject.kind is TypeKind.ERROR
