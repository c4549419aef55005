"""A pod of a hollow node, moved on to the present: init containers one after another, then the others, then its phase.

    waiting ──▶ init containers ──▶ Running, ready when all are ──▶ Succeeded or Failed

Pure: what was reported last and the time in; what is to be reported now, and when to look again, out. The status is
written down as JSON has it.

Next: `containers` for a single container.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from kubesched.k8s.model.reported_pods import ContainerState, ContainerStateRunning, ReportedContainerStatus
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.pod_states import (
    POD_FAILED,
    POD_PENDING,
    POD_RUNNING,
    POD_SUCCEEDED,
    AnnotationError,
    duration_s,
    exit_code,
)
from kubesched.playground.hollow_nodes.containers import (
    HollowContainer,
    HollowPod,
    Moved,
    RunBook,
    ended,
    instant,
    move,
    ready_after_s,
    waiting,
)

Statuses = tuple[ReportedContainerStatus, ...]


@dataclass(frozen=True, slots=True)
class PodReport:
    """What a kubelet says of a pod."""

    phase: str
    init: Statuses
    containers: Statuses
    ephemeral: Statuses
    is_initialized: bool
    started_s: float
    reason: str = ""
    message: str = ""


@dataclass(slots=True)
class Turn:
    """A report, when to look again, and which containers were started or are held back since the last one."""

    report: PodReport
    at_s: float | None = None
    started: list[HollowContainer] = field(default_factory=list)
    backed_off: list[tuple[HollowContainer, ReportedContainerStatus]] = field(default_factory=list)

    def look_at(self, at_s: float | None) -> None:
        if at_s is not None:
            self.at_s = at_s if self.at_s is None else min(self.at_s, at_s)

    def take(self, container: HollowContainer, moved: Moved) -> ReportedContainerStatus:
        self.look_at(moved.at_s)
        self.started += [container] * moved.n_started
        if moved.has_backed_off:
            self.backed_off.append((container, moved.status))
        return moved.status


def play(pod: HollowPod, book: RunBook, now_s: float) -> Turn:
    """Of a pod that is neither over nor on its way out."""
    started_s = instant(pod.status.start_time, now_s)
    turn = Turn(PodReport(POD_PENDING, (), (), (), is_initialized=False, started_s=started_s))
    init, is_initialized, has_failed = _init(pod, book, now_s, turn)
    if is_initialized:
        containers = _containers(pod, book, now_s, turn)
    else:
        containers = tuple(_seen(pod, c, "PodInitializing") for c in pod.spec.containers)
    ephemeral = tuple(
        turn.take(container, move(pod, container, _seen_ephemeral(pod, container), book, now_s))
        for container in pod.spec.ephemeral_containers or ()
    )
    phase = POD_FAILED if has_failed else _phase(pod, containers, is_initialized)
    turn.report = PodReport(phase, init, containers, ephemeral, is_initialized, started_s)
    return _within_deadlines(pod, turn, now_s)


def stopped(pod: HollowPod, code: int, now_s: float) -> PodReport:
    """A pod that was deleted, when all its containers have ended."""
    containers = tuple(_stopped(_seen(pod, c, "ContainerCreating"), code, now_s) for c in pod.spec.containers)
    init = tuple(_stopped(_seen(pod, c, "PodInitializing"), code, now_s) for c in pod.spec.init_containers or ())
    codes = [status.state.terminated.exit_code for status in containers if status.state and status.state.terminated]
    phase = POD_SUCCEEDED if codes and len(codes) == len(containers) and not any(codes) else POD_FAILED
    return PodReport(phase, init, containers, (), True, instant(pod.status.start_time, now_s))


def _stopped(status: ReportedContainerStatus, code: int, now_s: float) -> ReportedContainerStatus:
    state = status.state
    if state is None or state.running is None:
        return status
    return ended(status, code, instant(state.running.started_at, now_s), now_s)


def _init(pod: HollowPod, book: RunBook, now_s: float, turn: Turn) -> tuple[Statuses, bool, bool]:
    """(statuses, whether the others may start, whether the pod has failed by one of these)."""
    found: list[ReportedContainerStatus] = []
    is_open, has_failed = True, False
    for container in pod.spec.init_containers or ():
        known = _seen(pod, container, "PodInitializing")
        if not is_open:
            found.append(known)
            continue
        status = turn.take(container, move(pod, container, known, book, now_s))
        state = status.state or ContainerState()
        if container.restart_policy == "Always":
            is_ready = state.running is not None and _is_ready(pod, container, status, now_s, turn)
            status = replace(status, ready=is_ready)
            is_open = state.running is not None
        else:
            is_open = state.terminated is not None and state.terminated.exit_code == 0
            status = replace(status, ready=is_open)
            has_failed = state.terminated is not None and not is_open
        found.append(status)
    return tuple(found), is_open, has_failed


def _containers(pod: HollowPod, book: RunBook, now_s: float, turn: Turn) -> Statuses:
    found = []
    for container in pod.spec.containers:
        known = _seen(pod, container, "ContainerCreating")
        status = turn.take(container, move(pod, container, known, book, now_s))
        found.append(replace(status, ready=_is_ready(pod, container, status, now_s, turn)))
    return tuple(found)


def _is_ready(
    pod: HollowPod, container: HollowContainer, status: ReportedContainerStatus, now_s: float, turn: Turn
) -> bool:
    running = None if status.state is None else status.state.running
    if running is None:
        return False
    after_s = ready_after_s(pod, container)
    if after_s == 0:
        return True
    at_s = instant(running.started_at, now_s) + after_s
    if at_s > now_s:
        turn.look_at(at_s)
    return at_s <= now_s


def _phase(pod: HollowPod, containers: Sequence[ReportedContainerStatus], is_initialized: bool) -> str:
    if not is_initialized:
        return POD_PENDING
    states = [status.state or ContainerState() for status in containers]
    last = [status.last_state or ContainerState() for status in containers]
    if any(s.waiting is not None and b.terminated is None for s, b in zip(states, last, strict=True)):
        return POD_PENDING
    if any(state.terminated is None for state in states):
        return POD_RUNNING  # some run, or wait to be started again
    codes = [state.terminated.exit_code for state in states if state.terminated is not None]
    if (pod.spec.restart_policy or "Always") == "Always":
        return POD_RUNNING
    if not any(codes):
        return POD_SUCCEEDED
    return POD_FAILED if pod.spec.restart_policy == "Never" else POD_RUNNING


def _within_deadlines(pod: HollowPod, turn: Turn, now_s: float) -> Turn:
    """The life of the pod as a whole: what its annotation gives it, and its `activeDeadlineSeconds`."""
    report = turn.report
    if report.phase in (POD_SUCCEEDED, POD_FAILED):
        turn.at_s = None
        return turn
    try:
        for_s, code = duration_s(pod.metadata), exit_code(pod.metadata)
    except AnnotationError:
        for_s, code = None, 0
    allowed_s = pod.spec.active_deadline_seconds
    if for_s is not None and report.is_initialized:
        end_s = report.started_s + for_s
        if end_s <= now_s:
            phase = POD_SUCCEEDED if code == 0 else POD_FAILED
            containers = tuple(_stopped(status, code, now_s) for status in report.containers)
            turn.report, turn.at_s = dataclass_replace(report, phase=phase, containers=containers), None
            return turn
        turn.look_at(end_s)
    if allowed_s is not None:
        end_s = report.started_s + allowed_s
        if end_s <= now_s:
            containers = tuple(_stopped(status, 137, now_s) for status in report.containers)
            message = "Pod was active on the node longer than the specified deadline"
            late = dataclass_replace(report, phase=POD_FAILED, containers=containers)
            turn.report, turn.at_s = dataclass_replace(late, reason="DeadlineExceeded", message=message), None
            return turn
        turn.look_at(end_s)
    return turn


def _seen(pod: HollowPod, container: HollowContainer, reason: str) -> ReportedContainerStatus:
    """As reported last. A pod that is said to run, without more, runs since its start."""
    known = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    found = next((status for status in known if status.name == container.name), None)
    if found is not None:
        return found
    if pod.status.phase == POD_RUNNING and not known and container in pod.spec.containers:
        state = ContainerState(running=ContainerStateRunning(pod.status.start_time))
        return ReportedContainerStatus(name=container.name, image=container.image, state=state)
    return waiting(container, reason)


def _seen_ephemeral(pod: HollowPod, container: HollowContainer) -> ReportedContainerStatus:
    known = pod.status.ephemeral_container_statuses or ()
    found = next((status for status in known if status.name == container.name), None)
    return found or waiting(container, "ContainerCreating")


def begun_now(pod: HollowPod, now_s: float) -> HollowPod:
    """The pod as its kubelet takes it up."""
    if pod.status.start_time:
        return pod
    return replace(pod, status=replace(pod.status, start_time=print_instant(now_s)))


Body = dict[str, Any]

_ENDED = {POD_SUCCEEDED: "PodCompleted", POD_FAILED: "PodFailed"}


def status_body(pod: HollowPod, report: PodReport, now_s: float) -> Body:
    """All that a kubelet says."""
    host = host_ip(pod.spec.node_name)
    status: Body = {
        "phase": report.phase,
        "conditions": conditions(pod, report, now_s),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": print_instant(report.started_s),
        "containerStatuses": [_container(one, bool(one.state and one.state.running)) for one in report.containers],
    }
    if report.is_initialized or report.init:
        ip = host if pod.spec.host_network else pod_ip(pod.metadata.uid)
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    if report.init:
        status["initContainerStatuses"] = [_container(one, _has_started(one)) for one in report.init]
    if report.ephemeral:
        status["ephemeralContainerStatuses"] = [_container(one, False) for one in report.ephemeral]
    if report.reason:
        status |= {"reason": report.reason, "message": report.message}
    return status


def says_the_same(pod: HollowPod, report: PodReport, made: Sequence[Body]) -> bool:
    """Whether all of it was reported before; `made` are the conditions of the report."""
    known = pod.status
    if known.phase != report.phase or known.reason != report.reason:
        return False
    for kind, status, reason in ((one["type"], one["status"], one.get("reason") or "") for one in made):
        if not any(c.type == kind and c.status == status and c.reason == reason for c in known.conditions or ()):
            return False
    runs_without_more = known.container_statuses is None and known.phase == POD_RUNNING
    return (
        (runs_without_more or _same(known.container_statuses, report.containers))
        and (runs_without_more or _same(known.init_container_statuses, report.init))
        and _same(known.ephemeral_container_statuses, report.ephemeral)
    )


def _same(known: Statuses | None, reported: Statuses) -> bool:
    return [_essence(one) for one in known or ()] == [_essence(one) for one in reported]


def _essence(status: ReportedContainerStatus) -> tuple[object, ...]:
    last = None if status.last_state == ContainerState() else status.last_state
    return status.name, status.image, status.ready, status.restart_count, status.state, last


def conditions(pod: HollowPod, report: PodReport, now_s: float) -> list[Body]:
    """Those of a kubelet; the time of the last transition stays where the status does."""
    moment = print_instant(now_s)
    before = {known.type: known for known in pod.status.conditions or ()}
    made: list[Body] = []
    for kind, is_true, reason, message in _verdicts(pod, report):
        status = "True" if is_true else "False"
        known = before.get(kind)
        kept = known is not None and known.status == status and known.last_transition_time
        condition: Body = {"type": kind, "status": status, "lastTransitionTime": kept or moment}
        condition |= {"reason": reason or None, "message": message or None}  # None takes away what was there before
        made.append(condition if known is not None else {k: v for k, v in condition.items() if v is not None})
    return made


def _verdicts(pod: HollowPod, report: PodReport) -> Iterable[tuple[str, bool, str, str]]:
    ended = _ENDED.get(report.phase, "")
    yield "PodReadyToStartContainers", not ended, "", ""
    unready = [one.name for one in report.containers if not one.ready]
    unready += [one.name for one in report.init if one.state and one.state.running and not one.ready]
    if report.is_initialized:
        yield "Initialized", True, ended if report.phase == POD_SUCCEEDED else "", ""
    else:
        waiting = ", ".join(one.name for one in report.init if not one.ready).replace(", ", " ")
        yield "Initialized", False, "ContainersNotInitialized", f"containers with incomplete status: [{waiting}]"
    if ended:
        yield "Ready", False, ended, ""
        yield "ContainersReady", False, ended, ""
        return
    message = f"containers with unready status: [{' '.join(unready)}]" if unready else ""
    reason = "ContainersNotReady" if unready else ""
    closed = "" if unready else _closed_gates(pod)
    yield "Ready", not unready and not closed, "ReadinessGatesNotReady" if closed else reason, closed or message
    yield "ContainersReady", not unready, reason, message


def _closed_gates(pod: HollowPod) -> str:
    """What the readiness gates lack, in a kubelet's words."""
    known = {condition.type: condition.status for condition in pod.status.conditions or ()}
    lacking = []
    for gate in pod.spec.readiness_gates or ():
        kind = gate.condition_type
        if kind not in known:
            lacking.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif known[kind] != "True":
            lacking.append(f'the status of pod readiness gate "{kind}" is not "True", but {known[kind]}')
    return ", ".join(lacking)


