"""Plugins of installed packages: those that a distribution lists in its entry points, under this group.

    [project.entry-points."kubesched.plugins"]
    QuietHours = "quiet_hours.plugin:QuietHours"

They are known by being installed, and run only where a configuration enables them.

Next: `outside_plugins`.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points

from kubesched.scheduler.plugin_loading.outside_plugins import OutsidePlugins, plugins_from_classes
from kubesched.scheduler.plugin_loading.plugin_errors import plugin_error, told

GROUP = "kubesched.plugins"


def installed_plugins(names: Collection[str] | None = None) -> OutsidePlugins:
    """All of them, or those of these names: others are not imported then. Raises `ConfigError`."""
    found = OutsidePlugins()
    for entry in entry_points(group=GROUP):
        if names is None or entry.name in names:
            found |= _plugin_of(entry)
    return found


def _plugin_of(entry: EntryPoint) -> OutsidePlugins:
    origin = f"{entry.dist.name if entry.dist is not None else entry.value} ({GROUP}: {entry.name})"
    try:
        plugin = entry.load()
    except (Exception, SystemExit) as bug:
        raise plugin_error(origin, told(bug), entry.value) from bug
    if not isinstance(plugin, type):
        raise plugin_error(origin, "is not a class", entry.value)
    own_name = getattr(plugin, "name", None)
    if isinstance(own_name, str) and own_name != entry.name:
        raise plugin_error(
            origin, f"the plugin is called {own_name}: entry point and plugin need the same name", entry.value
        )
    return plugins_from_classes([plugin], enable=False, origin=origin)
