"""What a scheduler is built from: a configuration in which outside plugins have their place, and the registry that
knows them.

The configuration decides over every plugin that it mentions by name. Plugins that are to be switched on and are not
mentioned run in every profile, at all extension points that they have, after the in-tree ones; but one that binds goes
before the default binder, which leaves nothing to those after it, and one that sorts the queue takes the place of the
default.

Next: `kubesched.scheduler.build`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from kubesched.framework.extension_points import extension_points_of
from kubesched.framework.registry import Registry
from kubesched.scheduler.config import (
    ConfigError,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    PluginSet,
)
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.extension_points import EXTENSION_POINTS, MULTI_POINT
from kubesched.scheduler.config.merge import enabled_names
from kubesched.scheduler.config.profile import ALL_PLUGINS, Plugins
from kubesched.scheduler.plugin_loading.args_decoding import decode_args
from kubesched.scheduler.plugin_loading.entry_points import installed_plugins
from kubesched.scheduler.plugin_loading.file_loading import plugins_from_files
from kubesched.scheduler.plugin_loading.outside_plugins import OutsidePlugins
from kubesched.scheduler.plugin_loading.plugin_errors import plugin_error
from kubesched.scheduler.plugins.registry import REGISTRY

NO_OUTSIDE_PLUGINS = OutsidePlugins()


@dataclass(frozen=True)
class Assembly:
    """Goes into `build_schedulers` or `build_loop`."""

    config: KubeSchedulerConfiguration
    registry: Registry
    outside: OutsidePlugins = NO_OUTSIDE_PLUGINS


def check_no_emulation(outside: bool, emulate: object) -> None:
    """An older scheduler knows no plugins but its own. Raises `ConfigError`."""
    if outside and emulate is not None:
        raise plugin_error("", "plugins of your own run in today's scheduler only: give either them or --emulate")


def plugin_files(config: KubeSchedulerConfiguration, source: str) -> list[Path]:
    """The files that `pluginPaths` names, as seen from the configuration's file."""
    return [Path(source).parent / path for path in config.plugin_paths]


def assemble(
    config: KubeSchedulerConfiguration,
    source: str = "",
    *,
    files: Sequence[str | Path] = (),
    given: OutsidePlugins = NO_OUTSIDE_PLUGINS,
) -> Assembly:
    """`files` are of plugins to switch on, `given` are others. Raises `ConfigError`."""
    outside = given | plugins_from_files(files, enable=True)
    already = {Path(path).resolve() for path in files}
    named = [path for path in plugin_files(config, source) if path.resolve() not in already]
    outside |= plugins_from_files(dict.fromkeys(named), enable=False)
    unknown = _mentioned(config, with_args=True) - REGISTRY.keys() - outside.classes.keys()
    if unknown:
        outside |= installed_plugins(unknown)
    if not outside.classes:
        return Assembly(config, REGISTRY)
    config = with_plugins_on(config, outside)
    _check_args(config, outside, source)
    return Assembly(config, outside.registry(), outside)


def with_plugins_on(config: KubeSchedulerConfiguration, outside: OutsidePlugins) -> KubeSchedulerConfiguration:
    """The configuration in which the plugins that are to be switched on are."""
    silent = outside.enabled - _mentioned(config)
    classes = {name: plugin for name, plugin in outside.classes.items() if name in silent}
    if not classes:
        return config
    return replace(config, profiles=tuple(_with_plugins(profile, classes) for profile in config.profiles))


def _with_plugins(profile: KubeSchedulerProfile, classes: dict[str, type]) -> KubeSchedulerProfile:
    plugins = profile.plugins
    refs = {name: PluginRef(name, getattr(plugin, "default_weight", 1)) for name, plugin in classes.items()}
    everywhere = replace(plugins.multi_point, enabled=(*plugins.multi_point.enabled, *refs.values()))
    binding = tuple(ref for name, ref in refs.items() if "bind" in extension_points_of(classes[name]))
    sorting = tuple(ref for name, ref in refs.items() if "queueSort" in extension_points_of(classes[name]))
    plugins = replace(
        plugins,
        multi_point=everywhere,
        bind=replace(plugins.bind, enabled=(*binding, *plugins.bind.enabled)),
        queue_sort=_sorted_by(sorting, plugins),
    )
    return replace(profile, plugins=plugins)


def _sorted_by(sorting: tuple[PluginRef, ...], plugins: Plugins) -> PluginSet:
    if not sorting or plugins.queue_sort.enabled:
        return plugins.queue_sort
    return PluginSet(sorting, (*plugins.queue_sort.disabled, PluginRef(ALL_PLUGINS)))


def _mentioned(config: KubeSchedulerConfiguration, *, with_args: bool = False) -> set[str]:
    """Every name of a plugin that is enabled or disabled somewhere, or (`with_args`) has arguments."""
    found = set()
    for profile in config.profiles:
        found |= enabled_names(profile.plugins)
        for point in (*EXTENSION_POINTS, MULTI_POINT):
            found.update(ref.name for ref in profile.plugins.at(point).disabled)
        if with_args:
            found.update(entry.name for entry in profile.plugin_config)
    return found - {ALL_PLUGINS}


def _check_args(config: KubeSchedulerConfiguration, outside: OutsidePlugins, source: str) -> None:
    """All validation errors in the arguments of outside plugins, at once."""
    errors = ErrorList()
    for position, profile in enumerate(config.profiles):
        path = f"profiles[{position}].pluginConfig"
        with_args = {entry.name: index for index, entry in enumerate(profile.plugin_config)}
        for name, plugin in outside.classes.items():
            if name in with_args:
                index = with_args[name]
                decode_args(plugin, profile.plugin_config[index].args, f"{path}[{index}].args", errors)
            elif name in enabled_names(profile.plugins):
                own = ErrorList()
                decode_args(plugin, None, "args", own)
                for error in own:
                    errors.add(path, f'plugin "{name}" has no entry here, and {error}')
    if errors:
        raise ConfigError(errors, source)
