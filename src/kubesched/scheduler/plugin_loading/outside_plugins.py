"""A set of plugin classes that are not in-tree, wherever they come from.

Next: `file_loading` and `entry_points` for where, `assembly` for what a scheduler is built from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kubesched.framework.registry import Registry
from kubesched.scheduler.plugin_loading.checked_plugin import OutsideFactory
from kubesched.scheduler.plugin_loading.class_rules import check_class
from kubesched.scheduler.plugin_loading.plugin_errors import plugin_error
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
