"""A profile: a scheduler name, the plugins that run under it by extension point, and their arguments.

The plugins that a file names are merged with the default ones. At each extension point: default plugins in their order,
less those disabled, those named again replaced where they stand; then the others that the file enables. A plugin both
disabled and enabled so moves to the end: that is how to reorder.

Next: `plugin_args` for the arguments, `defaults` for the default plugins, `resolve` for the order in which they run.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubesched.scheduler.config.plugin_args import PluginArgs
from kubesched.scheduler.config.schema import Int32, SparseConfigStruct

EXTENSION_POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
)
"""Every point at which a plugin can run."""

MULTI_POINT: Final = "multiPoint"
"""Not a point of its own: a plugin enabled here runs at every point that it implements."""

WEIGHTED_POINTS: Final = frozenset({"score", "placementScore"})
"""The points where a plugin's weight counts."""


def interface_name(point: str) -> str:
    """What kube-scheduler's messages call a plugin of this point, such as `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"


ALL_PLUGINS = "*"
"""The name that, among the disabled plugins, stands for every plugin."""


class PluginRef(SparseConfigStruct, frozen=True):
    """A plugin by its name, with its weight."""

    name: str = ""
    """The plugin's name."""
    weight: Int32 = 0
    """How much its scores count; used at `score` and `placementScore` only. Absent or 0 counts as 1."""


class PluginSet(SparseConfigStruct, frozen=True):
    """The plugins of one extension point."""

    enabled: tuple[PluginRef, ...] = ()
    """Plugins to run in addition to the default ones; a default plugin named here keeps its place."""
    disabled: tuple[PluginRef, ...] = ()
    """Default plugins not to run; the name `*` stands for all of them. A plugin that is enabled as well runs."""


class Plugins(SparseConfigStruct, frozen=True):
    """The plugins of a profile, by extension point.

    What is said at a point itself goes before what is said at `multiPoint`, and that goes before the defaults.
    """

    pre_enqueue: PluginSet = PluginSet()
    """May hold a pod back before it enters the queue."""
    queue_sort: PluginSet = PluginSet()
    """Orders the queue. Exactly one plugin, the same in every profile."""
    pre_filter: PluginSet = PluginSet()
    """Looks at the pod once, before any node; may reject it or narrow the nodes down."""
    filter: PluginSet = PluginSet()
    """Rejects nodes that cannot run the pod."""
    post_filter: PluginSet = PluginSet()
    """Runs when no node is left; preemption is one of these."""
    pre_score: PluginSet = PluginSet()
    """Prepares for scoring."""
    score: PluginSet = PluginSet()
    """Ranks the nodes that are left; weights count."""
    reserve: PluginSet = PluginSet()
    """Takes note of resources that the pod will use on the chosen node, and gives them back on failure."""
    permit: PluginSet = PluginSet()
    """May delay or refuse the binding."""
    pre_bind: PluginSet = PluginSet()
    """Does what must be done before the pod is bound."""
    bind: PluginSet = PluginSet()
    """Binds the pod; the first plugin that does not pass on it decides. At least one plugin."""
    post_bind: PluginSet = PluginSet()
    """Told that the pod is bound."""
    multi_point: PluginSet = PluginSet()
    """Plugins that run at every point which they implement."""
    placement_generate: PluginSet = PluginSet()
    """Proposes placements for a pod group. At most one plugin."""
    placement_score: PluginSet = PluginSet()
    """Ranks placements of a pod group; weights count."""

    def at(self, point: str) -> PluginSet:
        """The set of an extension point, or of `multiPoint`, by its name in manifests."""
        found: PluginSet = getattr(self, _FIELD_OF_POINT[point])
        return found


_FIELD_OF_POINT = {field.encode_name: field.name for field in msgspec.structs.fields(Plugins)}


class PluginConfig(SparseConfigStruct, frozen=True):
    """The arguments of one plugin."""

    name: str = ""
    """The plugin's name."""
    args: PluginArgs | dict[str, Any] | None = None
    """Its arguments: for an in-tree plugin the kind `<name>Args` below, for any other a mapping passed on as it is."""


class KubeSchedulerProfile(SparseConfigStruct, frozen=True):
    """How pods that ask for one scheduler name are scheduled."""

    scheduler_name: str = ""
    """Pods with this `spec.schedulerName` use the profile. `default-scheduler` if there is only one profile."""
    percentage_of_nodes_to_score: Int32 | None = None
    """Overrides the field of the same name above, for this profile."""
    plugins: Plugins = Plugins()
    """Changes to the default plugins."""
    plugin_config: tuple[PluginConfig, ...] = ()
    """Arguments of plugins; a plugin without an entry uses its defaults."""


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
