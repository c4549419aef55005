"""From a plugin's class and its arguments in the configuration to the plugin.

Arguments are decoded into the dataclass that the plugin names as its `args_type`. Strict, as all of the configuration:
unknown fields and values of another type are validation errors, each with its path. Fields are spelled as Kubernetes
spells them: `args_type`, say, would be `argsType`. Null stands for a field that is not given.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from kubesched.framework.handle import Handle
from kubesched.k8s.model.spelling import camel, did_you_mean
from kubesched.scheduler.config.errors import ConfigError, ErrorList, display
from kubesched.scheduler.plugin_loading.class_rules import constructor_parameters, line_of, plugin_error, told

INVALID: Final = object()
"""In place of a value that could not be decoded; the validation error has been reported."""

_WORDS: dict[Any, str] = {int: "an integer", float: "a number", str: "a string", bool: "true or false"}


def decode_args(plugin: type, args: Any, path: str, errors: ErrorList) -> Any:
    """What the plugin is given for what the configuration has for it; reports all that is wrong with it."""
    kind = getattr(plugin, "args_type", None)
    if kind is None:
        return args
    return _dataclass(kind, {} if args is None else args, path, errors)


def _dataclass(kind: type, value: Any, path: str, errors: ErrorList) -> Any:
    if not isinstance(value, dict):
        return _mistyped(value, path, "a mapping", errors)
    n_before = len(errors)
    hints = get_type_hints(kind, include_extras=True)
    fields = {camel(field.name): field for field in dataclasses.fields(kind) if field.init}
    for name in value:
        if name not in fields:
            errors.add(f"{path}.{name}", _unknown(name, fields))
    found: dict[str, Any] = {}
    for name, field in fields.items():
        if value.get(name) is not None:
            found[field.name] = _value(hints[field.name], value[name], f"{path}.{name}", errors)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            if _allows_none(hints[field.name]):
                found[field.name] = None
            else:
                errors.required(f"{path}.{name}")
    if len(errors) > n_before:
        return INVALID
    try:
        return kind(**found)
    except Exception as refusal:  # noqa: BLE001  the author's own rules, in whatever way they are broken
        errors.invalid(path, value, str(refusal) or type(refusal).__name__)
        return INVALID


def _value(annotation: Any, value: Any, path: str, errors: ErrorList) -> Any:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _value(inner[0], value, path, errors)
    if annotation is Any or annotation is object:
        return value
    if origin is Literal:
        return value if value in inner else _not_among(value, inner, path, errors)
    if origin in (Union, types.UnionType):
        return _one_of(inner, value, path, errors)
    kind = origin or annotation
    if not isinstance(kind, type):
        return value
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, path, errors)
    if issubclass(kind, Enum):
        return _enum(kind, value, path, errors)
    if kind in _WORDS:
        return _scalar(kind, value, path, errors)
    if issubclass(kind, Mapping):
        return _mapping(inner, value, path, errors)
    if issubclass(kind, Sequence | AbstractSet):
        return _several(kind, inner, value, path, errors)
    return value


def _scalar(kind: type, value: Any, path: str, errors: ErrorList) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if type(value) is kind else _mistyped(value, path, _WORDS[kind], errors)


def _one_of(kinds: tuple[Any, ...], value: Any, path: str, errors: ErrorList) -> Any:
    """The first that fits; of several that do not, the first one's validation errors are told."""
    tried = []
    for kind in kinds:
        if kind is types.NoneType:
            continue
        own = ErrorList()
        found = _value(kind, value, path, own)
        if not own:
            return found
        tried.append(own)
    errors.extend(tried[0])
    return INVALID


def _enum(kind: type[Enum], value: Any, path: str, errors: ErrorList) -> Any:
    try:
        return kind(value)
    except ValueError:
        return _not_among(value, tuple(member.value for member in kind), path, errors)


def _several(kind: type, inner: tuple[Any, ...], value: Any, path: str, errors: ErrorList) -> Any:
    if not isinstance(value, list | tuple):
        return _mistyped(value, path, "a list", errors)
    item = inner[0] if inner else Any
    found = [_value(item, element, f"{path}[{index}]", errors) for index, element in enumerate(value)]
    if INVALID in found:
        return INVALID
    if issubclass(kind, AbstractSet):
        return frozenset(found) if issubclass(kind, frozenset) or not issubclass(kind, set) else set(found)
    return list(found) if issubclass(kind, list) else tuple(found)


def _mapping(inner: tuple[Any, ...], value: Any, path: str, errors: ErrorList) -> Any:
    if not isinstance(value, dict):
        return _mistyped(value, path, "a mapping", errors)
    item = inner[1] if len(inner) > 1 else Any
    return {key: _value(item, element, f"{path}[{key}]", errors) for key, element in value.items()}


def _mistyped(value: Any, path: str, wanted: str, errors: ErrorList) -> Any:
    errors.invalid(path, value, f"must be {wanted}")
    return INVALID


def _not_among(value: Any, choices: tuple[Any, ...], path: str, errors: ErrorList) -> Any:
    errors.add(path, f"Unsupported value: {display(value)}: supported values: {', '.join(map(display, choices))}")
    return INVALID


def _allows_none(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and types.NoneType in get_args(annotation)


def _unknown(name: str, fields: Mapping[str, Any]) -> str:
    return f'unknown field "{name}"{did_you_mean(name, fields)}'


def decoded_args(plugin: type, args: Any, origin: str) -> Any:
    """What the plugin is given for what the configuration has for it. Raises `ConfigError`."""
    errors = ErrorList()
    decoded = decode_args(plugin, args, "args", errors)
    if errors:
        raise ConfigError(errors, origin)
    return decoded


def construct(plugin: type, decoded: Any, handle: Handle, origin: str) -> Any:
    """Gives the constructor what it asks for. What it raises is a `ConfigError` that names the plugin."""
    given: dict[str, Any] = {}
    to_give = [("args", decoded), ("handle", handle)]
    for parameter in constructor_parameters(plugin):
        by_name = next((pair for pair in to_give if pair[0] == parameter.name), None)
        if by_name is None and parameter.default is not parameter.empty:
            continue
        chosen = by_name or to_give[0]
        to_give.remove(chosen)
        given[parameter.name] = chosen[1]
    try:
        return plugin(**given)
    except (Exception, SystemExit) as bug:
        name: str = plugin.name  # type: ignore[attr-defined]
        raise plugin_error(origin, f'initializing plugin "{name}": {told(bug)}', line_of(bug, origin)) from bug
