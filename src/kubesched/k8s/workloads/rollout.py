"""How far the replica sets of a deployment may be scaled now, on the way from old templates to the new one.

Rolling: at most `maxSurge` pods above the wanted number, at most `maxUnavailable` below it available; old pods that
do not run go first. Recreate: nothing new before everything old is gone. When the wanted number changes in the middle
of a rollout, and while the deployment is paused, sets grow and shrink in proportion to their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf

from kubesched.k8s.model.apps import ReplicaSet
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.workloads import Deployment, DeploymentStrategy, RollingUpdateDeployment
from kubesched.k8s.workloads.percentages import share_of
from kubesched.k8s.workloads.pod_states import is_available
from kubesched.k8s.workloads.replicas import n_wanted

RECREATE = "Recreate"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MOST_REPLICAS = "deployment.kubernetes.io/max-replicas"
_DEFAULT_SHARE = "25%"


@dataclass(frozen=True, slots=True)
class ReplicaSetScale:
    """A replica set in numbers: pods it is told to have, pods that exist in whatever state, pods that are available;
    and how many the deployment wanted, at most, when the set was scaled last."""

    n_told: int
    n_existing: int
    n_available: int
    n_desired: int | None = None
    n_most: int | None = None

    @classmethod
    def of(cls, replica_set: ReplicaSet, pods: Sequence[Pod], now_s: float = inf) -> ReplicaSetScale:
        n_existing = sum(1 for pod in pods if not pod.is_terminal)
        n_available = sum(is_available(pod, replica_set.spec.min_ready_seconds, now_s) for pod in pods)
        annotations = replica_set.metadata.annotations or {}
        noted = (annotations.get(key, "") for key in (DESIRED_REPLICAS, MOST_REPLICAS))
        n_desired, n_most = (int(text) if text.isdecimal() and len(text) < 12 else None for text in noted)
        return cls(n_wanted(replica_set), n_existing, n_available, n_desired, n_most)


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
    known = [*old, *(() if current is None else (current,))]
    is_resized = any(scale.n_told and scale.n_desired not in (None, wanted) for scale in known)
    if (deployment.spec.paused or is_resized) and known:
        return _in_proportion(strategy, wanted, current, old)
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


def most_replicas(strategy: DeploymentStrategy, wanted: int) -> int:
    """With all that a rollout may add."""
    return wanted + (0 if strategy.type == RECREATE else rolling_limits(strategy, wanted)[0])


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


def _in_proportion(
    strategy: DeploymentStrategy, wanted: int, current: ReplicaSetScale | None, old: Sequence[ReplicaSetScale]
) -> ReplicaSetSizes:
    """The only set that has pods gets all; of several, each its share, and the largest what is left."""
    scales = [*old, *(() if current is None else (current,))]
    sizes = [scale.n_told for scale in scales]
    filled = [position for position, size in enumerate(sizes) if size > 0]
    if len(filled) <= 1:
        sizes[filled[0] if filled else -1] = wanted
    elif current is not None and (current.n_told, current.n_desired, current.n_available) == (wanted,) * 3:
        sizes[:-1] = [0] * len(old)
    elif strategy.type != RECREATE:
        most = most_replicas(strategy, wanted) if wanted else 0
        to_add, added = most - sum(sizes), 0
        newest_first = -1 if to_add > 0 else 1
        in_order = sorted(filled, key=lambda position: (-sizes[position], newest_first * position))
        shares = dict.fromkeys(in_order, 0)
        for position in in_order:
            scale = scales[position]
            before = scale.n_most or sum(sizes)
            share = floor(scale.n_told * most / before + 0.5) - scale.n_told if wanted else -scale.n_told
            room = to_add - added
            shares[position] = min(share, room) if to_add > 0 else max(share, room)
            added += shares[position]
        shares[in_order[0]] += to_add - added
        for position, share in shares.items():
            sizes[position] = max(0, sizes[position] + share)
    if current is None:
        return ReplicaSetSizes(0, tuple(sizes))
    return ReplicaSetSizes(sizes[-1], tuple(sizes[:-1]))
