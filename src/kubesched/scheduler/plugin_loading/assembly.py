"""What a scheduler is built from: a configuration with outside plugins enabled in it, and a registry that has them.

The configuration decides over every plugin that it mentions by name. Plugins that are to be enabled and are not
mentioned run in every profile, at all extension points that they implement, after the in-tree ones; but one that binds
goes before the default binder, which leaves nothing to those after it, and one that sorts the queue replaces the
default. A `PluginSource` remembers where they come from, so that they can be read again when their files change.

Next: `kubesched.scheduler.build`, and `kubesched.scheduler.build` for what becomes of changed files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from kubesched.framework.extension_points import extension_points_of
from kubesched.framework.handle import Registry
from kubesched.scheduler.config import (
    ConfigError,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    PluginSet,
)
from kubesched.scheduler.config.configuration import ALL_PLUGINS, EXTENSION_POINTS, MULTI_POINT, Plugins, enabled_names
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.plugin_loading.class_rules import plugin_error
from kubesched.scheduler.plugin_loading.construction import decode_args
from kubesched.scheduler.plugin_loading.outside_plugins import OutsidePlugins, installed_plugins, plugins_from_files
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


Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class PluginSource:
    """A configuration, before plugins are switched on in it, and the files of those that are to be."""

    config: KubeSchedulerConfiguration
    source: str = ""
    """The configuration's file."""
    files: Sequence[str | Path] = ()

    def paths(self) -> list[Path]:
        """All files that plugins are read from."""
        return [*map(Path, self.files), *plugin_files(self.config, self.source)]

    def read(self) -> Assembly:
        """Raises `ConfigError`."""
        return assemble(self.config, self.source, files=self.files)


class WatchedFiles:
    """Sees by their stamps which files changed since it looked last."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._stamps = {path: _stamp(path) for path in paths}

    def changed(self) -> list[Path]:
        now = {path: _stamp(path) for path in self._stamps}
        found = [path for path, stamp in now.items() if stamp != self._stamps[path]]
        self._stamps = now
        return found


def _stamp(path: Path) -> Stamp | None:
    """None where there is no such file, as for a moment while an editor saves it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
