"""Which plugins run at each extension point, in which order, with which weights.

The configuration does not know the plugins; `capabilities` says of each plugin that exists which points it
implements. Precedence: what is enabled at a point itself, then `multiPoint`. At one point the order is:

1. plugins named at the point that `multiPoint` names too, as ordered at the point;
2. the other plugins of `multiPoint` that implement the point and are not disabled there;
3. the other plugins named at the point.

With `*` disabled at a point, `multiPoint` adds nothing to it.

Next: `configuration` for how the sets came about.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import msgspec

from kubesched.scheduler.config.configuration import (
    ALL_PLUGINS,
    EXTENSION_POINTS,
    MULTI_POINT,
    WEIGHTED_POINTS,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    Plugins,
    enabled_names,
    interface_name,
)
from kubesched.scheduler.config.errors import ConfigError, ErrorList
from kubesched.scheduler.config.plugin_args import NodeResourcesFitArgs, PluginArgs

Capabilities = Mapping[str, Set[str]]
"""The extension points that each plugin implements, by the plugin's name."""

_MAX_SCORE = 100
_MAX_TOTAL_SCORE = 2**63 - 1


class ResolvedPlugin(msgspec.Struct, frozen=True):
    """A plugin at one extension point. The weight is 0 where weights do not count."""

    name: str
    weight: int = 0


class ResolvedProfile(msgspec.Struct, frozen=True):
    """A profile, ready to be built."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    points: Mapping[str, tuple[ResolvedPlugin, ...]]
    """Every extension point with its plugins in order."""
    plugin_args: Mapping[str, PluginArgs | dict[str, Any] | None]
    """The arguments of every plugin that has some, by the plugin's name."""
    plugin_names: tuple[str, ...]
    """Every plugin that is enabled, even if no extension point runs it; sorted."""


def resolve_profiles(
    config: KubeSchedulerConfiguration, capabilities: Capabilities, source: str = ""
) -> tuple[ResolvedProfile, ...]:
    """All profiles of a configuration. Raises `ConfigError` with the validation errors of all of them."""
    errors = ErrorList()
    resolved = []
    for index, profile in enumerate(config.profiles):
        path = f"profiles[{index}]"
        found = _resolve(profile, capabilities, path, errors)
        if found is not None:
            resolved.append(_leave_resources_to_extenders(found, config, path, errors))
    if not errors:
        _check_same_queue_sort(resolved, errors)
    if errors:
        raise ConfigError(errors, source)
    return tuple(resolved)


def resolve(
    profile: KubeSchedulerProfile, capabilities: Capabilities, path: str = "profile", source: str = ""
) -> ResolvedProfile:
    """One profile, by itself. `path` is where it stands, for messages. Raises `ConfigError`."""
    errors = ErrorList()
    resolved = _resolve(profile, capabilities, path, errors)
    if resolved is None:
        raise ConfigError(errors, source)
    return resolved


def _resolve(
    profile: KubeSchedulerProfile, capabilities: Capabilities, path: str, errors: ErrorList
) -> ResolvedProfile | None:
    n_before = len(errors)
    _check_args_are_unique(profile, path, errors)
    _check_plugins_exist(profile.plugins, capabilities, f"{path}.plugins", errors)
    if len(errors) > n_before:
        return None
    expansion = _Expansion(profile.plugins, capabilities, f"{path}.plugins", errors)
    order = {point: expansion.names_at(point) for point in EXTENSION_POINTS}
    weights = {point: expansion.weights_at(point) for point in WEIGHTED_POINTS}
    if len(errors) == n_before:
        _check_counts(order, profile.scheduler_name, f"{path}.plugins", errors)
    if len(errors) > n_before:
        return None
    return ResolvedProfile(
        scheduler_name=profile.scheduler_name,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        points={
            point: tuple(ResolvedPlugin(name, weights[point][name] if point in weights else 0) for name in names)
            for point, names in order.items()
        },
        plugin_args={entry.name: entry.args for entry in profile.plugin_config},
        plugin_names=tuple(sorted(enabled_names(profile.plugins))),
    )


