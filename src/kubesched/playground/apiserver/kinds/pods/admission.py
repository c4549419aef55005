"""What the API server adds to pods on their way in: limit ranges, priority, default tolerations, runtime class.

Refusals are raised as 403, in the admission plugins' words. ``accounts.py`` has the service account, where it counts.
"""

from __future__ import annotations

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds.pods import accounts, limits
from kubesched.playground.apiserver.kinds.pods.tolerations import merge_tolerations
from kubesched.playground.apiserver.served_resource import Object, WriteContext

_PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
_TOLERATION_SECONDS = 300
_UNHEALTHY_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_new(pod: Object, ctx: WriteContext) -> None:
    ranges = list(ctx.lookup.list("limitranges", pod["metadata"].get("namespace", "")))
    limits.apply_defaults(pod, ranges)
    if ctx.mounts_tokens and (why := accounts.admit(pod, ctx)):
        raise _refused(pod, why)
    _set_priority(pod, ctx)
    add_default_tolerations(pod["spec"])
    _apply_runtime_class(pod, ctx)


def validate_new(pod: Object, ctx: WriteContext) -> None:
    """What is refused only after the pod is known to be valid."""
    spec = pod["spec"]
    if "overhead" in spec:
        runtime = ctx.lookup.get(_RUNTIME_CLASSES, "", spec.get("runtimeClassName", "")) or {}
        if "podFixed" not in runtime.get("overhead", {}):
            raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    ranges = list(ctx.lookup.list("limitranges", pod["metadata"].get("namespace", "")))
    if violation := limits.first_violation(pod, ranges):
        raise _refused(pod, violation)


def admit_changed(pod: Object, old: Object) -> None:
    """Priority cannot change; what the client left out is put back."""
    for name in ("priority", "preemptionPolicy"):
        if name not in pod["spec"] and name in old["spec"]:
            pod["spec"][name] = old["spec"][name]
    add_default_tolerations(pod["spec"])


def add_default_tolerations(spec: Object) -> None:
    """Five minutes on a node that is not ready or not reachable, unless the pod says something about that itself."""
    given = list(spec.get("tolerations", []))
    for taint in _UNHEALTHY_TAINTS:
        if any(_covers(toleration, taint) for toleration in given):
            continue
        toleration: Object = {"key": taint, "operator": "Exists", "effect": "NoExecute"}
        toleration["tolerationSeconds"] = _TOLERATION_SECONDS
        spec.setdefault("tolerations", []).append(toleration)


def _covers(toleration: Object, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


def _set_priority(pod: Object, ctx: WriteContext) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    if name:
        chosen = ctx.lookup.get(_PRIORITY_CLASSES, "", name)
        if chosen is None:
            raise _refused(pod, f"no PriorityClass with name {name} was found")
    else:
        defaults = [one for one in ctx.lookup.list(_PRIORITY_CLASSES) if one.get("globalDefault")]
        chosen = min(defaults, key=lambda one: int(one["value"]), default=None)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    priority = chosen["value"] if chosen is not None else 0
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    computed = (
        "must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name"
    )
    if spec.get("priority", priority) != priority:
        raise _refused(pod, f"the integer value of priority ({spec['priority']}) {computed.format(priority)}")
    if spec.get("preemptionPolicy", policy) != policy:
        given = spec["preemptionPolicy"]
        raise _refused(pod, f"the string value of PreemptionPolicy ({given}) {computed.format(policy)}")
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy


def _apply_runtime_class(pod: Object, ctx: WriteContext) -> None:
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    runtime = ctx.lookup.get(_RUNTIME_CLASSES, "", name) if name else None
    if name and runtime is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    overhead = (runtime or {}).get("overhead", {}).get("podFixed")
    if overhead is not None:
        if spec.get("overhead", overhead) != overhead:
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    if runtime is not None and "scheduling" in runtime:
        _follow_runtime_scheduling(pod, runtime["scheduling"])


def _follow_runtime_scheduling(pod: Object, scheduling: Object) -> None:
    spec = pod["spec"]
    selector = dict(spec.get("nodeSelector", {}))
    for name, value in sorted(scheduling.get("nodeSelector", {}).items()):
        if selector.get(name, value) != value:
            where = f"runtimeClass.scheduling.nodeSelector[{name}] = {value}"
            raise _refused(pod, f"conflict: {where}; pod.spec.nodeSelector[{name}] = {selector[name]}")
        selector[name] = value
    if selector:
        spec["nodeSelector"] = selector
    merged = merge_tolerations(spec.get("tolerations", []), scheduling.get("tolerations", []))
    if merged:
        spec["tolerations"] = merged


def _refused(pod: Object, why: str) -> StatusError:
    name = pod["metadata"].get("name", "")
    return StatusError(403, "Forbidden", f'pods "{name}" is forbidden: {why}', {"name": name, "kind": "pods"})
