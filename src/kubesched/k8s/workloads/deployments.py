"""Deployments: one replica set per template, and the rolling update from old ones to the new one.

The replica set is named after its template's hash, which its pods carry as a label, so that sets do not mix up their
pods.

Rolling: at most `maxSurge` pods above the wanted number, at most `maxUnavailable` below it available; old pods that
do not run go first. Recreate: nothing new before everything old is gone. When the wanted number changes in the middle
of a rollout, and while the deployment is paused, sets grow and shrink in proportion to their size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf

from msgspec.structs import replace

from kubesched.k8s.model.apps import Deployment, DeploymentStrategy, ReplicaSet, ReplicaSetSpec, RollingUpdateDeployment
from kubesched.k8s.model.core import Pod, PodTemplateSpec
from kubesched.k8s.model.meta import LabelSelector, ObjectMeta
from kubesched.k8s.workloads.actions import Plan
from kubesched.k8s.workloads.pod_states import available_next_s, is_available
from kubesched.k8s.workloads.replicas import n_wanted, share_of
from kubesched.k8s.workloads.templates import (
    EMPTY_TEMPLATE,
    owner_reference,
    same_template,
    template_hash,
    without_labels,
)

RECREATE = "Recreate"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MOST_REPLICAS = "deployment.kubernetes.io/max-replicas"
_DEFAULT_SHARE = "25%"


@dataclass(frozen=True, slots=True)
class ReplicaSetScale:
    """A replica set in numbers: desired pods, pods that exist in whatever state, pods that are available;
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


TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"


def sync_deployment(
    deployment: Deployment,
    replica_sets: Sequence[ReplicaSet],
    pods: Mapping[str, Sequence[Pod]],
    now_s: float = inf,
) -> Plan:
    """`replica_sets` are those of the deployment, the oldest first; `pods` has theirs, by the set's uid."""
    plan = Plan()
    current = find_current(deployment, replica_sets)
    old = [known for known in replica_sets if known is not current]
    sizes = next_sizes(
        deployment,
        None if current is None else ReplicaSetScale.of(current, pods.get(current.metadata.uid, ()), now_s),
        [ReplicaSetScale.of(known, pods.get(known.metadata.uid, ()), now_s) for known in old],
    )
    if current is None:
        if not deployment.spec.paused or not replica_sets:
            plan.create(_new_set(deployment, sizes.current, replica_sets))
    else:
        _scale(plan, deployment, current, sizes.current)
    for known, size in zip(old, sizes.old, strict=True):
        _scale(plan, deployment, known, size)
    for known in replica_sets:
        next_s = available_next_s(pods.get(known.metadata.uid, ()), known.spec.min_ready_seconds, now_s)
        if next_s is not None:
            plan.look_again(next_s)
    return plan


def find_current(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The set of the deployment's present template; the newest, if several look alike."""
    wanted = deployment.spec.template or EMPTY_TEMPLATE
    alike = [known for known in replica_sets if _is_of_template(known, wanted)]
    return max(alike, key=_revision, default=None)


def _is_of_template(known: ReplicaSet, template: PodTemplateSpec) -> bool:
    own = known.spec.template or EMPTY_TEMPLATE
    drop = (TEMPLATE_HASH_LABEL,)
    return without_labels(own, drop) == without_labels(template, drop) or same_template(own, template, without=drop)


def _revision(known: ReplicaSet) -> int:
    text = (known.metadata.annotations or {}).get(REVISION_ANNOTATION, "0")
    return int(text) if text.isdecimal() else 0


def _new_set(deployment: Deployment, size: int, others: Sequence[ReplicaSet]) -> ReplicaSet:
    template = deployment.spec.template or EMPTY_TEMPLATE
    own_hash = template_hash(template, salt=deployment.status.collision_count or 0)
    marked = {TEMPLATE_HASH_LABEL: own_hash}
    labels = {**(template.metadata.labels or {}), **marked}
    selector = deployment.spec.selector or LabelSelector()
    revision = 1 + max(map(_revision, others), default=0)
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.name}-{own_hash}",
            namespace=deployment.namespace,
            labels=labels,
            annotations={REVISION_ANNOTATION: str(revision), **size_annotations(deployment)},
            owner_references=(owner_reference(deployment),),
        ),
        spec=ReplicaSetSpec(
            replicas=size,
            selector=replace(selector, match_labels={**(selector.match_labels or {}), **marked}),
            template=replace(template, metadata=replace(template.metadata, labels=labels)),
            min_ready_seconds=deployment.spec.min_ready_seconds,
        ),
    )


def _scale(plan: Plan, deployment: Deployment, known: ReplicaSet, size: int) -> None:
    """A set that has pods notes for how many it was scaled: a change of that number is seen by it."""
    noted = known.metadata.annotations or {}
    wanted = noted | size_annotations(deployment) if size or known.spec.replicas else noted
    if known.spec.replicas != size or wanted != noted:
        metadata = replace(known.metadata, annotations=wanted or None)
        plan.update(replace(known, metadata=metadata, spec=replace(known.spec, replicas=size)))


def size_annotations(deployment: Deployment) -> dict[str, str]:
    wanted = n_wanted(deployment)
    most = most_replicas(deployment.spec.strategy or DeploymentStrategy(), wanted)
    return {DESIRED_REPLICAS: str(wanted), MOST_REPLICAS: str(most)}
