"""Closures for list and map literals, with their optional elements.

Next: `values.containers` for what maps are made of.
"""

from __future__ import annotations

from kubesched.k8s.cel.compiling.steps import CelStep, Evaluate, Frame
from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.values.containers import StructValue, encode_key, map_of
from kubesched.k8s.cel.values.go_text import plain
from kubesched.k8s.cel.values.scalars import CelOptional


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
