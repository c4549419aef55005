"""What a controller wants done: objects to create, to replace, to delete, and how many at a time. Nothing here does it.

A workload of two billion replicas must not stop all others. As Kubernetes' controllers do, one look makes 500 pods at
most, and the next look comes after everybody else had a turn. And where many pods of a workload already wait for a
node, more of them help nobody: the next ones come when some have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject


@dataclass(frozen=True, slots=True)
class CreateObject:
    item: KubeObject


@dataclass(frozen=True, slots=True)
class UpdateObject:
    """The object is to be as it is here."""

    item: KubeObject


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Gracefully, if it is a pod that runs."""

    item: KubeObject


Action = CreateObject | UpdateObject | DeleteObject


@dataclass(slots=True)
class Plan:
    """What a controller wants now, in this order, and when it wants to look again although nothing changed."""

    actions: list[Action] = field(default_factory=list)
    again_at_s: float | None = None
    is_cut: bool = False
    """There is more to do than one look may: look again when others had their turn."""
    held_back: str = ""
    """Why pods that are missing are not made now."""
    n_held_back: int = 0
    """How many they are."""

    def create(self, item: KubeObject) -> None:
        self.actions.append(CreateObject(item))

    def update(self, item: KubeObject) -> None:
        self.actions.append(UpdateObject(item))

    def delete(self, item: KubeObject) -> None:
        self.actions.append(DeleteObject(item))

    def look_again(self, at_s: float) -> None:
        self.again_at_s = at_s if self.again_at_s is None else min(self.again_at_s, at_s)


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
