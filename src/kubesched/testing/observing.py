"""What a loop does, kept for a test to look at."""

from __future__ import annotations

from typing import TypeVar

from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.observations import Observation

Kind = TypeVar("Kind")


def listen_for(loop: Scheduler, kind: type[Kind]) -> list[Kind]:
    """A list that grows with every observation of this kind from now on."""
    found: list[Kind] = []

    def observe(seen: Observation) -> None:
        if isinstance(seen, kind):
            found.append(seen)

    loop.listen(observe)
    return found
