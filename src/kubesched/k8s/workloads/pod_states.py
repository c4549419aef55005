"""What controllers ask about a pod: does it count, does it run, is it ready, how long does it stay where it is?

A hollow pod runs as its annotations say: `kubesched.dev/duration` is how long; without it, it runs on.
`kubesched.dev/result: Failed` makes it fail at the end of that time, `kubesched.dev/exit-code` with which code.
Simulated and hollow nodes both ask here.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Node, Pod, PodCondition, Taint, Toleration
from kubesched.k8s.model.meta import ObjectMeta, controller_of
from kubesched.k8s.model.reported_pods import ReportedCondition
from kubesched.k8s.model.taints import NO_EXECUTE, tolerates
from kubesched.k8s.model.times import Duration, DurationError, InstantError, parse_instant

POD_SUCCEEDED = "Succeeded"
POD_FAILED = "Failed"
POD_RUNNING = "Running"
POD_PENDING = "Pending"

READY = "Ready"


def is_active(pod: Pod) -> bool:
    """Neither finished nor on its way out: the pod counts for its controller."""
    return not pod.is_terminal and not pod.is_terminating


MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
DAEMON_ANNOTATION = "cluster-autoscaler.kubernetes.io/daemonset-pod"
"""Controllers of their own kind put it on pods that belong to a node as daemons do."""
NODE_BOUND_OWNERS = ("DaemonSet", "Node")
"""Kinds whose pods come and go with a node."""


def belongs_to_its_node(pod: Pod) -> bool:
    """A daemon's pod, or a static one: a drain leaves it, and it is not recreated elsewhere when the node goes."""
    owner = controller_of(pod.metadata)
    annotations = pod.metadata.annotations or {}
    if MIRROR_ANNOTATION in annotations or annotations.get(DAEMON_ANNOTATION) == "true":
        return True
    return owner is not None and owner.kind in NODE_BOUND_OWNERS


def is_daemon(pod: Pod) -> bool:
    """A DaemonSet makes it, for one node."""
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind == "DaemonSet"


def condition_of(pod: Pod, kind: str) -> PodCondition | None:
    return next((known for known in pod.status.conditions or () if known.type == kind), None)


def is_ready(pod: Pod) -> bool:
    """A pod that runs and says nothing about it, as in files written by hand, is ready."""
    condition = condition_of(pod, READY)
    return pod.status.phase == POD_RUNNING if condition is None else condition.status == "True"


def is_healthy(pod: Pod) -> bool:
    """Runs, is ready, and is to stay."""
    return is_active(pod) and is_ready(pod)


def ready_since_s(pod: Pod) -> float:
    """Since when its condition says so; if not reported, since the beginning."""
    condition = condition_of(pod, READY)
    text = condition.last_transition_time if isinstance(condition, ReportedCondition) else None
    try:
        return parse_instant(text) if text else 0.0
    except InstantError:
        return 0.0


def is_available(pod: Pod, min_ready_s: int, now_s: float) -> bool:
    """Ready, and long enough so."""
    return is_healthy(pod) and (min_ready_s == 0 or ready_since_s(pod) + min_ready_s <= now_s)


def available_next_s(pods: Iterable[Pod], min_ready_s: int, now_s: float) -> float | None:
    """When the next of those that are ready will have been so long enough."""
    if min_ready_s == 0:
        return None
    times = (ready_since_s(pod) + min_ready_s for pod in pods if is_healthy(pod))
    return min((at_s for at_s in times if at_s > now_s), default=None)


def with_condition(pod: Pod, condition: PodCondition) -> Pod:
    return replace(pod, status=replace(pod.status, conditions=merge_condition(pod.status.conditions, condition)))


def merge_condition(known: tuple[PodCondition, ...] | None, condition: PodCondition) -> tuple[PodCondition, ...]:
    """As a strategic merge does: in the place of the one of its type, or at the end."""
    if not known:
        return (condition,)
    kind = condition.type
    for other in known:
        if other.type == kind:
            return tuple([condition if other.type == kind else other for other in known])
    return (*known, condition)


DURATION_ANNOTATION = "kubesched.dev/duration"
RESULT_ANNOTATION = "kubesched.dev/result"
EXIT_CODE_ANNOTATION = "kubesched.dev/exit-code"
_HIGHEST_EXIT_CODE = 255


class AnnotationError(KubeschedError, ValueError):
    """An annotation of ours cannot be understood."""


def duration_s(metadata: ObjectMeta) -> float | None:
    """How long a pod with this metadata runs; None forever. Raises AnnotationError."""
    return seconds_of(metadata, DURATION_ANNOTATION)


def seconds_of(metadata: ObjectMeta, key: str) -> float | None:
    """What an annotation says that holds a duration. Raises AnnotationError."""
    text = (metadata.annotations or {}).get(key)
    if text is None:
        return None
    try:
        found = Duration.parse(text).seconds
    except DurationError as problem:
        raise AnnotationError(f"{key}: {problem}") from None
    if found < 0:
        raise AnnotationError(f'{key}: "{text}" is negative')
    return found


def fails(metadata: ObjectMeta) -> bool:
    """Whether a pod with this metadata ends in failure. Raises AnnotationError."""
    return exit_code(metadata) != 0


def exit_code(metadata: ObjectMeta) -> int:
    """With which its containers end. Raises AnnotationError."""
    annotations = metadata.annotations or {}
    result = annotations.get(RESULT_ANNOTATION)
    if result not in (None, POD_SUCCEEDED, POD_FAILED):
        raise AnnotationError(f'{RESULT_ANNOTATION}: "{result}" is neither {POD_SUCCEEDED} nor {POD_FAILED}')
    text = annotations.get(EXIT_CODE_ANNOTATION)
    if text is None:
        return 1 if result == POD_FAILED else 0
    if not text.isdecimal() or not text.isascii() or int(text[:9]) > _HIGHEST_EXIT_CODE:
        raise AnnotationError(f'{EXIT_CODE_ANNOTATION}: "{text}" is not a number from 0 to {_HIGHEST_EXIT_CODE}')
    if result is not None and (result == POD_FAILED) != (int(text) != 0):
        raise AnnotationError(f'{EXIT_CODE_ANNOTATION}: "{text}" does not go with {RESULT_ANNOTATION}: {result}')
    return int(text)


def tolerated_for_s(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> float | None:
    """How long a pod stays on a node with these taints; None for good."""
    known = tuple(tolerations)
    spans: list[float] = []
    for taint in taints:
        covering = [toleration for toleration in known if tolerates(toleration, taint)]
        if not covering:
            return 0.0
        limits = (toleration.toleration_seconds for toleration in covering)
        spans.extend(max(0.0, seconds) for seconds in limits if seconds is not None)
    return min(spans, default=None)


def driving_taints(node: Node) -> tuple[Taint, ...]:
    """Those with the effect NoExecute."""
    return tuple(taint for taint in node.spec.taints or () if taint.effect == NO_EXECUTE)
