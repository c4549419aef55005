"""Plugins by name. The in-tree table is `kubesched.scheduler.plugins.registry`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubesched.framework.extension_points import Plugin
from kubesched.framework.handle import Handle

PluginFactory = Callable[[Any, Handle], Plugin]
"""(validated arguments or None, handle) -> plugin. A class whose constructor takes these two is one."""


class DuplicatePluginError(ValueError):
    """Two plugins want the same name."""


class Registry(Mapping[str, PluginFactory]):
    """A visible table of factories; a name stands for one plugin only."""

    def __init__(self, factories: Mapping[str, PluginFactory] | None = None) -> None:
        self._factories: dict[str, PluginFactory] = dict(factories or {})

    def __getitem__(self, name: str) -> PluginFactory:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)

    def merged_with(self, others: Mapping[str, PluginFactory]) -> Registry:
        twice = sorted(self._factories.keys() & others.keys())
        if twice:
            raise DuplicatePluginError(f"a plugin named {twice[0]} already exists")
        return Registry({**self._factories, **others})
