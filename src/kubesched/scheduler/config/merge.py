"""How the plugins that a file names are merged with the default ones.

At each point: default plugins in their order, less those disabled, those named again replaced where they stand; then
the others that the file enables. A plugin both disabled and enabled so moves to the end: that is how to reorder.

Next: `defaults` for the default plugins, `resolve` for what becomes of the merged sets.
"""

from __future__ import annotations

import msgspec

from kubesched.scheduler.config.extension_points import EXTENSION_POINTS, MULTI_POINT
from kubesched.scheduler.config.profile import ALL_PLUGINS, PluginRef, Plugins, PluginSet


def merge_plugins(defaults: Plugins, custom: Plugins) -> Plugins:
    """The plugins of a profile: the default ones, changed as the file says."""
    merged = {
        field.name: merge_plugin_set(defaults.at(field.encode_name), custom.at(field.encode_name))
        for field in msgspec.structs.fields(Plugins)
    }
    return Plugins(**merged)


def merge_plugin_set(defaults: PluginSet, custom: PluginSet) -> PluginSet:
    # What is disabled stays on record: at a point of its own it also keeps multiPoint's plugins away.
    disabled = tuple(PluginRef(plugin.name) for plugin in (*custom.disabled, *defaults.disabled))
    disabled_names = {plugin.name for plugin in disabled}
    # Of a plugin named twice the later entry replaces the default one; `resolve` then refuses the other.
    replacement = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    kept = () if ALL_PLUGINS in disabled_names else defaults.enabled
    enabled = []
    used = set()
    for plugin in kept:
        if plugin.name in disabled_names:
            continue
        index = replacement.get(plugin.name)
        if index is None:
            enabled.append(plugin)
        else:
            enabled.append(custom.enabled[index])
            used.add(index)
    enabled.extend(plugin for index, plugin in enumerate(custom.enabled) if index not in used)
    return PluginSet(tuple(enabled), disabled)


def enabled_names(plugins: Plugins) -> set[str]:
    """Every plugin that is enabled anywhere."""
    return {plugin.name for point in (*EXTENSION_POINTS, MULTI_POINT) for plugin in plugins.at(point).enabled}
