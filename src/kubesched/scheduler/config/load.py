"""From a file, or a mapping, to a configuration that can be used: decoded, defaulted, validated.

`load` either returns a configuration that keeps every rule of kube-scheduler v1.36 that can be checked without knowing
the plugins, or raises `ConfigError` with every validation error. It reads no file: the caller hands the content in.

Next: `decode`, `defaults` and `validation`, in this order; then `resolve`.
"""

from __future__ import annotations

from typing import Any

from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration
from kubesched.scheduler.config.decode import StrictDecoder, join, parse
from kubesched.scheduler.config.defaults import DEFAULT_SCHEDULER_NAME, set_defaults
from kubesched.scheduler.config.errors import ConfigError, ErrorList
from kubesched.scheduler.config.plugin_args import ARGS_BY_PLUGIN
from kubesched.scheduler.config.profile import PluginConfig
from kubesched.scheduler.config.schema import API_VERSION
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
