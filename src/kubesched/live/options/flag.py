"""What a flag is: its name, the kind of its value, its default, and what kubesched does about it.

Next: `value_kinds` for the kinds, `flag_table` for the flags themselves, `command` for how a command gets them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import click


class FlagError(click.UsageError):
    """A flag, or a value of it, cannot be used. The message names the flag; the exit code is 2."""

    @classmethod
    def of(cls, messages: list[str]) -> FlagError:
        """Several mistakes at once, in the form in which Kubernetes lists them."""
        return cls(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")


@dataclass(frozen=True, slots=True)
class FlagKind:
    """How the values of a flag are written."""

    name: str
    """What stands for the value in the help."""
    parse: Callable[[str], Any]
    """The value that a text stands for; raises `ValueError` with Go's words."""
    show: Callable[[Any], str]
    """A value as Go prints it."""
    is_list: bool = False
    """Whether a flag given twice adds to its values, which are a tuple. Else the last one counts."""
    if_bare: str | None = None
    """What a flag without a value means; None if it needs one."""


class FlagUse(Enum):
    USED = "used"
    WITHOUT_EFFECT = "no effect"
    """Accepted, such that the command line of a kube-scheduler works; a warning says why it changes nothing."""
    REFUSED = "refused"
    """Whoever gives it relies on something that is not there."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `default` is a value of the kind, not its text."""

    name: str
    kind: FlagKind
    default: Any
    help: str
    group: str = ""
    use: FlagUse = FlagUse.USED
    why: str = ""
    """Why it has no effect, or is refused."""
    fits: tuple[Any, ...] = ()
    """The values that ask for what kubesched does anyway, where that is not the default."""
    is_deprecated: bool = False
    yields_to_config: bool = False
    """Whether it is ignored when a configuration file is given."""

    @property
    def key(self) -> str:
        """Its name as click hands it to a function."""
        return self.name.replace("-", "_")

    @property
    def shown(self) -> str:
        return "-v, --v" if self.name == "v" else f"--{self.name}"

    def is_what_happens(self, value: Any) -> bool:
        return value in self.fits if self.fits else bool(value == self.default)

    def parse(self, text: str) -> Any:
        try:
            return self.kind.parse(text)
        except ValueError as problem:
            raise FlagError(f'invalid argument "{text}" for "{self.shown}" flag: {problem}') from None
