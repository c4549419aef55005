"""Which scheduler a command asks: a configuration of whatever age, and the version that shall decide.

Next: `kubesched.config.older.given`, which reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubesched.config import KubeSchedulerConfiguration
    from kubesched.config.older import Emulation, Generation
    from kubesched.config.older.given import GivenConfiguration

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
                self.fail(f"{pair!r} is not of the form Name=true or Name=false", param, ctx)
            found[name.strip()] = switch.lower() == "true"
        return found


def scheduler_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--config` and what stood in its place in older versions; the command gets them as one `scheduler`."""

    @click.option(
        "--config",
        "config_file",
        metavar="FILE",
        help="A KubeSchedulerConfiguration, v1 or older; - for standard input.",
    )
    @click.option("--policy-config-file", metavar="FILE", help="A Policy, as kube-scheduler read it until v1.22.")
    @click.option("--algorithm-provider", metavar="NAME", help="DefaultProvider or ClusterAutoscalerProvider.")
    @click.option(
        "--emulate",
        metavar="VERSION",
        help="Decide as this version did: 1.14, 1.17, 1.18 or 1.19. Without it, older configurations are translated "
        "into today's.",
    )
    @click.option("--feature-gates", type=GatePairs(), metavar="NAME=BOOL,...", help="Of the version to emulate.")
    @wraps(command)
    def with_scheduler(
        *args: Any,
        config_file: str | None,
        policy_config_file: str | None,
        algorithm_provider: str | None,
        emulate: str | None,
        feature_gates: dict[str, bool] | None,
        **others: Any,
    ) -> None:
        choice = SchedulerChoice(config_file, policy_config_file, algorithm_provider, emulate, feature_gates or {})
        command(*args, scheduler=choice, **others)

    return with_scheduler


@dataclass(frozen=True)
class ChosenScheduler:
    """What was read. `notes` say what became of an older configuration."""

    config: KubeSchedulerConfiguration
    emulation: Emulation | None = None
    source: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SchedulerChoice:
    """What was asked for on the command line."""

    config_file: str | None = None
    policy_file: str | None = None
    provider: str | None = None
    emulate: str | None = None
    feature_gates: dict[str, bool] = field(default_factory=dict)

    @property
    def reads_stdin(self) -> bool:
        return _STDIN in (self.config_file, self.policy_file)

    def generation(self) -> Generation | None:
        """The version to emulate; None for today's."""
        from kubesched.config.older import generation_of

        return None if self.emulate is None else generation_of(self.emulate)

    def given(self) -> GivenConfiguration:
        from kubesched.cli.files import read_bytes, source_name
        from kubesched.config.older.given import GivenConfiguration

        config, policy = (None if name is None else read_bytes(name) for name in (self.config_file, self.policy_file))
        return GivenConfiguration(
            config,
            policy,
            self.provider,
            self.feature_gates or None,
            config_source="" if self.config_file is None else source_name(self.config_file),
            policy_source="" if self.policy_file is None else source_name(self.policy_file),
        )

    def read(self) -> ChosenScheduler:
        """Raises `ConfigError`, and `InputError` for a file that cannot be read."""
        given, generation = self.given(), self.generation()
        if generation is not None:
            emulation = given.as_of(generation)
            return ChosenScheduler(emulation.config, emulation, given.config_source)
        converted = given.as_of_today()
        return ChosenScheduler(converted.config, None, given.config_source, converted.notes)
