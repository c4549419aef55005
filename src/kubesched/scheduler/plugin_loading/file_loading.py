"""Plugins from files: each file is run as a module of its own, as often as it is asked for.

A file is compiled from its text every time: a cached compilation could be older than what was saved a moment ago.

Next: `class_rules` for what is a plugin.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from kubesched.framework.extension_points import extension_points_of
from kubesched.scheduler.plugin_loading.class_rules import missing_of_a_plugin
from kubesched.scheduler.plugin_loading.outside_plugins import OutsidePlugins, plugins_from_classes
from kubesched.scheduler.plugin_loading.plugin_errors import line_of, plugin_error, told


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
