"""Closures that read and build containers: a.b, a["b"], a.?b, a[?b], has(a.b), and the literals of lists and maps.

After the first question mark, or from an optional on, every part of a chain is optional: the result is an optional, and
none as soon as something is missing. Chains that start at the device with constant keys are what selectors mostly do,
and get closures of their own.

Next: `operations` does the lookups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.operations import ABSENT, StructValue, encode_key, find, get, map_of, missing_key
from kubesched.k8s.cel.steps import DEVICE_SLOT, CelStep, Evaluate, Frame
from kubesched.k8s.cel.values import NONE, CelOptional, plain

_DEVICE_FIELDS: dict[str, Evaluate] = {
    "driver": lambda frame: frame[DEVICE_SLOT].driver,
    "allowMultipleAllocations": lambda frame: frame[DEVICE_SLOT].allow_multiple_allocations,
    "attributes": lambda frame: frame[DEVICE_SLOT].attributes,
    "capacity": lambda frame: frame[DEVICE_SLOT].capacity,
}


@dataclass(frozen=True, slots=True)
class Qualifier:
    """One part of a chain: the key, and whether it has a question mark."""

    key: CelStep
    is_optional: bool = False

    @property
    def constant_text(self) -> str | None:
        """The key, if it is a constant string that must be present."""
        is_plain = self.key.is_constant and type(self.key.value) is str and not self.is_optional
        return self.key.value if is_plain else None


def chain(root: Evaluate, qualifiers: list[Qualifier]) -> Evaluate:
    """The value at the end of a chain."""
    run = root
    for qualifier in qualifiers:
        run = _qualified(run, qualifier)
    return run


def _qualified(operand: Evaluate, qualifier: Qualifier) -> Evaluate:
    key = qualifier.key.run
    text = qualifier.constant_text
    if text is not None:
        return _field(operand, text)
    if qualifier.is_optional:
        return lambda frame: _part_if_present(operand(frame), key(frame))
    return lambda frame: _part(operand(frame), key(frame))


def _field(operand: Evaluate, name: str) -> Evaluate:
    def run(frame: Frame) -> object:
        container = operand(frame)
        if type(container) is dict:
            try:
                return container[name]
            except KeyError:
                raise missing_key(name) from None
        return _part(container, name)

    return run


def _part(container: object, key: object) -> object:
    return _part_if_present(container, key) if type(container) is CelOptional else get(container, key)


def _part_if_present(container: object, key: object) -> object:
    if type(container) is CelOptional:
        if not container.has_value:
            return NONE
        container = container.value
    found = find(container, key)
    return NONE if found is ABSENT else CelOptional(found)


def presence(root: Evaluate, field: str) -> Evaluate:
    """has(root.field)."""

    def run(frame: Frame) -> bool:
        container = root(frame)
        if type(container) is CelOptional:
            if not container.has_value:
                return False
            container = container.value
        return find(container, field) is not ABSENT

    return run


# -- chains from the device ------------------------------------------------------------------------------------------


def device_chain(qualifiers: list[Qualifier]) -> Evaluate:
    """A chain that starts at the variable `device`; the checker has seen to it that the first part is a field."""
    if not qualifiers:
        return lambda frame: frame[DEVICE_SLOT].as_map()
    field = str(qualifiers[0].key.value)
    if qualifiers[0].is_optional:
        return chain(lambda frame: frame[DEVICE_SLOT].as_map(), qualifiers)
    texts = [qualifier.constant_text for qualifier in qualifiers[1:3]]
    if len(texts) == 2 and texts[0] is not None and texts[1] is not None:
        return chain(_BY_DOMAIN_AND_NAME[field](texts[0], texts[1]), qualifiers[3:])
    return chain(_DEVICE_FIELDS[field], qualifiers[1:])


def _attribute_reader(domain: str, name: str) -> Evaluate:
    def run(frame: Frame) -> object:
        try:
            return frame[DEVICE_SLOT].attributes[domain][name]
        except KeyError:
            raise missing_key(name) from None

    return run


def _capacity_reader(domain: str, name: str) -> Evaluate:
    def run(frame: Frame) -> object:
        try:
            return frame[DEVICE_SLOT].capacity[domain][name]
        except KeyError:
            raise missing_key(name) from None

    return run


_BY_DOMAIN_AND_NAME: dict[str, Callable[[str, str], Evaluate]] = {
    "attributes": _attribute_reader,
    "capacity": _capacity_reader,
}


def build_list(elements: list[CelStep], optional: frozenset[int]) -> Evaluate:
    runs = [element.run for element in elements]
    if not optional:
        return lambda frame: [run(frame) for run in runs]

    def build(frame: Frame) -> list[object]:
        built: list[object] = []
        for index, run in enumerate(runs):
            value = run(frame)
            if index in optional:
                if type(value) is not CelOptional:
                    reason = f"cannot initialize optional list element from non-optional value {plain(value)}"
                    raise CelEvaluationError(reason)
                if not value.has_value:
                    continue
                value = value.value
            built.append(value)
        return built

    return build


def build_map(entries: list[tuple[CelStep, CelStep, bool]]) -> Evaluate:
    """A map from the steps of keys and values, and whether each entry is optional."""
    runs = [(key.run, value.run, is_optional) for key, value, is_optional in entries]
    if not any(is_optional for _, _, is_optional in runs):
        return lambda frame: map_of((key(frame), value(frame)) for key, value, _ in runs)

    def build(frame: Frame) -> dict[object, object]:
        built: dict[object, object] = {}
        for key_run, value_run, is_optional in runs:
            key, value = key_run(frame), value_run(frame)
            if is_optional:
                if type(value) is not CelOptional:
                    reason = f"cannot initialize optional entry '{plain(key)}' from non-optional value {plain(value)}"
                    raise CelEvaluationError(reason)
                if not value.has_value:
                    built.pop(encode_key(key), None)
                    continue
                value = value.value
            built.update(map_of([(key, value)]))
        return built

    return build


def build_struct(type_name: str, fields: list[tuple[str, CelStep, bool]]) -> Evaluate:
    """A struct from the names and steps of its fields, and whether each is optional."""
    runs = [(name, step.run, is_optional) for name, step, is_optional in fields]

    def build(frame: Frame) -> StructValue:
        built = StructValue(type_name)
        for name, run, is_optional in runs:
            value = run(frame)
            if is_optional:
                if type(value) is not CelOptional:
                    reason = f"cannot initialize optional entry '{name}' from non-optional value {plain(value)}"
                    raise CelEvaluationError(reason)
                if not value.has_value:
                    continue
                value = value.value
            built[name] = value
        return built

    return build
