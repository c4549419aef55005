"""The extension points, one small protocol each. A plugin has a name and the methods of those that it implements; it
inherits nothing.

Filter and Score have a form for the whole table and one for a single node; a plugin implements whichever is clearer,
and the runtime adapts the second to the first. How long an answer stays true is declared apart, in `caching`.

| extension point (as configured) | method(s) | the answer |
|---|---|---|
| preEnqueue | `pre_enqueue` | may the pod enter the queue at all? |
| queueSort | `sort_key` | which pod is next |
| preFilter | `pre_filter` (`add_pod`, `remove_pod`) | can the pod go anywhere; prepares for filter |
| filter | `filter` or `filter_node` | which nodes the pod can go to |
| postFilter | `post_filter` | what to do when there is none |
| preScore | `pre_score` | prepares for score |
| score | `score` or `score_node` (`normalize_score`) | how good each node is, 0 to 100 |
| reserve | `reserve`, `unreserve` | reserves resources until the pod is bound |
| permit | `permit` | go, no, or wait |
| preBind | `pre_bind` | what must be written before the pod is bound |
| bind | `bind` | binds the pod |
| postBind | `post_bind` | the pod is bound |
| placementGenerate | `generate_placements` | the sets of nodes that a pod group could go to; see `groups` |
| placementScore | `score_placement` (`normalize_placement_scores`) | how good each of them is, 0 to 100 |
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import RegisteredEvent
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult, PreFilterResult, Scores
from kubesched.framework.status import Status
from kubesched.framework.verdicts import Verdicts


@runtime_checkable
class Plugin(Protocol):
    """The one thing every plugin has."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class EnqueueExtensions(Plugin, Protocol):
    def events_to_register(self) -> Sequence[RegisteredEvent]:
        """The events after which a pod that this plugin rejected may be schedulable."""
        ...


@runtime_checkable
class PreEnqueue(Plugin, Protocol):
    def pre_enqueue(self, pod: PodInfo) -> Status: ...


class QueuedPod(Protocol):
    """A pod in the queue, and when it was added."""

    @property
    def info(self) -> PodInfo: ...
    @property
    def queued_at_s(self) -> float: ...


@runtime_checkable
class QueueSort(Plugin, Protocol):
    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        """Pods are popped in ascending order of this key."""
        ...


@runtime_checkable
class PreFilter(Plugin, Protocol):
    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult: ...


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """How prepared state changes if a pod is added to a node, or removed from it. The two undo each other."""

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status: ...

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status: ...


@runtime_checkable
class Filter(Plugin, Protocol):
    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts: ...


@runtime_checkable
class FilterNode(Plugin, Protocol):
    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status: ...


@runtime_checkable
class PostFilter(Plugin, Protocol):
    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult: ...


@runtime_checkable
class PreScore(Plugin, Protocol):
    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
        """`nodes` are the feasible ones. SKIP leaves this plugin's score out."""
        ...


@runtime_checkable
class Score(Plugin, Protocol):
    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        """(n_nodes,) raw scores."""
        ...


@runtime_checkable
class ScoreNode(Plugin, Protocol):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int: ...


@runtime_checkable
class NormalizeScore(Plugin, Protocol):
    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        """Raw scores brought into 0 to 100."""
        ...


@runtime_checkable
class Reserve(Plugin, Protocol):
    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status: ...

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undoes `reserve`; must also work when it never ran, or failed half-way."""
        ...


@dataclass(frozen=True, slots=True)
class PermitResult:
    """`timeout_s` counts for WAIT: how long to hold the pod before it is rejected."""

    status: Status
    timeout_s: float = 0.0


@runtime_checkable
class Permit(Plugin, Protocol):
    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> PermitResult: ...


Steps = Generator[object, object, Status]
"""Work that needs the world outside: yields an effect (see `effects`), is sent what became of it, ends in a status."""


@runtime_checkable
class PreBind(Plugin, Protocol):
    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        """SKIP when `pre_bind` would have nothing to do."""
        ...

    def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps: ...


@runtime_checkable
class Bind(Plugin, Protocol):
    def bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        """Ends in SKIP to leave the pod to the next bind plugin."""
        ...


@runtime_checkable
class PostBind(Plugin, Protocol):
    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None: ...


@runtime_checkable
class EmitsEffects(Plugin, Protocol):
    """A plugin that asks for effects outside of a binding cycle: after PostFilter, or in Unreserve."""

    def take_effects(self) -> Sequence[object]:
        """What was asked for since the last call (see `effects`). It is not waited for."""
        ...


EXTENSION_POINTS: dict[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("sort_key",),
    "preFilter": ("pre_filter",),
    "filter": ("filter", "filter_node"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score", "score_node"),
    "reserve": ("reserve",),
    "permit": ("permit",),
    "preBind": ("pre_bind",),
    "bind": ("bind",),
    "postBind": ("post_bind",),
    "placementGenerate": ("generate_placements",),
    "placementScore": ("score_placement",),
}
"""The configured name of each extension point, and its methods: a plugin with any of them implements it."""


def extension_points_of(plugin: object) -> frozenset[str]:
    """The extension points that a plugin, or a plugin class, implements."""
    return frozenset(
        point
        for point, methods in EXTENSION_POINTS.items()
        if any(callable(getattr(plugin, method, None)) for method in methods)
    )
