"""How far the replica sets of a deployment may be scaled now, on the way from old templates to the new one.

Rolling: at most `maxSurge` pods above the wanted number, at most `maxUnavailable` below it available; old pods that
do not run go first. Recreate: nothing new before everything old is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.expansion.percentages import share_of
from kubesched.expansion.pod_states import is_healthy
from kubesched.expansion.replicas import n_wanted
from kubesched.model.apps import ReplicaSet
from kubesched.model.core import Pod
from kubesched.model.workloads import Deployment, DeploymentStrategy, RollingUpdateDeployment

RECREATE = "Recreate"
_DEFAULT_SHARE = "25%"


@dataclass(frozen=True, slots=True)
class ReplicaSetScale:
    """A replica set in numbers: pods it is told to have, pods that exist in whatever state, pods that are ready."""

    n_told: int
    n_existing: int
    n_available: int

    @classmethod
    def of(cls, replica_set: ReplicaSet, pods: Sequence[Pod]) -> ReplicaSetScale:
        n_existing = sum(1 for pod in pods if not pod.is_terminal)
        return cls(n_wanted(replica_set), n_existing, sum(map(is_healthy, pods)))


@dataclass(frozen=True, slots=True)
class ReplicaSetSizes:
    """What to tell the sets now."""

    current: int
    old: tuple[int, ...]


def next_sizes(
    deployment: Deployment, current: ReplicaSetScale | None, old: Sequence[ReplicaSetScale]
) -> ReplicaSetSizes:
    """`old` in the order in which they are to shrink."""
    wanted = n_wanted(deployment)
    strategy = deployment.spec.strategy or DeploymentStrategy()
    n_new = 0 if current is None else current.n_told
    if strategy.type == RECREATE:
        if any(scale.n_told or scale.n_existing for scale in old):
            return ReplicaSetSizes(n_new, tuple(0 for _ in old))
        return ReplicaSetSizes(wanted, tuple(0 for _ in old))
    surge, unavailable = rolling_limits(strategy, wanted)
    shrunk = _shrink(current, old, wanted - unavailable)
    n_all = n_new + sum(scale.n_told for scale in old)
    if n_new > wanted:
        return ReplicaSetSizes(wanted, shrunk)
    return ReplicaSetSizes(n_new + max(0, min(wanted + surge - n_all, wanted - n_new)), shrunk)


def rolling_limits(strategy: DeploymentStrategy, wanted: int) -> tuple[int, int]:
    """(surge, unavailable); never both none, or nothing could move."""
    rolling = strategy.rolling_update or RollingUpdateDeployment()
    surge = share_of(_or_default(rolling.max_surge), wanted, rounding_up=True)
    unavailable = share_of(_or_default(rolling.max_unavailable), wanted, rounding_up=False)
    return (0, 1) if surge == unavailable == 0 else (surge, min(unavailable, wanted))


def _or_default(value: int | str | None) -> int | str:
    return _DEFAULT_SHARE if value is None else value


def _shrink(current: ReplicaSetScale | None, old: Sequence[ReplicaSetScale], n_least_available: int) -> tuple[int, ...]:
    sizes = [scale.n_told for scale in old]
    n_new, n_new_available = (0, 0) if current is None else (current.n_told, current.n_available)
    allowed = n_new + sum(sizes) - n_least_available - (n_new - n_new_available)
    for position, scale in enumerate(old):  # those that are of no use anyway
        n_useless = min(max(0, allowed), max(0, scale.n_told - scale.n_available))
        sizes[position] -= n_useless
        allowed -= n_useless
    spare = n_new_available + sum(scale.n_available for scale in old) - n_least_available
    for position in range(len(old)):
        n_less = min(max(0, spare), sizes[position])
        sizes[position] -= n_less
        spare -= n_less
    return tuple(sizes)
