"""What a run can be told beside its objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.times import parse_instant

DEFAULT_START = "2026-01-01T00:00:00Z"

TIE_BREAKS = ("random", "name")


class OptionError(KubeschedError, ValueError):
    """An option has a value that makes no sense."""


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    seed: int = 0
    tie_break: str = "random"
    """`random`, by the seed, or `name`: the lowest name wins."""
    until_s: float | None = None
    """How long at most, from the start; None until nothing more can happen."""
    start_s: float = parse_instant(DEFAULT_START)
    bind_latency_s: float = 0.0
    start_latency_s: float = 0.0
    """From bound to running."""
    keeps_classes: bool = True
    """Whether decisions come from the class cache; without it they take longer and are the same."""

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.tie_break not in TIE_BREAKS:
            raise OptionError(f'tie_break: "{self.tie_break}" is neither of {", ".join(TIE_BREAKS)}')
        for name in ("until_s", "bind_latency_s", "start_latency_s"):
            if (getattr(self, name) or 0) < 0:
                raise OptionError(f"{name.removesuffix('_s')}: {getattr(self, name)} is negative")


def check_seed(seed: object) -> None:
    """Raises OptionError."""
    try:
        index(seed)  # type: ignore[arg-type]
    except TypeError:
        raise OptionError(f"seed: {seed!r} is not a whole number") from None


def several(name: str, given: str | Iterable[str]) -> tuple[str, ...]:
    """A text is one of them, not its letters. Raises OptionError, which names the option."""
    try:
        return (given,) if isinstance(given, str) else tuple(given)
    except TypeError:
        raise OptionError(f"{name}: a list of texts is expected, not {given!r}") from None
