"""The flags of `kubesched run`, and how they become settings: those of kube-scheduler v1.36.4.

    @click.command("run", cls=FlagsCommand)
    @with_flags
    def run(given: GivenFlags) -> None:
        options = read_options(given)

Next: `flag_table` for all flags, `command` for how a command gets them, `read` for what becomes of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.live.options.command import FlagsCommand, GivenFlags, parse_flags, with_flags
    from kubesched.live.options.effective import configuration_yaml, write_configuration
    from kubesched.live.options.flag import FlagError
    from kubesched.live.options.read import read_options
    from kubesched.live.options.settings import LogSettings, MetricsSettings, RunOptions, shown_families
    from kubesched.scheduler.config.feature_gates import FeatureGates

__all__ = [
    "FeatureGates",
    "FlagError",
    "FlagsCommand",
    "GivenFlags",
    "LogSettings",
    "MetricsSettings",
    "RunOptions",
    "configuration_yaml",
    "parse_flags",
    "read_options",
    "shown_families",
    "with_flags",
    "write_configuration",
]

_HOMES = {
    "FeatureGates": "kubesched.scheduler.config.feature_gates",
    **dict.fromkeys(("FlagsCommand", "GivenFlags", "parse_flags", "with_flags"), f"{__name__}.command"),
    **dict.fromkeys(("configuration_yaml", "write_configuration"), f"{__name__}.effective"),
    "FlagError": f"{__name__}.flag",
    "read_options": f"{__name__}.read",
    **dict.fromkeys(("LogSettings", "MetricsSettings", "RunOptions", "shown_families"), f"{__name__}.settings"),
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, when it is asked for: flags are known long before all that they can mean."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
