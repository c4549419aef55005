"""From a file, or a mapping, to a configuration that can be used: decoded strictly, defaulted, validated.

`load` either returns a configuration that keeps every rule of kube-scheduler v1.36 that can be checked without knowing
the plugins, or raises `ConfigError` with every validation error. It reads no file: the caller hands the content in.

YAML is read as Kubernetes reads it. Only the first document of a stream counts. Text that opens with a brace is JSON.
Keys that occur twice are reported. As Kubernetes' strict decoder does, `StrictDecoder` rejects unknown fields and
values of the wrong type, takes null for "not given", and fills what is missing with defaults or, for the structs of the
model, with empty values. After a validation error it goes on with the default, so that the next one is found as well.

Next: `defaults` and `validation`, in this order; then `resolve`. `kubesched.k8s.model.kubernetes_yaml` has the rules of
YAML.
"""

from __future__ import annotations

import base64
import binascii
import json
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
import yaml
from msgspec.structs import FieldInfo

from kubesched.k8s.model.kubernetes_yaml import (
    BROKEN_VALUES,
    KubernetesLoader,
    check_bounds,
    in_one_line,
    json_fields,
    repeated_keys,
    yaml_problem,
)
from kubesched.k8s.model.spelling import did_you_mean
from kubesched.k8s.model.times import Duration, DurationError
from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration, PluginConfig
from kubesched.scheduler.config.defaults import DEFAULT_SCHEDULER_NAME, set_defaults
from kubesched.scheduler.config.errors import ConfigError, ErrorList, FieldError, display
from kubesched.scheduler.config.plugin_args import API_VERSION, ARGS_BY_PLUGIN
from kubesched.scheduler.config.validation import validate

_GROUP = API_VERSION.partition("/")[0]


def decode_plugin_config(decoder: StrictDecoder, value: Any, path: str) -> Any:
    """A hook for `StrictDecoder`."""
    if not isinstance(value, dict):
        return decoder.mistyped(path, value, "object")
    args = value.get("args")
    entry = decoder.struct(PluginConfig, {key: item for key, item in value.items() if key != "args"}, path)
    kind = ARGS_BY_PLUGIN.get(entry.name)
    args_path = join(path, "args")
    if kind is None:
        if args is not None and not isinstance(args, dict):
            decoder.mistyped(args_path, args, "object")
            args = None
        return PluginConfig(entry.name, args)
    if args is None:
        return PluginConfig(entry.name, kind())
    if not isinstance(args, dict):
        decoder.mistyped(args_path, args, "object")
        return PluginConfig(entry.name, kind())
    if not _is_kind(args, kind.__name__, entry.name, args_path, decoder.errors):
        return PluginConfig(entry.name, kind())
    fields = {key: item for key, item in args.items() if key not in ("apiVersion", "kind")}
    return PluginConfig(entry.name, decoder.struct(kind, fields, args_path))


def _is_kind(args: dict[str, Any], kind: str, plugin: str, path: str, errors: ErrorList) -> bool:
    n_before = len(errors)
    version, found = args.get("apiVersion"), args.get("kind")
    if version not in (None, "", API_VERSION):
        errors.unsupported(join(path, "apiVersion"), version, [API_VERSION])
    if found not in (None, "", kind):
        errors.invalid(join(path, "kind"), found, f"args for plugin {plugin} were not of type {kind}.{_GROUP}")
    return len(errors) == n_before


KIND = "KubeSchedulerConfiguration"


def load(data: bytes | str | dict[str, Any], source: str) -> KubeSchedulerConfiguration:
    """A configuration from YAML, JSON or a mapping. `source` names it in messages: the file, say."""
    errors = ErrorList()
    value = data if isinstance(data, dict) else parse(data, source, errors)
    decoder = StrictDecoder(errors, {PluginConfig: decode_plugin_config})
    manifest = _checked_manifest({} if value is None else value, decoder)
    if manifest is None:
        raise ConfigError(errors, source)
    decoded = decoder.struct(KubeSchedulerConfiguration, _with_defaults_by_absence(manifest), "")
    config = set_defaults(decoded)
    found = ErrorList()
    validate(config, found)
    # A field that could not be decoded holds its default by now: nothing more can be said of it.
    undecoded = tuple(error.path for error in errors)
    errors.extend(error for error in found if not _is_within(error.path, undecoded))
    if errors:
        raise ConfigError(errors, source)
    return config


