"""Plugins from outside: files, installed packages, classes given to the library. Found, checked, and made into
factories that stand beside the in-tree ones.

Read in this order: `outside_plugins` (where plugin classes come from), `class_rules` (what they have to be like),
`construction` (how plugins are made), `checked_plugin` and `answers` (how they are kept from harming the loop),
`assembly` (what a scheduler is built from).
"""

from kubesched.scheduler.plugin_loading.assembly import (
    NO_OUTSIDE_PLUGINS,
    Assembly,
    PluginSource,
    WatchedFiles,
    assemble,
    check_no_emulation,
    plugin_files,
    with_plugins_on,
)
from kubesched.scheduler.plugin_loading.outside_plugins import (
    OutsidePlugins,
    installed_plugins,
    plugins_from_classes,
    plugins_from_files,
)

__all__ = [
    "NO_OUTSIDE_PLUGINS",
    "Assembly",
    "OutsidePlugins",
    "PluginSource",
    "WatchedFiles",
    "assemble",
    "check_no_emulation",
    "installed_plugins",
    "plugin_files",
    "plugins_from_classes",
    "plugins_from_files",
    "with_plugins_on",
]
