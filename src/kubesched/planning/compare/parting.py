"""Where two runs with the same seed part: the first pod that goes elsewhere, and which plugins' scores decided that.

Each run is made again up to that decision, and the decision is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubesched.explanation.answer import Explanation
from kubesched.explanation.explain import explain_pending, taken_off
from kubesched.k8s.model.meta import PodKey
from kubesched.simulator.virtual.cluster import Progress, VirtualCluster

Placed = Sequence[tuple[str, str]]
"""Pods and their nodes, in the order in which they got them."""
Replay = Callable[[Progress], object]
"""Makes a run again, and shows the cluster after every step."""


@dataclass(frozen=True, slots=True)
class NodeScores:
    """What one scheduler thought of the two nodes that two schedulers chose."""

    why: Mapping[str, str]
    """By node, why it did not fit; empty if it did."""
    scores: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By plugin, the weighted scores of the baseline's node and of the variant's."""


@dataclass(frozen=True, slots=True)
class Parting:
    pod: str
    baseline_node: str
    variant_node: str
    baseline: NodeScores | None = None
    variant: NodeScores | None = None

    @property
    def is_tie(self) -> bool:
        """One of the schedulers finds both nodes equally good, and leaves it to chance."""
        seen = [one for one in (self.baseline, self.variant) if one is not None and one.scores]
        return any(sum(_lead(one, name) for name in one.scores) == 0 for one in seen)

    @property
    def deciding(self) -> list[str]:
        """The plugins that speak more for the variant's node than they do under the baseline, the most first."""
        if self.baseline is None or self.variant is None or self.is_tie:
            return []
        names = {*self.baseline.scores, *self.variant.scores}
        gains = {name: _lead(self.variant, name) - _lead(self.baseline, name) for name in names}
        return sorted((name for name, gain in gains.items() if gain > 0), key=lambda name: (-gains[name], name))

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "pod": self.pod,
            "baseline": self.baseline_node,
            "variant": self.variant_node,
            "deciding": self.deciding,
            "tie": self.is_tie,
        }
        for name, seen in (("scoresOfBaseline", self.baseline), ("scoresOfVariant", self.variant)):
            if seen is not None:
                record[name] = {
                    "rejected": {node: why for node, why in seen.why.items() if why},
                    "plugins": {plugin: list(pair) for plugin, pair in seen.scores.items()},
                }
        return record


def _lead(seen: NodeScores, plugin: str) -> int:
    ours, theirs = seen.scores.get(plugin, (0, 0))
    return theirs - ours


def first_difference(base: Placed, other: Placed) -> Parting | None:
    """A name may be used again: the second pod of a name is compared with the second one."""
    there = dict(_numbered(base))
    for (pod, nth), node in _numbered(other):
        if there.get((pod, nth), node) != node:
            return Parting(pod, there[pod, nth], node)
    return None


def _numbered(placed: Placed) -> Iterator[tuple[tuple[str, int], str]]:
    seen: dict[str, int] = {}
    for pod, node in placed:
        seen[pod] = seen.get(pod, 0) + 1
        yield (pod, seen[pod]), node


class _DecidedError(Exception):
    """The run has come as far as it is wanted."""


def scores_at(parting: Parting, node: str, replay: Replay) -> NodeScores | None:
    """What the scheduler of a run thought when it decided about the pod, for the first time that it chose this node;
    None if it does not come to that."""
    found: list[NodeScores] = []

    def look(cluster: VirtualCluster) -> None:
        info = cluster.loop.cluster.find_pod(PodKey(parting.pod))
        if info is None or info.spec.node_name != node:
            return
        waiting = taken_off(cluster.loop.cluster, info)
        scheduler = cluster.loop.schedulers[info.spec.scheduler_name]
        explanation = explain_pending(cluster.loop.cluster, scheduler, waiting, placed_on=node)
        found.append(_seen(explanation, (parting.baseline_node, parting.variant_node)))
        raise _DecidedError

    try:
        replay(look)
    except _DecidedError:
        return found[0]
    return None


def _seen(explanation: Explanation, nodes: tuple[str, str]) -> NodeScores:
    why = dict.fromkeys(nodes, "")
    for group in explanation.groups:
        for name in nodes:
            if name in group.names:
                why[name] = group.summary()
    scored = None if explanation.decision is None else explanation.decision.scored
    if scored is None or any(why.values()):
        return NodeScores(why)
    at = [scored.nodes.names.index(name) for name in nodes]
    return NodeScores(
        why, {one.plugin: (int(one.weighted[at[0]]), int(one.weighted[at[1]])) for one in scored.by_plugin}
    )
