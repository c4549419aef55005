"""What a closed replay came to, beside what was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubesched.explanation.layout import Style, Tone, counted, table
from kubesched.k8s.model.core import Pod
from kubesched.simulator.report_text import readable_span

_DIGITS = 3


@dataclass(slots=True)
class PodLife:
    """When a pod came, got its node, and ended; seconds since the epoch."""

    key: str
    arrived_s: float
    was_there: bool = False
    """When the recording began."""
    bound_s: float | None = None
    node: str = ""
    ended_s: float | None = None

    @classmethod
    def of(cls, pod: Pod, at_s: float, *, was_there: bool) -> PodLife:
        return cls(pod.key, at_s, was_there=was_there and bool(pod.spec.node_name))


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """One side of the comparison, of the pods that had to be scheduled."""

    n_pods: int
    n_bound: int
    n_pending: int
    """At the end."""
    pending_s: float
    """Waited by all pods together."""
    wait_p50_s: float
    wait_p99_s: float
    """From arriving to having a node, of those that got one."""
    n_nodes: int
    """That got any of them."""

    @classmethod
    def of(cls, lives: Iterable[PodLife], end_s: float) -> ReplayOutcome:
        scheduled = [life for life in lives if not life.was_there]
        waits = [life.bound_s - life.arrived_s for life in scheduled if life.bound_s is not None]
        ends = [life.bound_s or life.ended_s or end_s for life in scheduled]
        p50, p99 = (float(one) for one in np.percentile(waits, [50, 99])) if waits else (0.0, 0.0)
        return cls(
            n_pods=len(scheduled),
            n_bound=len(waits),
            n_pending=sum(life.bound_s is None and life.ended_s is None for life in scheduled),
            pending_s=round(sum(e - life.arrived_s for e, life in zip(ends, scheduled, strict=True)), _DIGITS),
            wait_p50_s=round(p50, _DIGITS),
            wait_p99_s=round(p99, _DIGITS),
            n_nodes=len({life.node for life in scheduled if life.node}),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "pods": self.n_pods,
            "bound": self.n_bound,
            "pendingAtEnd": self.n_pending,
            "pendingPodSeconds": self.pending_s,
            "waitP50S": self.wait_p50_s,
            "waitP99S": self.wait_p99_s,
            "nodesUsed": self.n_nodes,
        }


@dataclass(frozen=True, slots=True, repr=False)
class ClosedReplay:
    first_s: float
    last_s: float
    recorded_lives: dict[str, PodLife]
    """By uid."""
    replayed_lives: dict[str, PodLife]
    n_preempted: int

    @property
    def recorded(self) -> ReplayOutcome:
        return ReplayOutcome.of(self.recorded_lives.values(), self.last_s)

    @property
    def replayed(self) -> ReplayOutcome:
        return ReplayOutcome.of(self.replayed_lives.values(), self.last_s)

    @property
    def n_same_node(self) -> int:
        """Pods that went where they were recorded."""
        pairs = ((life, self.recorded_lives.get(uid)) for uid, life in self.replayed_lives.items())
        return sum(
            bool(ours.node) and not ours.was_there and then is not None and then.node == ours.node
            for ours, then in pairs
        )

    @property
    def headline(self) -> str:
        then, now = self.recorded, self.replayed
        got = f"{now.n_bound} of {counted(now.n_pods, 'pod')} got a node"
        if not then.n_bound:
            return f"{got}, half of them within {readable_span(now.wait_p50_s)}."
        told = f"{got}, {then.n_bound} did then"
        waits = f"half of them within {readable_span(now.wait_p50_s)} ({readable_span(then.wait_p50_s)} then)"
        return f"{told}; {waits}."

    def __repr__(self) -> str:
        return f"<ClosedReplay: {self.headline}>"

    def __str__(self) -> str:
        return render_closed(self, Style())

    def to_dict(self) -> dict[str, Any]:
        return {
            "recorded": self.recorded.to_dict(),
            "replayed": self.replayed.to_dict(),
            "preempted": self.n_preempted,
            "sameNode": self.n_same_node,
            "seconds": round(self.last_s - self.first_s, _DIGITS),
        }


def render_closed(found: ClosedReplay, style: Style) -> str:
    then, now = found.recorded, found.replayed
    is_worse = now.n_bound < then.n_bound
    rows = [
        ["pods to schedule", str(then.n_pods), str(now.n_pods)],
        ["got a node", str(then.n_bound), str(now.n_bound)],
        ["pending at the end", str(then.n_pending), str(now.n_pending)],
        ["waited, all together", readable_span(then.pending_s), readable_span(now.pending_s)],
        ["half got a node within", readable_span(then.wait_p50_s), readable_span(now.wait_p50_s)],
        ["99 % within", readable_span(then.wait_p99_s), readable_span(now.wait_p99_s)],
        ["nodes that got any", str(then.n_nodes), str(now.n_nodes)],
    ]
    if not then.n_bound:  # the recording does not say where pods went
        rows = [[name, now_] for name, _, now_ in rows]
        lines = table(["", "REPLAYED"], rows, indent=2)
        return "\n".join([style.first_line(found.headline, Tone.GOOD), "", *lines])
    notes = [f"  {found.n_same_node} of {now.n_bound} went to the node that was recorded."]
    if found.n_preempted:
        notes.append(f"  {counted(found.n_preempted, 'pod')} preempted here.")
    return "\n".join(
        [
            style.first_line(found.headline, Tone.BAD if is_worse else Tone.GOOD),
            "",
            *table(["", "RECORDED", "REPLAYED"], rows, indent=2),
            "",
            *notes,
        ]
    )
