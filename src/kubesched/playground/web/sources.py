"""What the page is given: functions that only look, called in the thread that owns the state.

Next: `page`, which serves what they tell, and `pod_story`, which asks the API server for a pod's events.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.k8s.model.scheduling import PodGroup

JsonObject = dict[str, Any]


class RefusedError(Exception):
    """What was asked for cannot be done; says why in one sentence."""


@dataclass(frozen=True, slots=True)
class ObjectRef:
    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ShownScenario:
    """Something to look at, loaded by a click."""

    name: str
    title: str
    about: str
    """What one sees, and what to try."""


class Workbench(Protocol):
    """Where the page may change things. All of it raises `RefusedError`."""

    async def read(self, ref: ObjectRef) -> str:
        """As YAML."""
        ...

    async def write(self, text: str, *, is_dry_run: bool) -> list[JsonObject]: ...

    async def delete(self, ref: ObjectRef) -> None: ...

    async def cordon(self, node: str, *, is_cordoned: bool) -> None:
        """Whether the node is to be closed to new pods, or open again."""
        ...

    async def load(self, scenario: str) -> None: ...

    def scenarios(self) -> list[ShownScenario]: ...


@dataclass(frozen=True, slots=True)
class RecordedPod:
    """A pod as the API server has it, None if it is gone, and the events about it; both as plain JSON."""

    pod: JsonObject | None = None
    events: list[JsonObject] = field(default_factory=list)
    note: str = ""
    """Why something is missing, if it is."""


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
    groups: Callable[[], Iterable[PodGroup]] = tuple
    queue: Callable[[], JsonObject] = dict
    """Waiting pods by place: what `/debug/queue` of the scheduler answers."""
    explain: Callable[[str, str], Awaitable[JsonObject]] | None = None
    """By namespace and name: the report of `kubesched explain -o json`. Raises `NotExplainableError`."""
    explain_group: Callable[[str, str], Awaitable[JsonObject]] | None = None
    """The same for a pod group."""
    what_if: Callable[[str], Awaitable[JsonObject]] | None = None
    """As `explain`, for a pod that is not there, given as YAML. Raises `RefusedError`."""
    decisions: Callable[[str, int], JsonObject] = lambda _pod, _after: {"decisions": [], "made": 0, "kept": 0}
    """Of a pod, or all after a number: what `/debug/decisions` of the scheduler answers."""
    looked_at: Callable[[], None] = lambda: None
    """Called when somebody opens the page: what only the page needs begins then."""
    workbench: Workbench | None = None
    """None where the page is there to look only."""
    hint: str = ""
    """The command to type for a start, if the cluster is empty."""
    recorded: Callable[[str, str], Awaitable[RecordedPod]] = nothing_recorded
    """By namespace and name. Raises `ApiError`, `Unreachable` or `AnswerLost`."""
