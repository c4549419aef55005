"""The pod's table: what ``kubectl get pods`` shows, with -o wide and without."""

from __future__ import annotations

from kubesched.playground.apiserver.kinds.ages import since
from kubesched.playground.apiserver.kinds.table_columns import AGE, NAME, described
from kubesched.playground.apiserver.served_resource import Object, TableColumn


def _init_containers(pod: Object) -> dict[str, Object]:
    return {container["name"]: container for container in pod["spec"].get("initContainers", [])}


def _is_sidecar(container: Object | None) -> bool:
    return (container or {}).get("restartPolicy") == "Always"


def _has_condition(pod: Object, kind: str) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def _init_progress(pod: Object) -> tuple[str, int]:
    """The reason while initialising ("" when through), and how many sidecars are ready."""
    known = _init_containers(pod)
    n_ready = 0
    for position, status in enumerate(pod.get("status", {}).get("initContainerStatuses", [])):
        state = status.get("state", {})
        ended = state.get("terminated")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if _is_sidecar(known.get(status.get("name", ""))) and status.get("started"):
            n_ready += bool(status.get("ready"))
            continue
        if ended is not None:
            return f"Init:{_ended_reason(ended)}", n_ready
        waiting = state.get("waiting", {}).get("reason", "")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}", n_ready
        return f"Init:{position}/{len(known)}", n_ready
    return "", n_ready


def _ended_reason(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _running_reason(pod: Object, reason: str) -> tuple[str, int]:
    """The reason as the containers give it, and how many are ready."""
    n_ready = 0
    has_running = False
    error = ""
    for status in reversed(pod.get("status", {}).get("containerStatuses", [])):
        state = status.get("state", {})
        ended = state.get("terminated")
        if state.get("waiting", {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif ended is not None:
            reason = _ended_reason(ended)
            error = reason if ended.get("exitCode", 0) else error
        elif status.get("ready") and "running" in state:
            has_running = True
            n_ready += 1
    if reason == "Completed":
        if has_running:
            reason = "Running" if _has_condition(pod, "Ready") else error or "NotReady"
        else:
            reason = error or reason
    return reason, n_ready


def _summary(pod: Object) -> tuple[str, int]:
    """Status and number of ready containers."""
    status = pod.get("status", {})
    phase = status.get("phase", "")
    reason = status.get("reason") or phase
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initialising, n_ready = _init_progress(pod)
    if initialising:
        reason = initialising
    if not initialising or _has_condition(pod, "Initialized"):
        reason, n_running = _running_reason(pod, reason)
        n_ready += n_running
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            reason = "Terminating"
    return reason, n_ready


def _ready(pod: Object) -> str:
    sidecars = [container for container in _init_containers(pod).values() if _is_sidecar(container)]
    return f"{_summary(pod)[1]}/{len(pod['spec'].get('containers') or []) + len(sidecars)}"


def _restarts(pod: Object) -> str:
    status = pod.get("status", {})
    known = _init_containers(pod)
    init = status.get("initContainerStatuses", [])
    if not _init_progress(pod)[0] or _has_condition(pod, "Initialized"):
        init = [one for one in init if _is_sidecar(known.get(one.get("name", "")))]
        init = [*init, *status.get("containerStatuses", [])]
    n_restarts = sum(one.get("restartCount", 0) for one in init)
    ends = [one.get("lastState", {}).get("terminated", {}).get("finishedAt") for one in init]
    last = max((end for end in ends if end), default=None)
    return f"{n_restarts} ({since(last)} ago)" if n_restarts and last else str(n_restarts)


def _ip(pod: Object) -> str:
    addresses = pod.get("status", {}).get("podIPs", [])
    return addresses[0].get("ip", "") or "<none>" if addresses else "<none>"


def _readiness_gates(pod: Object) -> str:
    gates = pod["spec"].get("readinessGates", [])
    n_true = sum(_has_condition(pod, gate["conditionType"]) for gate in gates)
    return f"{n_true}/{len(gates)}" if gates else "<none>"


_STATUS = "io.k8s.api.core.v1.PodStatus"
_SPEC = "io.k8s.api.core.v1.PodSpec"
_RESTARTS_TEXT = (
    "The number of times the containers in this pod have been restarted "
    "and when the last container in this pod has restarted."
)

COLUMNS = (
    NAME,
    TableColumn("Ready", _ready, description="The aggregate readiness state of this pod for accepting traffic."),
    TableColumn(
        "Status", lambda pod: _summary(pod)[0], description="The aggregate status of the containers in this pod."
    ),
    TableColumn("Restarts", _restarts, description=_RESTARTS_TEXT),
    AGE,
    described("IP", _ip, _STATUS, "podIP", priority=1),
    described("Node", lambda pod: pod["spec"].get("nodeName") or "<none>", _SPEC, "nodeName", priority=1),
    described(
        "Nominated Node",
        lambda pod: pod.get("status", {}).get("nominatedNodeName") or "<none>",
        _STATUS,
        "nominatedNodeName",
        priority=1,
    ),
    described("Readiness Gates", _readiness_gates, _SPEC, "readinessGates", priority=1),
)
