"""One container of a hollow node, moved on to the present: it starts, ends, waits in back-off and starts again.

Pure rules on the status that was reported last: a node that is taken up again goes on where it was.

Next: `pod_play`, which plays the containers of a pod together.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.model.reported_pods import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ReportedContainerStatus,
)
from kubesched.k8s.model.times import InstantError, parse_instant, print_instant
from kubesched.playground.hollow_nodes.container_runs import RunBook, cannot_be_pulled
from kubesched.playground.hollow_nodes.hollow_pods import HollowContainer, HollowPod

FIRST_BACKOFF_S = 10.0
LONGEST_BACKOFF_S = 300.0
CRASH_LOOP = "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class Moved:
    """A container at the present, when it moves next, and what is to be told of it."""

    status: ReportedContainerStatus
    at_s: float | None = None
    n_started: int = 0
    has_backed_off: bool = False


def move(
    pod: HollowPod, container: HollowContainer, known: ReportedContainerStatus, book: RunBook, now_s: float
) -> Moved:
    """To be called for containers that may run now."""
    status, n_started, was_waiting = known, 0, _is_crash_looping(known)
    while True:
        state = status.state or ContainerState()
        if state.running is not None:
            run = book.run(pod, container, status.restart_count, instant(state.running.started_at, now_s))
            end_s = run.ends_at_s
            if end_s is None or end_s > now_s:
                return Moved(status, end_s, n_started)
            status = ended(status, run.ending.exit_code, run.started_s, end_s)
            continue
        last = state.terminated or (status.last_state or ContainerState()).terminated
        if last is None:
            if cannot_be_pulled(container.image):
                return _unpulled(status, container, now_s)
            n_started += not book.knows(pod, container, 0)
            status = _started(status, pod, container, 0, book, now_s)
            continue
        if not restarts(pod, container, last.exit_code):
            return Moved(status, None, n_started)
        ready_s = instant(last.finished_at, now_s) + backoff_s(status.restart_count)
        if ready_s > now_s:
            return Moved(_backing_off(status, pod, container, last), ready_s, n_started, not was_waiting)
        n_started += not book.knows(pod, container, status.restart_count + 1)
        status = _started(status, pod, container, status.restart_count + 1, book, now_s)


def restarts(pod: HollowPod, container: HollowContainer, exit_code: int) -> bool:
    """By the rules of the container, by its own policy, by that of the pod. An ephemeral one has one go."""
    if container in (pod.spec.ephemeral_containers or ()):
        return False
    for rule in container.restart_policy_rules or ():
        asked = rule.exit_codes
        if asked is not None and (exit_code in (asked.values or ())) == (asked.operator == "In"):
            return rule.action == "Restart"
    policy = container.restart_policy or pod.spec.restart_policy or "Always"
    if container in (pod.spec.init_containers or ()) and container.restart_policy is None:
        return exit_code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def backoff_s(n_restarts: int) -> float:
    """After the first end it is started again at once, then later and later."""
    return 0.0 if n_restarts == 0 else min(FIRST_BACKOFF_S * 2.0 ** min(n_restarts - 1, 20), LONGEST_BACKOFF_S)


def waiting(container: HollowContainer, reason: str, message: str = "") -> ReportedContainerStatus:
    """Not started yet."""
    state = ContainerState(waiting=ContainerStateWaiting(reason, message))
    return ReportedContainerStatus(name=container.name, image=container.image, state=state)


def ended(status: ReportedContainerStatus, exit_code: int, started_s: float, end_s: float) -> ReportedContainerStatus:
    reason = "Completed" if exit_code == 0 else "Error"
    done = ContainerStateTerminated(exit_code, reason, print_instant(started_s), print_instant(end_s))
    return replace(status, ready=False, state=ContainerState(terminated=done))


def instant(text: str | None, otherwise_s: float) -> float:
    try:
        return parse_instant(text) if text else otherwise_s
    except InstantError:
        return otherwise_s


def _started(
    status: ReportedContainerStatus,
    pod: HollowPod,
    container: HollowContainer,
    attempt: int,
    book: RunBook,
    now_s: float,
) -> ReportedContainerStatus:
    run = book.run(pod, container, attempt, now_s)
    running = ContainerState(running=ContainerStateRunning(print_instant(run.started_s)))
    before = status.state if status.state is not None and status.state.terminated is not None else status.last_state
    return replace(status, image=container.image, restart_count=attempt, state=running, last_state=before, ready=False)


def _backing_off(
    status: ReportedContainerStatus, pod: HollowPod, container: HollowContainer, last: ContainerStateTerminated
) -> ReportedContainerStatus:
    for_s = int(backoff_s(status.restart_count))
    message = (
        f"back-off {for_s // 60}m{for_s % 60}s" if for_s >= 60 else f"back-off {for_s}s"
    ) + f" restarting failed container={container.name} pod={pod.name}_{pod.namespace}({pod.metadata.uid})"
    state = ContainerState(waiting=ContainerStateWaiting(CRASH_LOOP, message))
    return replace(status, ready=False, state=state, last_state=ContainerState(terminated=last))


def _unpulled(status: ReportedContainerStatus, container: HollowContainer, now_s: float) -> Moved:
    """An error first, and then it is said to be tried again for as long as anybody looks."""
    known = (status.state or ContainerState()).waiting
    if known is not None and known.reason in ("ErrImagePull", "ImagePullBackOff"):
        message = f'Back-off pulling image "{container.image}"'
        return Moved(waiting(container, "ImagePullBackOff", message))
    message = f'failed to pull image "{container.image}": not found'
    return Moved(waiting(container, "ErrImagePull", message), now_s + FIRST_BACKOFF_S, has_backed_off=True)


def _is_crash_looping(status: ReportedContainerStatus) -> bool:
    state = status.state
    return state is not None and state.waiting is not None and state.waiting.reason == CRASH_LOOP
