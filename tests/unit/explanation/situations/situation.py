"""What a situation is: a cluster, a pod, and what must be said about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kubesched.testing.make import Manifest


@dataclass(frozen=True)
class Situation:
    """`says` are parts of the first line; `nearest` are nodes, one of which must be the first of the nodes told."""

    objects: list[Manifest]
    pod: str
    cause: str
    says: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    first_change: tuple[str, ...] = ()
    """Kinds of changes of which one must be proposed first; any, if empty."""
    silent_about: tuple[str, ...] = field(default=())
    """What the first line must not speak of."""


Builder = Callable[[], Situation]
SITUATIONS: dict[str, Builder] = {}


def situation(name: str) -> Callable[[Builder], Builder]:
    def keep(builder: Builder) -> Builder:
        assert name not in SITUATIONS, name
        SITUATIONS[name] = builder
        return builder

    return keep
