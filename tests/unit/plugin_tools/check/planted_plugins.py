"""Plugins with one bug each, and one without: what the battery must tell apart."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

import numpy as np

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    Hint,
    NodeInfo,
    NodeTable,
    PodInfo,
    PreFilterResult,
    RegisteredEvent,
    Status,
    Verdicts,
)
from kubesched.framework.caching import Scope
from kubesched.framework.extension_points import PermitResult
from kubesched.framework.results import Scores
from kubesched.k8s.model.core import Node

QUIET = "example.com/quiet"
REASON = "node(s) were quiet"
NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABELS = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
POD_GONE = ClusterEvent(EventResource.POD, ActionType.DELETE)


@dataclass(frozen=True)
class QuietArgs:
    label: str = QUIET
    seen: list[str] = field(default_factory=list)


class Quiet:
    """No bug: keeps pods off nodes labelled quiet, and prefers nodes with few pods."""

    name: ClassVar[str] = "Quiet"
    args_type: ClassVar[type] = QuietArgs
    filter_scope: ClassVar[Scope] = Scope.NODE

    def __init__(self, args: QuietArgs, handle: Handle) -> None:
        self.args = args

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        return Verdicts.reject(nodes.label(self.args.label).where(lambda value: value == "true"), REASON)

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable(REASON) if node.node.labels.get(self.args.label) == "true" else OK

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return np.maximum(100 - nodes.pod_counts, 0)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return max(100 - node.pod_count, 0)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return [RegisteredEvent(NODE_LABELS)]


class TableForgetsLabel(Quiet):
    """The table form looks at the wrong value."""

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        return Verdicts.reject(nodes.label(self.args.label).where(lambda value: value is not None), REASON)


class ScoresDiffer(Quiet):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return max(99 - node.pod_count, 0)


class MixesPositionsAndRows(Quiet):
    """Right for the whole table only: indexes an answer by position with row numbers."""

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        whole = nodes.whole.label(self.args.label).where(lambda value: value == "true")
        return Verdicts.reject(whole[: len(nodes)], REASON)


class WritesPod(Quiet):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        pod.labels["example.com/seen"] = "true"
        return super().score_node(cycle, pod, node)


class WritesNode(Quiet):
    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if node.node.metadata.annotations is not None:
            node.node.metadata.annotations["example.com/seen"] = "true"
        return super().filter_node(cycle, pod, node)


class WritesTable(Quiet):
    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        nodes.whole.requested("memory")[:] += 1
        return super().score(cycle, pod, nodes)


class WritesArguments(Quiet):
    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.args.seen.append(node.name)
        return super().filter_node(cycle, pod, node)


class WritesCycle(Quiet):
    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        cycle.skip_filter = frozenset()
        return super().score(cycle, pod, nodes)


class WritesRawScores(Quiet):
    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        scores //= 2
        return scores


class TooHigh(Quiet):
    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return np.full(len(nodes), 150)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 150


class TooLow(Quiet):
    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return 2 - nodes.pod_counts

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 2 - node.pod_count


@dataclass
class Counts:
    by_node: dict[str, int]


class AtMostTwo:
    """No bug: at most two pods of a namespace on a node, counted once per cycle."""

    name: ClassVar[str] = "AtMostTwo"

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        each = [nodes.at(position) for position in range(len(nodes))]
        cycle.put(Counts({n.name: sum(p.namespace == pod.namespace for p in n.pods) for n in each}))
        return PreFilterResult()

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        full = cycle.get(Counts).by_node[node.name] >= 2
        return Status.unschedulable("too many pods of the namespace") if full else OK

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        cycle.get(Counts).by_node[node.name] += added.namespace == pod.namespace
        return OK

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        cycle.get(Counts).by_node[node.name] -= removed.namespace == pod.namespace
        return OK

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return [RegisteredEvent(NODE_ADDED), RegisteredEvent(POD_GONE)]


class RemovesTooFew(AtMostTwo):
    """`remove_pod` does not undo `add_pod`."""

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        return OK


class CountsOnly:
    """Counts in `pre_filter`, and is not told of pods that come and go."""

    name: ClassVar[str] = "CountsOnly"
    pre_filter = AtMostTwo.pre_filter
    filter_node = AtMostTwo.filter_node
    events_to_register = AtMostTwo.events_to_register


class MissesEvent(Quiet):
    """Waits for new nodes only."""

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return [RegisteredEvent(NODE_ADDED)]


class SkippingHint(Quiet):
    """The hint looks at the old node, where the new one counts."""

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return [RegisteredEvent(NODE_LABELS, self._hint)]

    def _hint(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        return Hint.SKIP if isinstance(old, Node) and old.labels.get(QUIET) == "true" else Hint.QUEUE


class BreakingHint(Quiet):
    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return [RegisteredEvent(NODE_LABELS, self._hint)]

    def _hint(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        assert isinstance(old, Node) and isinstance(new, Node)
        return Hint.QUEUE


class PermitMissesEvent:
    """Turns pods down at permit, and waits for new nodes only."""

    name: ClassVar[str] = "PermitMissesEvent"

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        return PermitResult(Status.unschedulable("not loud") if pod.labels.get("loud") != "true" else OK)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return [RegisteredEvent(NODE_ADDED)]


class UnreserveBreaks:
    """Cannot give back what it never took."""

    name: ClassVar[str] = "UnreserveBreaks"

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        self.taken[pod.uid] = node_name
        return OK

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        del self.taken[pod.uid]


class Dice:
    name: ClassVar[str] = "Dice"

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return random.randint(0, 100)


class Remembers:
    """Answers by what it was asked before."""

    name: ClassVar[str] = "Remembers"

    def __init__(self) -> None:
        self.last = ""

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        known, self.last = self.last, pod.name
        return 1 if known not in ("", pod.name) else 0


class Clock:
    name: ClassVar[str] = "Clock"

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return int(time.time() // 86_400) % 100


class Calendar:
    name: ClassVar[str] = "Calendar"
    time_zone: ClassVar[timedelta] = timedelta()

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return OK if (datetime.now() + self.time_zone).toordinal() % 2 else Status.unschedulable("not on even days")


class FirstRowWins:
    """Depends on the order in which nodes became known."""

    name: ClassVar[str] = "FirstRowWins"

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.row == 0 else 0


class NeedsLabels:
    """Breaks for a pod that has no container."""

    name: ClassVar[str] = "NeedsLabels"

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return OK if pod.spec.containers[0].image else Status.unschedulable("no image")


class SaysNothing:
    name: ClassVar[str] = "SaysNothing"

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return None if node.pod_count else OK  # type: ignore[return-value]


class NarrowScope:
    """Counts pods, and says that only the node's object matters."""

    name: ClassVar[str] = "NarrowScope"
    score_scope: ClassVar[Scope] = Scope.NODE

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return min(node.pod_count, 100)


class NotByAmounts:
    """Looks at a label, and says that only amounts matter."""

    name: ClassVar[str] = "NotByAmounts"
    filter_scope: ClassVar[Scope] = Scope.AMOUNTS

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return OK if node.node.labels.get("disk") != "1" else Status.unschedulable("disk 1")
