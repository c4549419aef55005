"""What the page is given: functions that only look, called in the thread that owns the state.

Next: `page`, which serves what they tell, and `pod_history`, the one that asks the API server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice

JsonObject = dict[str, Any]


class ExplainedAsText(Protocol):
    def __call__(self, namespace: str, name: str, *, as_text: bool) -> Awaitable[JsonObject | str]:
        """Raises `NotExplainableError`."""
        ...


@dataclass(frozen=True, slots=True)
class RecordedPod:
    """A pod as the API server has it, None if it is gone, and the events about it; both as plain JSON."""

    pod: JsonObject | None = None
    events: list[JsonObject] = field(default_factory=list)


async def nothing_recorded(_namespace: str, _name: str) -> RecordedPod:
    """For a page without an API server to ask."""
    return RecordedPod()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSources:
    """What has a default may be left out, and is then not shown."""

    nodes: Callable[[], Iterable[Node]]
    pods: Callable[[], Iterable[Pod]]
    """Those that have ended too, if they are known."""
    claims: Callable[[], Iterable[ResourceClaim]] = tuple
    slices: Callable[[], Iterable[ResourceSlice]] = tuple
    queue: Callable[[], JsonObject] = dict
    """Waiting pods by place: what `/debug/queue` of the scheduler answers."""
    explain: ExplainedAsText | None = None
    recorded: Callable[[str, str], Awaitable[RecordedPod]] = nothing_recorded
    """By namespace and name. Raises `ApiError`, `Unreachable` or `AnswerLost`."""
