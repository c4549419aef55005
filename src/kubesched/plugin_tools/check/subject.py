"""What is tried: a plugin's factory, its arguments, and the words it knows.

A new plugin is made for every trial, with arguments of its own: nothing that one trial does reaches the next. Plugins
from outside are tried as the engine sees them, with the checks of `kubesched.scheduler.plugin_loading` in front.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubesched.framework import Handle, PluginFactory
from kubesched.framework.extension_points import Plugin
from kubesched.plugin_tools.check.words import Words, words_of
from kubesched.scheduler.plugin_loading.checked_plugin import OutsidePlugin
from kubesched.scheduler.plugin_loading.construction import construct, decoded_args
from kubesched.scheduler.plugin_loading.outside_plugins import OutsidePlugins, plugins_from_classes
from kubesched.scheduler.plugins.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Subject:
    name: str
    factory: PluginFactory
    plugin_class: type
    args: object = None
    words: Words = field(default_factory=Words)
    origin: str = ""
    """The file, for reports; empty if it is in-tree."""
    reload_args: Any = None
    """What the configuration has for it: another Python makes the same plugin from the origin and this."""
    can_reload: bool = False

    def made(self, handle: Handle) -> tuple[Plugin, object]:
        """A new plugin, and the arguments it was given."""
        args = deepcopy(self.args)
        return self.factory(args, handle), args


def in_tree_subject(name: str, args: object = None) -> Subject:
    factory = REGISTRY[name]
    assert isinstance(factory, type)
    return Subject(name, factory, factory, args, _words(factory, args))


def subject_of(plugin_class: type, args: Any = None) -> Subject:
    """A plugin given as its class; `args` as the configuration would have them. Raises `ConfigError`."""
    (subject,) = outside_subjects(plugins_from_classes([plugin_class]), lambda _name: args)
    return subject


def outside_subjects(outside: OutsidePlugins, args_of: Any, *, from_files: bool = False) -> list[Subject]:
    """All plugins of the set; `args_of` gives what the configuration has for a plugin's name."""
    return [
        _outside(name, outside.classes[name], outside.origins[name], args_of(name), from_files=from_files)
        for name in outside.classes
    ]


def _outside(name: str, plugin_class: type, origin: str, args: Any, *, from_files: bool) -> Subject:
    decoded = decoded_args(plugin_class, args, origin)

    def factory(own_args: Any, handle: Handle) -> Plugin:
        made: Plugin = OutsidePlugin(construct(plugin_class, own_args, handle, origin), origin)
        return made

    words = _words(plugin_class, decoded, origin if from_files else "")
    return Subject(name, factory, plugin_class, decoded, words, origin, args, from_files)


def _words(plugin_class: type, args: object, file: str = "") -> Words:
    try:
        found = file or inspect.getsourcefile(plugin_class) or ""
        source = Path(found).read_text(encoding="utf-8")
    except (OSError, TypeError, UnicodeDecodeError):
        source = ""
    return words_of(source, plugin_class.__name__, args)
