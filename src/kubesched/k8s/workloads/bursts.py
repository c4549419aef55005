"""How many pods a controller makes in one look: a workload of two billion replicas must not stop all others.

As Kubernetes' controllers do, one look makes 500 pods at most, and the next look comes after everybody else had a turn.
And where many pods of a workload already wait for a node, more of them help nobody: the next ones come when some have
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.k8s.model.core import Pod
from kubesched.k8s.workloads.actions import Plan

BURST = 500
MOST_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class Bursts:
    """`most` in one look, and not more than `most_waiting` without a node (None: no matter how many)."""

    most: int = BURST
    most_waiting: int | None = None

    def cut(self, plan: Plan, n_missing: int, active: Sequence[Pod]) -> int:
        """How many of the missing pods to make now; the plan is told when that is not all."""
        allowed = min(n_missing, self.most)
        if self.most_waiting is not None and n_missing > 0:
            n_waiting = sum(1 for pod in active if not pod.spec.node_name)
            room = max(0, self.most_waiting - n_waiting)
            if room < allowed:
                plan.n_held_back = n_missing - room
                plan.held_back = (
                    f"{n_waiting} of its pods wait for a node: {plan.n_held_back} more are created when some have one"
                )
                return room
        plan.is_cut = plan.is_cut or allowed < n_missing
        return allowed


UNPACED = Bursts()
"""In bursts, with no regard to how many wait."""
PACED = Bursts(most_waiting=MOST_WAITING)