def default() -> KubeSchedulerConfiguration:
    """The configuration of a scheduler that was given none."""
    return set_defaults(KubeSchedulerConfiguration())


def _checked_manifest(value: Any, decoder: StrictDecoder) -> dict[str, Any] | None:
    """The fields of a manifest that is of the right kind, else None: what it says means nothing then."""
    if not isinstance(value, dict):
        decoder.mistyped("", value, "object")
        return None
    is_right = True
    for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        found = value.get(field)
        if found in (None, ""):
            decoder.errors.required(field, f"must be {wanted}")
        elif found != wanted:
            decoder.errors.unsupported(field, found, [wanted])
        is_right = is_right and found == wanted
    return {name: item for name, item in value.items() if name not in ("apiVersion", "kind")} if is_right else None


def _with_defaults_by_absence(manifest: dict[str, Any]) -> dict[str, Any]:
    """Fill in the two fields whose default differs from what they mean when given empty or false."""
    filled = dict(manifest)
    if filled.get("enableContentionProfiling") is None and filled.get("enableProfiling") is False:
        filled["enableContentionProfiling"] = False
    profiles = filled.get("profiles")
    if isinstance(profiles, list | tuple) and len(profiles) == 1:
        profile = {} if profiles[0] is None else profiles[0]
        if isinstance(profile, dict) and profile.get("schedulerName") is None:
            filled["profiles"] = [profile | {"schedulerName": DEFAULT_SCHEDULER_NAME}]
    return filled


def _is_within(path: str, others: tuple[str, ...]) -> bool:
    return any(path == other or path.startswith((f"{other}.", f"{other}[")) for other in others)


def parse(data: bytes | str, source: str, errors: ErrorList) -> Any:
    """The value that a text stands for. Repeated keys go to `errors`; text that is no YAML raises `ConfigError`."""
    try:
        text = data.decode() if isinstance(data, bytes) else data
        return _parse_json(text, errors) if text.lstrip().startswith("{") else _parse_yaml(text, errors)
    except UnicodeDecodeError as error:
        problem = FieldError("", f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}")
    except json.JSONDecodeError as error:
        problem = FieldError("", f"line {error.lineno}, column {error.colno}: {error.msg}")
    except yaml.YAMLError as error:
        problem = FieldError("", yaml_problem(error))
    except RecursionError:
        problem = FieldError("", "nested too deeply")
    except BROKEN_VALUES as error:
        problem = FieldError("", in_one_line(error))
    raise ConfigError([problem], source)


def join(path: str, name: str) -> str:
    """The path of a field below another path."""
    return f"{path}.{name}" if path else name


# -- JSON --------------------------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not a JSON value", name, 0)


def _parse_json(text: str, errors: ErrorList) -> Any:
    value = json.loads(text, parse_constant=_refuse_constant)
    for path, name in dict.fromkeys((field.path, field.name) for field in json_fields(text) if field.is_repeated):
        errors.add(path, f'duplicate field "{name}"')
    return value


# -- YAML --------------------------------------------------------------------------------------------------------------


def _parse_yaml(text: str, errors: ErrorList) -> Any:
    check_bounds(text)
    loader = KubernetesLoader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None
        for path, key, _ in repeated_keys(node, lambda key: str(key.value), aliases_once=True):
            errors.add(path, f'duplicate field "{key.value}" (line {key.start_mark.line + 1})')
        return loader.construct_document(node)
    finally:
        loader.dispose()


INVALID: Final = object()
"""Returned in place of a value that could not be decoded; the validation error has been reported."""

_LONGEST_VALUE_SHOWN = 60


