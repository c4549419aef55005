"""The status that a kubelet reports of a pod, as JSON has it: pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from kubesched.expansion.pod_runs import AnnotationError, fails
from kubesched.expansion.pod_states import POD_FAILED, POD_RUNNING, POD_SUCCEEDED
from kubesched.model.core import Container, Pod
from kubesched.model.times import print_instant

Body = dict[str, Any]

_WHILE_RUNNING = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def running_status(pod: Pod, host_ip: str, now_s: float) -> Body:
    moment = print_instant(now_s)
    state = {"running": {"startedAt": moment}}
    ip = host_ip if pod.spec.host_network else pod_ip(pod.metadata.uid)
    status: Body = {
        "phase": POD_RUNNING,
        "conditions": _conditions(
            {"PodReadyToStartContainers": "", "Initialized": "", "Ready": "", "ContainersReady": ""}, moment
        ),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": moment,
        "containerStatuses": _containers(pod.spec.containers, state, is_ready=True),
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = _init_containers(pod.spec.init_containers, moment)
    return status


def ready_again_status(now_s: float) -> Body:
    """After somebody took the node for lost."""
    return {"conditions": _conditions({"Ready": ""}, print_instant(now_s))}


def ended_status(pod: Pod, now_s: float) -> Body:
    """As its annotation says: well, or in failure."""
    try:
        has_failed = fails(pod.metadata)
    except AnnotationError:
        has_failed = False
    moment = print_instant(now_s)
    started = pod.status.start_time or moment
    terminated = {
        "exitCode": 1 if has_failed else 0,
        "reason": "Error" if has_failed else "Completed",
        "startedAt": started,
        "finishedAt": moment,
    }
    reason = "PodFailed" if has_failed else "PodCompleted"
    return {
        "phase": POD_FAILED if has_failed else POD_SUCCEEDED,
        "conditions": _conditions({"Ready": reason, "ContainersReady": reason}, moment, status="False"),
        "containerStatuses": _containers(pod.spec.containers, {"terminated": terminated}, is_ready=False),
    }


def pod_ip(uid: str) -> str:
    """An address in 10.0.0.0/8 that follows from the uid; two pods seldom share one."""
    drawn = blake2b(uid.encode(), digest_size=3).digest()
    return f"10.{drawn[0]}.{drawn[1]}.{drawn[2] % 254 + 1}"


def host_ip(node_name: str) -> str:
    drawn = blake2b(node_name.encode(), digest_size=2).digest()
    return f"172.16.{drawn[0]}.{drawn[1] % 254 + 1}"


def _conditions(reasons: dict[str, str], moment: str, status: str = "True") -> list[Body]:
    made: list[Body] = []
    for kind, reason in reasons.items():
        condition = {"type": kind, "status": status, "lastTransitionTime": moment}
        made.append({**condition, "reason": reason} if reason else condition)
    return made


def _containers(containers: Iterable[Container], state: Body, *, is_ready: bool) -> list[Body]:
    return [
        {
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "ready": is_ready,
            "started": is_ready,
            "restartCount": 0,
            "state": state,
        }
        for container in containers
    ]


def _init_containers(containers: Iterable[Container], moment: str) -> list[Body]:
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": moment, "finishedAt": moment}}
    running = {"running": {"startedAt": moment}}
    found: list[Body] = []
    for container in containers:
        is_sidecar = container.restart_policy == "Always"
        found += _containers((container,), running if is_sidecar else done, is_ready=True)
    return found
