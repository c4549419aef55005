"""Which scheduler a command asks: a configuration of any age, the version that shall decide, plugins from outside.

Options that several commands share, `--no-class-cache` among them.

Next: `kubesched.older.config.emulation` and `kubesched.scheduler.plugin_loading`, which read them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubesched.framework.handle import Registry
    from kubesched.older.config import Emulation, Generation
    from kubesched.older.config.emulation import GivenConfiguration
    from kubesched.scheduler.config import KubeSchedulerConfiguration

_STDIN = "-"


class GatePairs(click.ParamType[dict[str, bool]]):
    """`Name=true,Other=false`, as kube-scheduler's flag has it."""

    name = "gates"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, bool]:
        if isinstance(value, dict):
            return value
        found: dict[str, bool] = {}
        for pair in filter(None, str(value).split(",")):
            name, _, switch = pair.partition("=")
            if switch.lower() not in ("true", "false"):
                self.fail(f"{pair!r} must have the form Name=true or Name=false", param, ctx)
            found[name.strip()] = switch.lower() == "true"
        return found


plugin_option = click.option(
    "--plugin",
    "plugin_files",
    multiple=True,
    metavar="FILE",
    help="A Python file with plugins; they are enabled unless the configuration mentions them. Repeatable.",
)


def scheduler_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--config` and what stood in its place in older versions; the command gets them as one `scheduler`."""

    @click.option(
        "--config",
        "config_file",
        metavar="FILE",
        help="A KubeSchedulerConfiguration, v1 or older; - for standard input.",
    )
    @click.option("--policy-config-file", metavar="FILE", help="A Policy file, as kube-scheduler accepted until v1.22.")
    @click.option("--algorithm-provider", metavar="NAME", help="DefaultProvider or ClusterAutoscalerProvider.")
    @click.option(
        "--emulate",
        metavar="VERSION",
        help="Decide as another version: 1.13, 1.14, 1.17, 1.18, 1.19, 1.37 (its release candidate) or 1.36-alpha "
        "(v1.36 with its pod group bugs). Without it, older configurations are converted to v1.",
    )
    @plugin_option
    @click.option(
        "--feature-gates",
        type=GatePairs(),
        metavar="NAME=BOOL,...",
        help="Feature gates to set: GenericWorkload=true.",
    )
    @wraps(command)
    def with_scheduler(
        *args: Any,
        config_file: str | None,
        policy_config_file: str | None,
        algorithm_provider: str | None,
        emulate: str | None,
        feature_gates: dict[str, bool] | None,
        plugin_files: tuple[str, ...],
        **others: Any,
    ) -> None:
        choice = SchedulerChoice(
            config_file, policy_config_file, algorithm_provider, emulate, feature_gates or {}, plugin_files
        )
        command(*args, scheduler=choice, **others)

    return with_scheduler


@dataclass(frozen=True)
class ChosenScheduler:
    """What was read. `notes` say what became of an older configuration."""

    config: KubeSchedulerConfiguration
    emulation: Emulation | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    registry: Registry | None = None
    """All plugins; None: those of the emulated version."""


@dataclass(frozen=True)
class SchedulerChoice:
    """What was asked for on the command line."""

    config_file: str | None = None
    policy_file: str | None = None
    provider: str | None = None
    emulate: str | None = None
    feature_gates: dict[str, bool] = field(default_factory=dict)
    plugin_files: tuple[str, ...] = ()

    @property
    def reads_stdin(self) -> bool:
        return _STDIN in (self.config_file, self.policy_file)

    def generation(self) -> Generation | None:
        """The older version to emulate; None for today's, and for those that have its configuration."""
        from kubesched.older.config import generation_of

        return None if self.emulate is None else generation_of(self.emulate)

    def given(self) -> GivenConfiguration:
        from kubesched.cli.files import read_bytes, source_name
        from kubesched.older.config import PolicyFile
        from kubesched.older.config.emulation import GivenConfiguration

        config, policy = (None if name is None else read_bytes(name) for name in (self.config_file, self.policy_file))
        given = GivenConfiguration(
            config,
            policy,
            self.provider,
            self.feature_gates or None,
            config_source="" if self.config_file is None else source_name(self.config_file),
            policy_source="" if self.policy_file is None else source_name(self.policy_file),
            reference=None if self.policy_file is None else PolicyFile(source_name(self.policy_file)),
            emulate=self.emulate,
        )
        return given if self.generation() is None or policy is not None else self._with_named_policy(given)

    def _with_named_policy(self, given: GivenConfiguration) -> GivenConfiguration:
        """With the Policy whose file the configuration names, as configurations of that time could."""
        from kubesched.cli.files import read_bytes
        from kubesched.older.config import PolicyFile
        from kubesched.scheduler.config import ConfigError
        from kubesched.scheduler.config.errors import FieldError

        reference = given.policy_reference()
        if reference is None:
            return given
        if not isinstance(reference, PolicyFile):
            text = f"{reference} is in a cluster: pass the Policy with --policy-config-file"
            raise ConfigError([FieldError("algorithmSource.policy.configMap", text)], given.config_source)
        return replace(given, policy=read_bytes(reference.path), policy_source=reference.path, reference=reference)

    def read(self) -> ChosenScheduler:
        """Raises `ConfigError`, and `InputError` for a file that cannot be read."""
        given, generation = self.given(), self.generation()
        if generation is not None:
            self.check_emulation()
            emulation = given.as_of(generation)
            return ChosenScheduler(emulation.config, emulation, given.config_source)
        return self.of_today(given)

    def of_today(self, given: GivenConfiguration) -> ChosenScheduler:
        """What was given, in today's form, with the plugins that it asks for. Raises `ConfigError`."""
        from kubesched.scheduler.plugin_loading import assemble

        converted = given.as_of_today()
        assembled = assemble(converted.config, given.config_source, files=self.plugin_files)
        return ChosenScheduler(
            assembled.config, None, given.config_source, converted.notes, registry=assembled.registry
        )

    def check_emulation(self) -> None:
        """Raises `ConfigError` if plugins are given to a version that knows none of them."""
        from kubesched.scheduler.plugin_loading import check_no_emulation

        check_no_emulation(bool(self.plugin_files), self.generation())

    def files(self) -> list[Path]:
        """All files that it is read from; if the configuration cannot be read, without those that it names."""
        from kubesched.cli.files import InputError
        from kubesched.scheduler.config import ConfigError
        from kubesched.scheduler.plugin_loading import plugin_files

        named = (self.config_file, self.policy_file, *self.plugin_files)
        found = [Path(name) for name in named if name not in (None, _STDIN)]
        with suppress(ConfigError, InputError):
            given = self.given()
            found += plugin_files(given.as_of_today().config, given.config_source)
        return found


_CLASS_CACHE_HELP = "Evaluate every pod from scratch: slower, same results."


def class_cache_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--no-class-cache", is_flag=True, help=_CLASS_CACHE_HELP)(command)