class StrictDecoder:
    """Decodes by annotation. `hooks` take over for structs that need more than their annotations say."""

    def __init__(
        self, errors: ErrorList, hooks: Mapping[type, Callable[[StrictDecoder, Any, str], Any]] | None = None
    ) -> None:
        self.errors = errors
        self._hooks = hooks or {}

    def decode(self, annotation: Any, value: Any, path: str) -> Any:
        """`value` as the annotation asks, or `INVALID`. Null gives an empty value."""
        kind = _without_none(annotation)
        if value is None:
            return self._empty(kind, path)
        if kind in self._hooks:
            return self._hooks[kind](self, value, path)
        origin = get_origin(kind)
        if origin is tuple:
            return self._array(get_args(kind)[0], value, path)
        if origin is dict:
            return self._object(get_args(kind)[1], value, path)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(kind, value, path)
        return self._scalar(kind, value, path)

    def struct(self, kind: type[msgspec.Struct], value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            return self.mistyped(path, value, "object")
        fields = _fields(kind)
        for name in value:
            if name not in fields:
                self.errors.add(join(path, name), _unknown_field(name, fields))
        found: dict[str, Any] = {}
        for name, field in fields.items():
            given = value.get(name)
            if given is not None:
                decoded = self.decode(field.type, given, join(path, name))
                if decoded is not INVALID:
                    found[field.name] = decoded
            if field.required and field.name not in found:
                found[field.name] = self.decode(field.type, None, join(path, name))
        return kind(**found)

    def _empty(self, kind: Any, path: str) -> Any:
        """What Go would have in place of a value that is not there."""
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(kind, {}, path)
        plain = _bare(kind)
        return (get_origin(plain) or plain)()

    def mistyped(self, path: str, value: Any, wanted: str) -> Any:
        shown = display(value)
        if len(shown) > _LONGEST_VALUE_SHOWN:
            shown = shown[:_LONGEST_VALUE_SHOWN] + "..."
        self.errors.add(path, f"Invalid value: {shown}: must be of type {wanted}")
        return INVALID

    def _array(self, item: Any, value: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            return self.mistyped(path, value, "array")
        found = []
        for index, element in enumerate(value):
            decoded = self.decode(item, element, f"{path}[{index}]")
            # An empty element keeps the places of those after it, which messages name.
            found.append(self._empty(item, f"{path}[{index}]") if decoded is INVALID else decoded)
        return tuple(found)

    def _object(self, item: Any, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            return self.mistyped(path, value, "object")
        decoded = {key: self.decode(item, element, f"{path}[{key}]") for key, element in value.items()}
        return {key: element for key, element in decoded.items() if element is not INVALID}

    def _scalar(self, kind: Any, value: Any, path: str) -> Any:
        plain = _bare(kind)
        if plain is int:
            low, high = _bounds(kind)
            whole = isinstance(value, int) and not isinstance(value, bool)
            return value if whole and low <= value <= high else self.mistyped(path, value, type_name(kind))
        if plain is float:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return float(value) if number else self.mistyped(path, value, type_name(kind))
        if plain is Duration:
            return self._duration(value, path)
        if plain is bytes:
            return self._bytes(value, path)
        return value if type(value) is plain else self.mistyped(path, value, type_name(kind))

    def _duration(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            return self.mistyped(path, value, "duration")
        try:
            return Duration.parse(value)
        except DurationError as error:
            self.errors.invalid(path, value, str(error))
            return INVALID

    def _bytes(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            return self.mistyped(path, value, "base64 string")
        try:
            return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
        except (binascii.Error, ValueError):
            # Not shown: it may be a key.
            self.errors.add(path, "Invalid value: illegal base64 data")
            return INVALID


def type_name(annotation: Any) -> str:
    """What Kubernetes calls a type, for messages and for the reference page."""
    kind = _without_none(annotation)
    plain = _bare(kind)
    if plain is int:
        return "int32" if _bounds(kind)[1] < 2**32 else "int64"
    names = {str: "string", bool: "boolean", float: "number", bytes: "base64 string", Duration: "duration"}
    if get_origin(kind) is tuple:
        return f"array of {type_name(get_args(kind)[0])}"
    return names.get(plain, getattr(kind, "__name__", "object"))


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _without_none(annotation: Any) -> Any:
    """`X` for `X | None`, which is the only union that a field may have."""
    return get_args(annotation)[0] if get_origin(annotation) in (Union, types.UnionType) else annotation


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _bounds(kind: Any) -> tuple[int, int]:
    for extra in getattr(kind, "__metadata__", ()):
        if isinstance(extra, msgspec.Meta) and extra.ge is not None and extra.le is not None:
            return int(extra.ge), int(extra.le)
    return -(2**63), 2**63 - 1


def _unknown_field(name: str, fields: Mapping[str, FieldInfo]) -> str:
    return f'unknown field "{name}"{did_you_mean(name, fields)}'
