"""The status that a kubelet reports of a pod, as JSON has it: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from kubesched.k8s.model.reported_pods import ContainerState, ReportedContainerStatus
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.pod_states import POD_FAILED, POD_RUNNING, POD_SUCCEEDED
from kubesched.playground.hollow_nodes.hollow_pods import HollowPod
from kubesched.playground.hollow_nodes.pod_play import PodReport, Statuses

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
