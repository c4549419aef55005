"""What bounds a namespace and sizes a workload: quotas, limit ranges, horizontal pod autoscalers.

Scheduling looks at none of them. They decide which pods there are at all, so a dump of a cluster holds them, and
whoever plans for it reads them.

A LimitRange fills in what containers leave out, and refuses what is out of range. Items of type Container look at each
container, those of type Pod at the whole pod, those of type PersistentVolumeClaim at the storage that a claim asks for.
For these rules, objects are plain JSON, as an API server and a simulation both have them.

Next: `quota_usage` for what an object takes of a quota.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubesched.k8s.model import quantity
from kubesched.k8s.model.meta import Int32, KubeObject, KubeStruct, ResourceList
from kubesched.k8s.model.requests import Amounts, Object, container_amounts, container_totals


class ScopeRequirement(KubeStruct, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class ScopeSelector(KubeStruct, frozen=True):
    match_expressions: tuple[ScopeRequirement, ...] | None = None


class ResourceQuotaSpec(KubeStruct, frozen=True):
    hard: ResourceList | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(KubeStruct, frozen=True):
    hard: ResourceList | None = None
    used: ResourceList | None = None


class ResourceQuota(KubeObject, frozen=True):
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class LimitRangeItem(KubeStruct, frozen=True):
    """For a `Container`, a `Pod` or a `PersistentVolumeClaim`."""

    type: str = ""
    min: ResourceList | None = None
    max: ResourceList | None = None
    default: ResourceList | None = None
    default_request: ResourceList | None = None
    max_limit_request_ratio: ResourceList | None = None


class LimitRangeSpec(KubeStruct, frozen=True):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(KubeObject, frozen=True):
    spec: LimitRangeSpec = LimitRangeSpec()


class ScaleTarget(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(KubeStruct, frozen=True):
    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0


class HorizontalPodAutoscalerStatus(KubeStruct, frozen=True):
    current_replicas: Int32 = 0
    desired_replicas: Int32 = 0


class HorizontalPodAutoscaler(KubeObject, frozen=True):
    """How far a workload may grow and shrink; not by which metrics."""

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


_LIMIT_RANGER_NOTE = "kubernetes.io/limit-ranger"
_POD_LEVEL = ("cpu", "memory")
_MOST_IN_MILLI = (2**63 - 1) // 1000


def complete(limit_range: Object) -> None:
    """Fills in what a range for containers leaves out: its maximum is the default, its default the default request."""
    for item in limit_range["spec"].get("limits") or []:
        if item.get("type") != "Container":
            continue
        default = {**item.get("max", {}), **item.get("default", {})}
        request = {**item.get("min", {}), **default, **item.get("defaultRequest", {})}
        if default:
            item["default"] = default
        if request:
            item["defaultRequest"] = request


def apply_defaults(pod: Object, ranges: Iterable[Object]) -> None:
    """Sets default requests and limits, and says so in an annotation; the first range that has one sets it."""
    for one in ranges:
        limits: dict[str, str] = {}
        requests: dict[str, str] = {}
        for item in _items(one, "Container"):
            limits |= item.get("default", {})
            requests |= item.get("defaultRequest", {})
        notes: list[str] = []
        for sort, word in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(sort) or []:
                notes += _fill(container, limits, requests, word)
        if notes:
            text = "LimitRanger plugin set: " + "; ".join(notes)
            pod["metadata"].setdefault("annotations", {})[_LIMIT_RANGER_NOTE] = text


def _items(limit_range: Object, sort: str) -> list[Object]:
    return [item for item in limit_range["spec"].get("limits") or [] if item.get("type") == sort]


def _fill(container: Object, limits: dict[str, str], requests: dict[str, str], word: str) -> list[str]:
    notes = []
    resources = container.setdefault("resources", {})
    for sort, defaults in (("requests", requests), ("limits", limits)):
        given = resources.get(sort, {})
        added = {name: amount for name, amount in defaults.items() if name not in given}
        if added:
            resources[sort] = {**given, **added}
            notes.append(f"{', '.join(sorted(added))} {sort[:-1]} for {word} {container.get('name', '')}")
    return notes


def first_violation(pod: Object, ranges: Iterable[Object]) -> str:
    """What is out of the first range that refuses the pod, "" if none does."""
    return _first(ranges, lambda one: _pod_violations(pod, one))


def first_claim_violation(claim: Object, ranges: Iterable[Object]) -> str:
    """What is out of the first range that refuses the volume claim, "" if none does."""
    requests = container_amounts(claim["spec"], "requests")
    return _first(ranges, lambda one: _claim_violations(requests, one))


def _first(ranges: Iterable[Object], violations: Callable[[Object], list[str]]) -> str:
    for one in ranges:
        if wrong := list(dict.fromkeys(violations(one))):
            return wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
    return ""


def _pod_violations(pod: Object, limit_range: Object) -> list[str]:
    spec = pod["spec"]
    wrong: list[str] = []
    for item in _items(limit_range, "Container"):
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            amounts = (container_amounts(container, "requests"), container_amounts(container, "limits"))
            wrong += _violations(item, *amounts, "Container")
    for item in _items(limit_range, "Pod"):
        wrong += _violations(item, _pod_totals(spec, "requests"), _pod_totals(spec, "limits"), "Pod")
    return wrong


def _pod_totals(spec: Object, sort: str) -> Amounts:
    own = container_amounts(spec, sort)
    return container_totals(spec, sort) | {name: amount for name, amount in own.items() if name in _POD_LEVEL}


def _claim_violations(requests: Amounts, limit_range: Object) -> list[str]:
    wrong: list[str] = []
    for item in _items(limit_range, "PersistentVolumeClaim"):
        wrong += _below(item, requests, {}, "PersistentVolumeClaim")
        for name, most in sorted(item.get("max", {}).items()):
            rule = f"maximum {name} usage per PersistentVolumeClaim is {most}"
            if name not in requests:
                wrong.append(f"{rule}.  No request is specified")
            elif requests[name] > quantity.parse(most):
                wrong.append(f"{rule}, but request is {requests[name]}")
    return wrong


def _violations(item: Object, requests: Amounts, limits: Amounts, sort: str) -> list[str]:
    wrong = _below(item, requests, limits, sort)
    for name, text in sorted(item.get("max", {}).items()):
        most = quantity.parse(text)
        rule = f"maximum {name} usage per {sort} is {text}"
        if name not in limits:
            wrong.append(f"{rule}.  No limit is specified")
        elif limits[name] > most:
            wrong.append(f"{rule}, but limit is {limits[name]}")
        elif name in requests and requests[name] > most:
            wrong.append(f"{rule}, but request is {requests[name]}")
    for name, text in sorted(item.get("maxLimitRequestRatio", {}).items()):
        wrong += _too_far_apart(name, text, requests, limits, sort)
    return wrong


def _below(item: Object, requests: Amounts, limits: Amounts, sort: str) -> list[str]:
    wrong = []
    for name, text in sorted(item.get("min", {}).items()):
        least = quantity.parse(text)
        rule = f"minimum {name} usage per {sort} is {text}"
        if name not in requests:
            wrong.append(f"{rule}.  No request is specified")
        elif requests[name] < least:
            wrong.append(f"{rule}, but request is {requests[name]}")
        elif name in limits and limits[name] < least:
            wrong.append(f"{rule}, but limit is {limits[name]}")
    return wrong


def _too_far_apart(name: str, text: str, requests: Amounts, limits: Amounts, sort: str) -> list[str]:
    rule = f"{name} max limit to request ratio per {sort} is {text}"
    if not requests.get(name):
        return [f"{rule}, but no request is specified or request is 0"]
    if not limits.get(name):
        return [f"{rule}, but no limit is specified or limit is 0"]
    request, limit, most = requests[name], limits[name], quantity.parse(text)
    if max(request.value, limit.value, most.value) <= _MOST_IN_MILLI:
        ratio = limit.milli_value / request.milli_value
    else:
        ratio = limit.value / request.value
    return [f"{rule}, but provided ratio is {ratio:f}"] if ratio > most.nanos / quantity.NANO else []