def pod_ip(uid: str) -> str:
    """An address in 10.0.0.0/8 that follows from the uid; two pods seldom share one."""
    drawn = blake2b(uid.encode(), digest_size=3).digest()
    return f"10.{drawn[0]}.{drawn[1]}.{drawn[2] % 254 + 1}"


def host_ip(node_name: str) -> str:
    drawn = blake2b(node_name.encode(), digest_size=2).digest()
    return f"172.16.{drawn[0]}.{drawn[1] % 254 + 1}"


def _container(status: ReportedContainerStatus, has_started: bool) -> Body:
    return {
        "name": status.name,
        "image": status.image,
        "imageID": "",
        "ready": status.ready,
        "started": has_started,
        "restartCount": status.restart_count,
        "state": _state(status.state),
        "lastState": _state(status.last_state),
    }


def _has_started(status: ReportedContainerStatus) -> bool:
    return status.state is not None and (status.state.running is not None or status.ready)


def _state(state: ContainerState | None) -> Body:
    if state is None:
        return {}
    if state.waiting is not None:
        waiting = {"reason": state.waiting.reason}
        return {"waiting": waiting | ({"message": state.waiting.message} if state.waiting.message else {})}
    if state.running is not None:
        return {"running": {"startedAt": state.running.started_at}}
    if state.terminated is not None:
        done = state.terminated
        times = {"startedAt": done.started_at, "finishedAt": done.finished_at}
        return {"terminated": {"exitCode": done.exit_code, "reason": done.reason, **times}}
    return {}
