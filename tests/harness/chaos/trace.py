"""What happened in a run, as text that can be run again: options in the first line, then one step a line.

    options seed=7 strict=1 permit=0
    node n0 cpu=4
    pod p0 cpu=2 priority=5
    schedule
    land bind/p0

A step is a verb, names, and settings. A step that makes no sense where it stands (its pod is gone, its request was
never sent) does nothing: so any part of a trace is a trace, which is what makes shrinking one possible.

Next: `steps` for what the verbs do, `shrink` for how a trace gets short.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

_OPTIONS = "options"


class TraceError(ValueError):
    """A line that is no step."""


@dataclass(frozen=True, slots=True)
class ChaosStep:
    verb: str
    names: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(verb: str, *names: str, **settings: object) -> ChaosStep:
        return ChaosStep(verb, names, tuple((key, str(value)) for key, value in settings.items()))

    def get(self, setting: str, otherwise: str = "") -> str:
        return next((value for key, value in self.settings if key == setting), otherwise)

    def number(self, setting: str, otherwise: int = 0) -> int:
        return int(self.get(setting, str(otherwise)))

    def without(self, setting: str) -> ChaosStep:
        return ChaosStep(self.verb, self.names, tuple(pair for pair in self.settings if pair[0] != setting))

    def __str__(self) -> str:
        return " ".join((self.verb, *self.names, *(f"{key}={value}" for key, value in self.settings)))


@dataclass(frozen=True, slots=True)
class ChaosTrace:
    """`options` belong to the run as a whole; see `simulation`."""

    options: ChaosStep
    steps: tuple[ChaosStep, ...] = field(default=())

    def __str__(self) -> str:
        return "\n".join(map(str, (self.options, *self.steps))) + "\n"


def parse_trace(text: str) -> ChaosTrace:
    """Empty lines and lines that begin with # are left out."""
    lines = [line.strip() for line in text.splitlines()]
    steps = [_parse_step(line) for line in lines if line and not line.startswith("#")]
    if not steps or steps[0].verb != _OPTIONS:
        raise TraceError(f'a trace begins with a line "{_OPTIONS} …"')
    return ChaosTrace(steps[0], tuple(steps[1:]))


def read_trace(path: Path) -> ChaosTrace:
    return parse_trace(path.read_text(encoding="utf-8"))


def _parse_step(line: str) -> ChaosStep:
    verb, *words = line.split()
    names = tuple(word for word in words if "=" not in word)
    pairs = tuple(word.partition("=") for word in words if "=" in word)
    return ChaosStep(verb, names, tuple((key, value) for key, _, value in pairs))
