"""Waits until all is decided: every pod has a place, or the scheduler said why it has none; and nobody has more to do.

Then says what became of the pods, in a few lines.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.playground.controllers.cluster_view import ClusterView

QUIET_S = 1.0
"""For so long nothing must have changed."""

_LOOK_EVERY_S = 0.1


class ChangeWatch:
    """When pods or their owners last changed. Nodes and leases are not of interest: they never rest."""

    def __init__(self, view: ClusterView) -> None:
        self.last_s = asyncio.get_running_loop().time()
        view.listen(self._on_change)

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        item = before if after is None else after
        if item is not None and item.metadata.namespace and item.metadata.namespace != "kube-node-lease":
            self.last_s = asyncio.get_running_loop().time()


HeldBack = Mapping[str, str]
"""Keys of the pods that the scheduler does not even try yet (members of a gang that is not complete), and the plugin
that says so. Nothing in such a pod tells that."""


async def wait_settled(
    view: ClusterView,
    is_idle: Callable[[], bool],
    timeout_s: float,
    quiet_s: float = QUIET_S,
    held_back: Callable[[], HeldBack] = dict,
) -> bool:
    """False if the time was not enough."""
    events = asyncio.get_running_loop()
    changes = ChangeWatch(view)
    deadline_s = events.time() + timeout_s
    while events.time() < deadline_s:
        await asyncio.sleep(_LOOK_EVERY_S)
        is_quiet = events.time() - changes.last_s >= quiet_s and is_idle()
        if is_quiet:
            held = held_back()
            if all(is_decided(pod, held) for pod in view.of(Pod).values()):
                return True
    return False


def is_decided(pod: Pod, held_back: HeldBack) -> bool:
    """Has a place, has finished, or cannot have a place now. A pod that preempts others is still to come."""
    if pod.is_terminating:
        return False
    if pod.spec.node_name or pod.is_terminal or pod.spec.scheduling_gates:
        return True
    return why_pending(pod, held_back) is not None and not pod.status.nominated_node_name


def why_pending(pod: Pod, held_back: HeldBack) -> str | None:
    """What the scheduler said; None if it has not yet."""
    if pod.spec.scheduling_gates:
        return "waits for its scheduling gates: " + ", ".join(gate.name for gate in pod.spec.scheduling_gates)
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message or condition.reason
    return f"held back by the plugin {held_back[pod.key]}" if pod.key in held_back else None


_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """Pods with a place by node, and those without by the reason."""

    n_placed: int
    by_node: dict[str, int]
    pending: dict[str, list[str]]

    @classmethod
    def of(cls, pods: Iterable[Pod], held_back: HeldBack) -> Outcome:
        by_node: Counter[str] = Counter()
        pending: dict[str, list[str]] = {}
        for pod in sorted(pods, key=lambda known: known.key):
            if pod.spec.node_name:
                by_node[pod.spec.node_name] += 1
            elif not pod.is_terminal:
                pending.setdefault(why_pending(pod, held_back) or "not looked at yet", []).append(pod.key)
        return cls(by_node.total(), dict(sorted(by_node.items())), pending)

    @property
    def n_pending(self) -> int:
        return sum(map(len, self.pending.values()))

    def lines(self) -> list[str]:
        n_all = self.n_placed + self.n_pending
        found = [f"{self.n_placed} of {n_all} pods scheduled, on {_counted(len(self.by_node), 'node')}"]
        for reason, keys in self.pending.items():
            more = f" and {len(keys) - _NAMES_SHOWN} more" if len(keys) > _NAMES_SHOWN else ""
            found.append(f"pending: {', '.join(keys[:_NAMES_SHOWN])}{more}: {reason}")
        return found


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
