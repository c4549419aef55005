"""The flags of `kubesched run`, and how they become settings: those of kube-scheduler v1.36.4.

    @click.command("run", cls=FlagsCommand)
    @with_flags
    def run(given: GivenFlags) -> None:
        options = read_options(given)

Next: `flag_table` for all flags, `command` for how a command gets them, `read` for what becomes of them.
"""

from __future__ import annotations

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
