"""The pod's rules put together, as ``registry.py`` serves v1 Pod, and its table, as kubectl shows it."""

from __future__ import annotations

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds import warnings
from kubesched.playground.apiserver.kinds.pods import admission, defaults
from kubesched.playground.apiserver.kinds.pods.changes import (
    change_errors,
    ephemeral_errors,
    resize_errors,
    status_errors,
)
from kubesched.playground.apiserver.kinds.pods.containers import image_space_errors
from kubesched.playground.apiserver.kinds.pods.defaults import set_pod_defaults
from kubesched.playground.apiserver.kinds.pods.spec import pod_spec_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, since
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext
from kubesched.playground.apiserver.storage.store import metadata_fields


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


def _set_defaults(pod: Object) -> None:
    set_pod_defaults(pod)
    _agree_on_addresses(pod["status"])


def _agree_on_addresses(status: Object) -> None:
    """The single address is the first of the list; where they differ the single one counts."""
    first, addresses = status.get("podIP"), status.get("podIPs")
    if first and (not addresses or addresses[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif addresses:
        status["podIP"] = addresses[0].get("ip", "")


def _validate(pod: Object, old: Object | None) -> list[InvalidField]:
    found = pod_spec_errors(pod["spec"], pod["metadata"].get("name", ""), "spec", is_pod=True)
    found += _token_errors(pod["spec"])
    for sort in ("containers", "initContainers"):
        found += image_space_errors(pod["spec"].get(sort) or [], f"spec.{sort}")
    return found + (_creation_errors(pod["spec"]) if old is None else change_errors(pod, old))


def _validate_admission(pod: Object, old: Object | None, ctx: WriteContext) -> None:
    if old is None:
        admission.validate_new(pod, ctx)
        ctx.warnings += warnings.for_new_pod(pod)


def _token_errors(spec: Object) -> list[InvalidField]:
    if spec.get("serviceAccountName"):
        return []
    return [
        errors.forbidden(
            f"{errors.index(f'spec.volumes[{n}].projected.sources', place)}.serviceAccountToken",
            "must not be specified when serviceAccountName is not set",
        )
        for n, volume in enumerate(spec.get("volumes", []))
        for place, source in enumerate(volume.get("projected", {}).get("sources") or [])
        if "serviceAccountToken" in source
    ]


def _creation_errors(spec: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    if spec.get("ephemeralContainers"):
        found.append(errors.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        found.append(errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found


def _selectable(pod: Object) -> dict[str, str]:
    spec, status = pod["spec"], pod.get("status", {})
    addresses = status.get("podIPs", [])
    return {
        **metadata_fields(pod),
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": addresses[0].get("ip", "") if addresses else "",
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


POD = KindRules(
    metadata_again="both",
    set_defaults=_set_defaults,
    prepare_create=defaults.prepare_create,
    validate_admission=_validate_admission,
    prepare_update=defaults.prepare_update,
    validate=_validate,
    validate_through={"status": status_errors, "resize": resize_errors, "ephemeralcontainers": ephemeral_errors},
    columns=COLUMNS,
    selectable_fields=_selectable,
)