class _Expansion:
    """Spreads `multiPoint` over the extension points of one profile."""

    def __init__(self, plugins: Plugins, capabilities: Capabilities, path: str, errors: ErrorList) -> None:
        self._plugins = plugins
        self._capabilities = capabilities
        self._path = path
        self._errors = errors
        self._reported_twice: set[str] = set()

    def names_at(self, point: str) -> list[str]:
        own = self._own_names(point)
        disabled = {plugin.name for plugin in self._plugins.at(point).disabled}
        if ALL_PLUGINS in disabled:
            return own
        overridden: set[str] = set()
        added: list[str] = []
        for plugin in self._implementing(self._plugins.multi_point.enabled, point):
            if plugin.name in disabled:
                continue
            if plugin.name in own:
                overridden.add(plugin.name)
            elif plugin.name not in added:
                added.append(plugin.name)
            elif plugin.name not in self._reported_twice:
                # Once is enough: the plugin stands twice at every point which it implements.
                self._reported_twice.add(plugin.name)
                self._already_registered(plugin.name, point, f"{self._path}.{MULTI_POINT}")
        return [*(n for n in own if n in overridden), *added, *(n for n in own if n not in overridden)]

    def weights_at(self, point: str) -> dict[str, int]:
        """The weight of every plugin that could run there, the point's own word first."""
        weights: dict[str, int] = {}
        candidates = (*self._plugins.at(point).enabled, *self._plugins.multi_point.enabled)
        for plugin in self._implementing(candidates, point):
            weights.setdefault(plugin.name, plugin.weight or 1)
        if sum(weights.values()) * _MAX_SCORE > _MAX_TOTAL_SCORE:
            what = "score plugins" if point == "score" else "placement score plugins"
            self._errors.add(f"{self._path}.{point}", f"{what}: total score of Score plugins could overflow")
        return weights

    def _own_names(self, point: str) -> list[str]:
        """The plugins named at the point itself."""
        names: list[str] = []
        for plugin in self._plugins.at(point).enabled:
            if point not in self._capabilities[plugin.name]:
                message = f'plugin "{plugin.name}" does not extend {interface_name(point)} plugin'
                self._errors.add(f"{self._path}.{point}.enabled", message)
            elif plugin.name in names:
                self._already_registered(plugin.name, point, f"{self._path}.{point}")
            else:
                names.append(plugin.name)
        return names

    def _implementing(self, plugins: tuple[PluginRef, ...], point: str) -> list[PluginRef]:
        return [plugin for plugin in plugins if point in self._capabilities[plugin.name]]

    def _already_registered(self, name: str, point: str, path: str) -> None:
        self._errors.add(f"{path}.enabled", f'plugin "{name}" already registered as "{interface_name(point)}"')


# -- Checks ------------------------------------------------------------------------------------------------------------


def _check_args_are_unique(profile: KubeSchedulerProfile, path: str, errors: ErrorList) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(profile.plugin_config):
        if entry.name in seen:
            errors.add(f"{path}.pluginConfig[{index}]", f"repeated config for plugin {entry.name}")
        seen.add(entry.name)


def _check_plugins_exist(plugins: Plugins, capabilities: Capabilities, path: str, errors: ErrorList) -> None:
    known = ", ".join(sorted(capabilities))
    for point in (*EXTENSION_POINTS, MULTI_POINT):
        for plugin in plugins.at(point).enabled:
            if plugin.name not in capabilities:
                what = "Plugin" if point == MULTI_POINT else interface_name(point)
                message = f'{what} "{plugin.name}" does not exist; plugins that exist: {known}'
                errors.add(f"{path}.{point}.enabled", message)


def _check_counts(order: Mapping[str, list[str]], scheduler_name: str, path: str, errors: ErrorList) -> None:
    profile = f'for profile with scheduler name "{scheduler_name}"'
    if len(order["queueSort"]) != 1:
        found = len(order["queueSort"])
        errors.add(f"{path}.queueSort", f"only one queue sort plugin required {profile}, but got {found}")
    if not order["bind"]:
        errors.add(f"{path}.bind", f"at least one bind plugin is needed {profile}")
    if len(order["placementGenerate"]) > 1:
        errors.add(f"{path}.placementGenerate", f"at most one placement generate plugin is allowed {profile}")


def _check_same_queue_sort(profiles: list[ResolvedProfile], errors: ErrorList) -> None:
    """`load` compares what the profiles say; this compares what they come to."""
    if not profiles:
        return
    first = profiles[0].points["queueSort"][0].name
    for index, profile in enumerate(profiles):
        found, name = profile.points["queueSort"][0].name, profile.scheduler_name
        path = f"profiles[{index}].plugins.queueSort"
        if found != first:
            errors.add(path, f'different queue sort plugins for profile "{name}": "{found}", first: "{first}"')
        elif profile.plugin_args.get(found) != profiles[0].plugin_args.get(found):
            errors.add(path, f'different queue sort plugin args for profile "{name}"')


def _leave_resources_to_extenders(
    profile: ResolvedProfile, config: KubeSchedulerConfiguration, path: str, errors: ErrorList
) -> ResolvedProfile:
    """Resources that extenders keep from the scheduler take the place of the ignored ones of NodeResourcesFit."""
    ignored = tuple(
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return profile
    args = profile.plugin_args.get("NodeResourcesFit")
    if not isinstance(args, NodeResourcesFitArgs):
        errors.add(f"{path}.pluginConfig", "can't find NodeResourcesFitArgs in plugin config")
        return profile
    changed = {"NodeResourcesFit": msgspec.structs.replace(args, ignored_resources=ignored)}
    return msgspec.structs.replace(profile, plugin_args={**profile.plugin_args, **changed})
