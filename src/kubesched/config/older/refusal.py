"""A configuration that an older scheduler refused to start with, in its own words."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.config.errors import ConfigError, FieldError


class RefusedConfigurationError(ConfigError):
    """`text` is what the scheduler of that time said."""

    def __init__(self, text: str) -> None:
        super().__init__([FieldError("", text)])
        self.text = text

    def __reduce__(self) -> tuple[type[RefusedConfigurationError], tuple[str]]:
        return type(self), (self.text,)


def refuse_policy(problems: Sequence[str]) -> RefusedConfigurationError:
    """Several problems stand in brackets, each once."""
    distinct = list(dict.fromkeys(problems))
    text = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    return RefusedConfigurationError(f"couldn't create scheduler from policy: {text}")


def refuse_profile(scheduler_name: str, problem: str) -> RefusedConfigurationError:
    where = f"initializing profiles: creating profile for scheduler name {scheduler_name}"
    return refuse_policy([f"{where}: {problem}"])
