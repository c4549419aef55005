"""Replica sets and replication controllers: as many pods as wanted, no more and no less.

When there are too many, those go first that are worth least: not yet on a node, not running, not ready, cheap to lose,
doubled up on a node, new. Where a workload gives a number as a share of the whole (`25%`), `share_of` works it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil, floor, inf

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.apps import Deployment, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController
from kubesched.k8s.model.meta import KubeObject, OwnerReference, controller_of
from kubesched.k8s.workloads.actions import UNPACED, Bursts, NameSource, Plan
from kubesched.k8s.workloads.pod_states import available_next_s, is_active, is_ready
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, pod_from_template

_MOST_DIGITS = 9
_MOST_SHOWN = 100


class ShareError(KubeschedError, ValueError):
    """Neither a number nor a percentage."""


def share_of(value: int | str, whole: int, *, rounding_up: bool) -> int:
    """`25%` of the whole, rounded; a number is itself."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    if text == value or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise ShareError(f'invalid value "{value[:_MOST_SHOWN]}": a number or a percentage is expected')
    exact = whole * int(text) / 100
    return ceil(exact) if rounding_up else floor(exact)


DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"

_PHASE_RANKS = {"Pending": 0, "": 0, "Unknown": 1, "Running": 2}


def sync_replicas(
    owner: ReplicaSet | ReplicationController,
    pods: Sequence[Pod],
    names: NameSource,
    bursts: Bursts = UNPACED,
    now_s: float = inf,
) -> Plan:
    """`pods` are those that belong to the owner, in whatever state."""
    plan = Plan()
    active = [pod for pod in pods if is_active(pod)]
    n_missing = n_wanted(owner) - len(active)
    for _ in range(bursts.cut(plan, n_missing, active)):
        template = owner.spec.template or EMPTY_TEMPLATE
        plan.create(pod_from_template(template, owner, names.name(f"{owner.name}-")))
    for pod in least_valuable(active, -n_missing):
        plan.delete(pod)
    next_s = available_next_s(active, owner.spec.min_ready_seconds, now_s)
    if next_s is not None:
        plan.look_again(next_s)
    return plan


def n_wanted(owner: ReplicaSet | ReplicationController | StatefulSet | Deployment) -> int:
    """A set that does not say how many wants one."""
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def scale_behind(reference: OwnerReference, by_uid: Callable[[str], KubeObject | None]) -> tuple[str, int] | None:
    """Who says how many pods there are to be, and how many: for a Deployment's replica set, the Deployment."""
    owner = by_uid(reference.uid)
    if isinstance(owner, ReplicaSet):
        parent = controller_of(owner.metadata)
        above = None if parent is None else by_uid(parent.uid)
        if isinstance(above, Deployment):
            return above.metadata.uid, n_wanted(above)
    if isinstance(owner, ReplicaSet | ReplicationController | StatefulSet):
        return owner.metadata.uid, n_wanted(owner)
    return None


def least_valuable(pods: Sequence[Pod], n: int) -> list[Pod]:
    """The n pods to go first."""
    if n <= 0:
        return []
    on_node = Counter(pod.spec.node_name for pod in pods if pod.spec.node_name)
    return sorted(pods, key=lambda pod: _worth(pod, on_node))[:n]


def _worth(pod: Pod, on_node: Counter[str]) -> tuple[object, ...]:
    return (
        bool(pod.spec.node_name),
        _PHASE_RANKS.get(pod.status.phase, 2),
        is_ready(pod),
        _deletion_cost(pod),
        -on_node[pod.spec.node_name],
        _newest_first(pod),
        pod.name,
    )


def _deletion_cost(pod: Pod) -> int:
    text = (pod.metadata.annotations or {}).get(DELETION_COST_ANNOTATION, "0")
    try:
        return int(text)
    except ValueError:
        return 0  # an API server would have refused it


def _newest_first(pod: Pod) -> tuple[int, ...]:
    """Times of one form compare like texts."""
    return tuple(-ord(letter) for letter in pod.metadata.creation_timestamp or "")
