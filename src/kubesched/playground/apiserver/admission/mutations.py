"""Puts what a mutating policy's expression gave into the object: an applied configuration or a list of JSON patches."""

from __future__ import annotations

from typing import Any

from kubesched.k8s.cel.operations import StructValue
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds.kind import DecodeError, Object, ServedResource
from kubesched.playground.apiserver.kinds.policy_expressions import OBJECT
from kubesched.playground.apiserver.openapi.empty_lists import forget_empty_lists
from kubesched.playground.apiserver.openapi.struct_types import ANY, ValueType, type_of_kind
from kubesched.playground.apiserver.patching import json_patch
from kubesched.playground.apiserver.patching.apply.configuration import check_configuration
from kubesched.playground.apiserver.patching.apply.merging import merge


class MutationError(Exception):
    """The result of an expression cannot be put into the object."""


def mutate(obj: Object, resource: ServedResource, patch_type: str, result: object) -> Object:
    """A new object, with the defaults of what was added; raises MutationError."""
    typed = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    changed = _patched(typed, result) if patch_type == "JSONPatch" else _merged(typed, resource, result)
    for name in ("apiVersion", "kind"):
        changed.pop(name, None)
    try:
        resource.decode(changed)
    except DecodeError as problem:
        raise MutationError(str(problem)) from None
    if not resource.is_custom:
        forget_empty_lists(changed, type_of_kind(resource.group, resource.version, resource.kind) or ANY)
    return changed


def _merged(obj: Object, resource: ServedResource, result: object) -> Object:
    if not isinstance(result, StructValue) or result.type_name != OBJECT:
        raise MutationError("unsupported return type from ApplyConfiguration expression")
    wanted: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **_plain(result, OBJECT)}
    of = resource.custom_type or type_of_kind(resource.group, resource.version, resource.kind) or ANY
    try:
        check_configuration(wanted, of, resource)
    except StatusError as problem:
        why = f"failed to convert patch object to typed object: {problem.message}"
        raise MutationError(f"error applying patch: {why}") from None
    atomic = list(_atomic_paths(wanted, of, ""))
    if atomic:
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise MutationError(f"error applying patch: invalid ApplyConfiguration: {why}")
    merged: Object = merge(obj, wanted, of)
    return merged


def _atomic_paths(value: Any, of: ValueType, path: str) -> list[str]:
    """The places where a configuration would replace a whole that other managers may own parts of."""
    found: list[str] = []
    if isinstance(value, dict):
        if of.form in ("struct", "map") and of.is_atomic:
            found.append(path)
        for name, part in value.items():
            found += _atomic_paths(part, of.child(name), f"{path}.{name}")
    elif isinstance(value, list) and of.form == "list":
        if of.list_type not in ("map", "set"):
            found.append(path)
        for position, item in enumerate(value):
            found += _atomic_paths(item, of.element or ANY, f"{path}[{position}]")
    return found


def _patched(obj: Object, result: object) -> Object:
    if not isinstance(result, list):
        raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array")
    operations = []
    for one in result:
        if not isinstance(one, StructValue):
            raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
        value = {"value": _plain(one["value"], "")} if "value" in one else {}
        operations.append({**{name: one[name] for name in ("op", "path", "from") if name in one}, **value})
    try:
        patched: Object = json_patch.apply(obj, operations)
    except StatusError as problem:
        if any(one.get("op") == "test" for one in operations):
            return obj  # a test that fails means that the patch is not wanted
        raise MutationError(f"JSON Patch: {problem.message}") from None
    return patched


def _plain(value: object, expected_type: str) -> Any:
    """A CEL value as JSON; a struct must be named after its place: ``Object.spec`` is the field spec of an Object."""
    if isinstance(value, StructValue):
        if expected_type and value.type_name != expected_type:
            raise MutationError(
                f'type mismatch: unexpected type name "{value.type_name}", expected "{expected_type}", which matches '
                "field name path from root Object type"
            )
        return {name: _plain(part, f"{value.type_name}.{name}") for name, part in value.items()}
    if isinstance(value, dict):
        return {str(name): _plain(part, "") for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, expected_type) for part in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise MutationError(f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {value!r}")
