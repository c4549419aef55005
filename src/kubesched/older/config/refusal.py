"""A configuration that an older scheduler refused to start with, in its own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.older.config.generations import Generation
from kubesched.scheduler.config.errors import ConfigError, FieldError


class RefusedConfigurationError(ConfigError):
    """`text` is what the scheduler of that time said: what it ended with, where it ended on the spot."""

    def __init__(self, text: str) -> None:
        super().__init__([FieldError("", text)])
        self.text = text

    def __reduce__(self) -> tuple[type[RefusedConfigurationError], tuple[str]]:
        return type(self), (self.text,)


@dataclass(frozen=True)
class Refusals:
    """How the scheduler of a version puts its errors. `provider` is None where a Policy configures it."""

    generation: Generation
    provider: str | None = None

    def scheduler(self, problems: Sequence[str]) -> RefusedConfigurationError:
        """It could not be created. Several problems stand in brackets."""
        told = list(problems if self.generation.repeats_problems else dict.fromkeys(problems))
        text = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
        source = "from policy" if self.provider is None else f'using provider "{self.provider}"'
        return RefusedConfigurationError(f"couldn't create scheduler {source}: {text}")

    def profiles(self, problem: str) -> RefusedConfigurationError:
        return self.scheduler([f"initializing profiles: {problem}"])

    def framework(self, scheduler_name: str, problem: str) -> RefusedConfigurationError:
        """Its plugins could not be put together; before there were profiles, it ended with that."""
        if self.generation.registers_functions:
            return RefusedConfigurationError(f"error initializing the scheduling framework: {problem}")
        return self.profiles(f"creating profile for scheduler name {scheduler_name}: {problem}")

    def unknown_provider(self) -> RefusedConfigurationError:
        return self.scheduler([self.generation.unknown_provider.format(provider=self.provider)])
