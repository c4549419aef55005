"""Plugin classes that are not in-tree: given to the library, loaded from files, or installed as packages.

A file is run as a module of its own, compiled from its text every time: a cached compilation could be older than what
was saved a moment ago. A package lists its plugins in its entry points:

    [project.entry-points."kubesched.plugins"]
    QuietHours = "quiet_hours.plugin:QuietHours"

Those are known by being installed, and run only where a configuration enables them.

Next: `class_rules` for what is a plugin, `assembly` for what a scheduler is built from.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from kubesched.framework.extension_points import extension_points_of
from kubesched.framework.handle import Registry
from kubesched.scheduler.plugin_loading.checked_plugin import OutsideFactory
from kubesched.scheduler.plugin_loading.class_rules import check_class, line_of, missing_of_a_plugin, plugin_error, told
from kubesched.scheduler.plugins.registry import REGISTRY

_OURSELVES = "kubesched itself"


@dataclass(frozen=True)
class OutsidePlugins:
    """Classes by plugin name. `a | b` has the plugins of both; a name that both have is an error."""

    classes: Mapping[str, type] = field(default_factory=dict)
    enabled: frozenset[str] = frozenset()
    """Those that are switched on where the configuration does not mention them."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """By plugin name: the file, class or distribution it comes from."""

    def __or__(self, other: OutsidePlugins) -> OutsidePlugins:
        for name in sorted(self.classes.keys() & other.classes.keys()):
            raise _clash(name, other.origin_of(name), self.origin_of(name))
        return OutsidePlugins(
            {**self.classes, **other.classes}, self.enabled | other.enabled, {**self.origins, **other.origins}
        )

    def registry(self) -> Registry:
        """The in-tree plugins and these. Raises `ConfigError` if one has the name of an in-tree plugin."""
        for name in self.classes.keys() & REGISTRY.keys():
            raise _clash(name, self.origin_of(name), _OURSELVES)
        return REGISTRY.merged_with(
            {name: OutsideFactory(plugin, self.origin_of(name)) for name, plugin in self.classes.items()}
        )

    def origin_of(self, name: str) -> str:
        return self.origins.get(name) or f"{self.classes[name].__module__}.{self.classes[name].__qualname__}"


def plugins_from_classes(classes: Iterable[type], *, enable: bool = True, origin: str = "") -> OutsidePlugins:
    """`origin` names where the classes come from, if they cannot tell themselves. Raises `ConfigError`."""
    found = OutsidePlugins()
    if isinstance(classes, type) or not isinstance(classes, Iterable):
        raise plugin_error(origin or "plugins", f"a list of classes is expected, not {classes!r}")
    for plugin in classes:
        if not isinstance(plugin, type):
            raise plugin_error(origin or repr(plugin), f"a plugin is given as its class, not as {plugin!r}")
        own = origin or f"{plugin.__module__}.{plugin.__qualname__}"
        check_class(plugin, own)
        name: str = plugin.name  # type: ignore[attr-defined]
        if name in REGISTRY:
            raise _clash(name, own, _OURSELVES)
        found |= OutsidePlugins({name: plugin}, frozenset({name} if enable else ()), {name: own})
    return found


def _clash(name: str, origin: str, other: str) -> Exception:
    where = "twice in it" if origin == other else f"also in {other}"
    return plugin_error(origin, f"the plugin {name} is {where}: a name stands for one plugin only")


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


def plugins_from_files(paths: Iterable[str | Path], *, enable: bool) -> OutsidePlugins:
    """The plugins that these files define; what they import from elsewhere is left out. Raises `ConfigError`."""
    found = OutsidePlugins()
    for path in paths:
        found |= _plugins_of(str(path), enable)
    return found


def _plugins_of(path: str, enable: bool) -> OutsidePlugins:
    module = _run(path)
    own = [item for item in vars(module).values() if isinstance(item, type) and item.__module__ == module.__name__]
    own = list(dict.fromkeys(own))
    plugins = [item for item in own if not missing_of_a_plugin(item)]
    for item in own:
        if _was_meant_to_be_one(item, own):
            raise plugin_error(path, missing_of_a_plugin(item), item.__qualname__)
    if not plugins:
        almost = "; ".join(f"class {item.__qualname__} {missing_of_a_plugin(item)}" for item in own)
        raise plugin_error(path, f"no plugin in it{': ' if almost else ''}{almost}")
    return plugins_from_classes(plugins, enable=enable, origin=path)


def _was_meant_to_be_one(item: type, others: list[type]) -> bool:
    """A class with an extension point but without a name, of which no other inherits."""
    if not missing_of_a_plugin(item) or not extension_points_of(item) or item.__name__.startswith("_"):
        return False
    return not getattr(item, "_is_protocol", False) and not any(
        issubclass(other, item) for other in others if other is not item
    )


def _run(path: str) -> ModuleType:
    try:
        text = Path(path).read_bytes()
    except OSError as problem:
        raise plugin_error(path, problem.strerror or str(problem)) from None
    module = ModuleType(f"kubesched_plugin_{sha256(str(Path(path).resolve()).encode()).hexdigest()[:12]}")
    module.__file__ = path
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module  # dataclasses look for their module there
    try:
        exec(compile(text, path, "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as bug:
        if before is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = before
        raise plugin_error(path, told(bug), line_of(bug, path)) from bug
    return module
