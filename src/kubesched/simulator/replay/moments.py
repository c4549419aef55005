"""The moments of a journal: each attempt of a scheduler, and the cluster, the queue and the reasons as they were then.

Between two moments only what changed is kept, so that a page can go from one to any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from kubesched.explanation.html import explanation_tables
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.cycle import Decision
from kubesched.simulator.replay.exact import Attempt, ExactReplay

MOST_MOMENTS = 5_000
"""On a page."""
MOST_EXPLAINED = 1_000
"""Attempts that find no node, and as many that find one: an explanation is larger than the moment."""
_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class NodeThen:
    cpu_milli: int
    cpu_used_milli: int
    memory_bytes: int
    memory_used_bytes: int
    is_cordoned: bool

    def to_list(self) -> list[int]:
        amounts = [self.cpu_milli, self.cpu_used_milli, self.memory_bytes, self.memory_used_bytes]
        return [*amounts, int(self.is_cordoned)]


@dataclass(slots=True)
class Moment:
    """Just before what was decided took effect."""

    attempt: Attempt
    nodes: dict[str, NodeThen | None]
    """Those that changed since the moment before; None if one is gone."""
    pods: dict[str, str | None]
    """The same: the node of each; empty if it waits, None if it is gone."""
    queue: list[tuple[str, int, list[str]]]
    """Sub-queue, how many pods, and the names of the first ones."""
    headline: str
    """Why it finds no node, in a line; empty if it finds one, or is not explained."""
    why: str
    """More, as HTML; empty if it is not explained."""

    def to_dict(self, started_s: float) -> dict[str, Any]:
        attempt = self.attempt
        record: dict[str, Any] = {
            "t": round(attempt.at_s - started_s, 3),
            "pod": attempt.pod,
            "node": attempt.node,
            "fits": attempt.n_feasible,
            "text": attempt.message,
            "nodes": {name: None if one is None else one.to_list() for name, one in self.nodes.items()},
            "pods": self.pods,
            "queue": self.queue,
            "head": self.headline,
            "why": self.why,
        }
        return {name: value for name, value in record.items() if value not in ("", {})}


@dataclass(slots=True)
class Moments:
    replay: ExactReplay
    found: list[Moment] = field(default_factory=list)
    is_whole: bool = True
    """Whether the journal ends where these do."""
    _pods: set[PodKey] = field(default_factory=set)
    _nodes: set[str] = field(default_factory=set)
    """What may have changed since the last moment."""
    _seen: list[Moment] = field(default_factory=list)
    _n_explained: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})

    @classmethod
    def of(cls, replay: ExactReplay, attempts: Iterator[Attempt], most: int = MOST_MOMENTS) -> Moments:
        """From where the replay stands, which gave these attempts."""
        made = cls(replay)
        cluster = replay.loop.cluster
        made._nodes.update(cluster.table.names[: cluster.table.n])
        made._pods.update(cluster.placed)
        made._pods.update(cluster.pending)
        replay.hears_fact, replay.hears_decision = made._note_fact, made._note_decision
        for attempt in islice(attempts, most):
            moment = made._seen.pop(0)
            moment.attempt = attempt
            made.found.append(moment)
        made.is_whole = len(made.found) < most
        return made

    def _note_fact(self, item: KubeObject) -> None:
        if isinstance(item, Pod):
            self._note_pod(item.pod_key)
        elif isinstance(item, Node):
            self._nodes.add(item.name)

    def _note_pod(self, key: PodKey) -> None:
        """And the node that it may leave."""
        self._pods.add(key)
        known = self.replay.loop.cluster.find_pod(key)
        if known is not None and known.spec.node_name:
            self._nodes.add(known.spec.node_name)

    def _note_decision(self, decision: Decision) -> None:
        pods: dict[str, str | None] = {}
        for key in sorted(self._pods):
            known = self.replay.loop.cluster.find_pod(key)
            pods[key] = None if known is None else known.spec.node_name
            self._nodes.add(pods[key] or "")
        nodes = {name: self._node(name) for name in sorted(self._nodes) if name}
        queue = [(name, len(names), names[:_NAMES_SHOWN]) for name, names in self.replay.queue()]
        attempt = Attempt(0, 0.0, decision.pod.key, decision.node_name, "", 0)  # told in full once it is over
        self._seen.append(Moment(attempt, nodes, pods, queue, *self._why(decision)))
        self._pods, self._nodes = {decision.pod.key}, {decision.node_name}

    def _node(self, name: str) -> NodeThen | None:
        cluster = self.replay.loop.cluster
        row = cluster.table.rows.get(name)
        if row is None:
            return None
        then = NodeRow(cluster.table, row)
        return NodeThen(
            then.allocatable(CPU),
            then.requested(CPU),
            then.allocatable(MEMORY),
            then.requested(MEMORY),
            then.node.spec.unschedulable,
        )

    def _why(self, decision: Decision) -> tuple[str, str]:
        has_node = bool(decision.node_name)
        if self._n_explained[has_node] >= MOST_EXPLAINED:
            return "", ""
        self._n_explained[has_node] += 1
        with self.replay.explained(decision.pod) as found:
            return "" if has_node else found.headline, "".join(explanation_tables(found))
