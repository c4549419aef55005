"""Decoding one entry of `pluginConfig`: the plugin's name decides what its arguments are.

Arguments of an in-tree plugin become the struct of their kind; they may say `apiVersion` and `kind`, which then must
be right. Arguments of any other plugin pass through as a mapping.

Next: `decode` for the rest of the decoding, `plugin_args` for the kinds.
"""

from __future__ import annotations

from typing import Any

from kubesched.scheduler.config.decode import StrictDecoder
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.plugin_args import ARGS_BY_PLUGIN
from kubesched.scheduler.config.profile import PluginConfig
from kubesched.scheduler.config.schema import API_VERSION
from kubesched.scheduler.config.source import join

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
