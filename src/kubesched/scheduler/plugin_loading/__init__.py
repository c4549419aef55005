"""Plugins from outside: files, installed packages, classes given to the library. Found, checked, and made into
factories that stand beside the in-tree ones.

Read in this order: `outside_plugins` (a set of plugins), `file_loading` and `entry_points` (where they come from),
`class_rules` (what they have to be like), `args_decoding` and `construction` (how they are made), `checked_plugin`,
`guards` and `answers` (how they are kept from harming the loop), `assembly` (what a scheduler is built from),
`plugin_source` (how they are read again).
"""

from kubesched.scheduler.plugin_loading.assembly import (
    NO_OUTSIDE_PLUGINS,
    Assembly,
    assemble,
    check_no_emulation,
    plugin_files,
    with_plugins_on,
)
from kubesched.scheduler.plugin_loading.entry_points import installed_plugins
from kubesched.scheduler.plugin_loading.file_loading import plugins_from_files
from kubesched.scheduler.plugin_loading.outside_plugins import OutsidePlugins, plugins_from_classes
from kubesched.scheduler.plugin_loading.plugin_source import PluginSource, WatchedFiles

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
