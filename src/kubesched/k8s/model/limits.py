"""What bounds a namespace and sizes a workload: quotas, limit ranges, horizontal pod autoscalers.

Scheduling looks at none of them. They decide which pods there are at all, so a dump of a cluster holds them, and
whoever plans for it reads them. For these rules, objects are plain JSON, as an API server and a simulation both have
them.

A LimitRange fills in what containers leave out, and refuses what is out of range. Items of type Container look at each
container, those of type Pod at the whole pod, those of type PersistentVolumeClaim at the storage that a claim asks for.

Of a ResourceQuota, an object takes so much (`usage`): which of the quota's names it counts under, how much, and in
which scopes. A resource is written "pods" or "deployments.apps". An API server asks before it admits an object, a
controller when it recounts, a simulation when it does both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from kubesched.k8s.model import quantity
from kubesched.k8s.model.meta import Int32, KubeObject, KubeStruct, ResourceList
from kubesched.k8s.model.requests import Amounts, Object, container_amounts, container_totals, is_extended, qos_class


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


PODS, SERVICES, CLAIMS = "pods", "services", "persistentvolumeclaims"
DEVICE_CLAIMS = "resourceclaims.resource.k8s.io"
_ALIASES = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
"""Kinds that may be limited by their bare names, too."""
NEVER_COUNTED = frozenset({"events", "events.events.k8s.io"})

_REQUESTS, _LIMITS, _COUNT = "requests.", "limits.", "count/"
_MEASURED = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES = frozenset(f"{prefix}{name}" for prefix in ("", _REQUESTS, _LIMITS) for name in _MEASURED) | {PODS}
_MUST_BE_SAID = frozenset(f"{prefix}{name}" for prefix in ("", _REQUESTS, _LIMITS) for name in ("cpu", "memory"))
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")
_SERVICE_NAMES = frozenset({SERVICES, "services.nodeports", "services.loadbalancers"})
_CLAIM_NAMES = (CLAIMS, "requests.storage")
_OF_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MOST_DEVICES = 32
_ONE = quantity.from_int(1)
_NONE = quantity.from_int(0)


def count_name(resource: str) -> str:
    """The name under which any kind's objects are counted."""
    return _COUNT + resource


def counted_names(resource: str, names: Iterable[str]) -> list[str]:
    """Of a quota's names those that objects of this resource count under."""
    rule = _NAME_RULES.get(resource)
    own = {count_name(resource)} | ({resource} if resource in _ALIASES else set())
    return [name for name in names if name in own or (rule is not None and rule(name))]


def resources_counted(names: Iterable[str]) -> list[str]:
    """The resources that count under any of these names."""
    wanted = list(names)
    found = {name.removeprefix(_COUNT) for name in wanted if name.startswith(_COUNT)}
    found |= {resource for resource in (*_NAME_RULES, *_ALIASES) if counted_names(resource, wanted)}
    return sorted(found - NEVER_COUNTED)


def usage(resource: str, obj: Object, now: datetime) -> Amounts:
    """How much one object takes, under all its names."""
    taken: Amounts = {count_name(resource): _ONE}
    if resource in _ALIASES:
        taken[resource] = _ONE
    own = _USAGES.get(resource)
    return taken | own(obj, now) if own is not None else taken


def missing_amounts(resource: str, names: Iterable[str], obj: Object) -> str:
    """What containers must say so that a pod can be counted at all, "" if all is said."""
    if resource != PODS or "resources" in obj["spec"]:
        return ""
    silent: dict[str, set[str]] = {}
    for container in (*(obj["spec"].get("containers") or ()), *(obj["spec"].get("initContainers") or ())):
        said = _pod_names(container_amounts(container, "requests"), container_amounts(container, "limits"))
        for name in _MUST_BE_SAID.intersection(names) - said.keys():
            silent.setdefault(name, set()).add(container.get("name", ""))
    listed = "; ".join(f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent))
    return f"must specify {listed}" if listed else ""


def uncountable(resource: str, quota: str, names: Iterable[str], obj: Object) -> str:
    """Why a quota with these names admits no object like this, which leaves out what it measures; "" if it can."""
    missing = missing_amounts(resource, names, obj)
    return f"failed quota: {quota}: {missing}" if missing else ""


def exceeded(quota: str, more: Amounts, used: Amounts, hard: Amounts) -> str:
    """Why a quota admits nothing that takes this much more; "" if it does."""
    beyond = sorted(name for name, amount in more.items() if used.get(name, _NONE) + amount > hard[name])
    if not beyond:
        return ""
    parts = (("requested", more), ("used", used), ("limited", hard))
    told = (
        f"{word}: {','.join(f'{name}={amounts[name]}' for name in beyond if name in amounts)}"
        for word, amounts in parts
    )
    return f"exceeded quota: {quota}, {', '.join(told)}"


def scope_selectors(quota_spec: Object) -> list[Object]:
    """Scopes and scope selector of a quota, in one form."""
    listed = [{"scopeName": scope, "operator": "Exists"} for scope in quota_spec.get("scopes") or ()]
    return [*listed, *((quota_spec.get("scopeSelector") or {}).get("matchExpressions") or ())]


def is_in_scope(resource: str, selectors: Sequence[Object], obj: Object) -> bool:
    """Whether a quota with these selectors looks at the object; kinds without scopes are in none."""
    rule = _SCOPE_RULES.get(resource)
    return all(rule is not None and rule(selector, obj) for selector in selectors)


def is_terminating(pod: Object) -> bool:
    """Meant to end by itself, as scopes have it."""
    deadline = pod["spec"].get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def attribute_classes(claim: Object) -> set[str]:
    """The volume attributes classes that a claim has, had or is to have."""
    status = claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    named = (claim["spec"].get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return {name for name in named if name}


# -- names -------------------------------------------------------------------------------------------------------------


def _is_pod_name(name: str) -> bool:
    if name in _POD_NAMES or name.startswith(_HUGE_PAGES):
        return True
    return name.startswith(_REQUESTS) and (
        is_extended(name.removeprefix(_REQUESTS)) or name.startswith(_REQUESTS + _IMPLICIT_DEVICE_CLASS)
    )


def _is_claim_name(name: str) -> bool:
    return name in _CLAIM_NAMES or any(name.endswith(_OF_STORAGE_CLASS + own) for own in _CLAIM_NAMES)


_NAME_RULES: dict[str, Callable[[str], bool]] = {
    PODS: _is_pod_name,
    SERVICES: _SERVICE_NAMES.__contains__,
    CLAIMS: _is_claim_name,
    DEVICE_CLAIMS: lambda name: name.endswith(_OF_DEVICE_CLASS),
}


# -- amounts -----------------------------------------------------------------------------------------------------------


def _pod_usage(pod: Object, now: datetime) -> Amounts:
    if not _is_counted(pod, now):
        return {}
    return {PODS: _ONE, **_pod_names(pod_totals(pod, "requests"), pod_totals(pod, "limits"))}


def _is_counted(pod: Object, now: datetime) -> bool:
    """A pod that has ended, or should have long ago, takes nothing any more."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    due, grace_s = pod["metadata"].get("deletionTimestamp"), pod["metadata"].get("deletionGracePeriodSeconds")
    return due is None or grace_s is None or now <= datetime.fromisoformat(due) + timedelta(seconds=grace_s)


def pod_totals(pod: Object, sort: str) -> Amounts:
    """Requests or limits of the whole pod: containers as they are and as they run, the pod's own, and its overhead."""
    spec, status = pod["spec"], pod.get("status") or {}
    running = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    total = container_totals(
        _with_running(spec, {one["name"]: one for one in running}, sort) if running else spec, sort
    )
    for name, amount in ((spec.get("resources") or {}).get(sort) or {}).items():
        total[name] = quantity.parse(amount)
    for name, amount in (spec.get("overhead") or {}).items():
        if sort == "requests" or name in total:
            total[name] = total.get(name, _NONE) + quantity.parse(amount)
    return total


def _with_running(spec: Object, running: Mapping[str, Object], sort: str) -> Object:
    """The spec with each container's amounts raised to what it runs with."""

    def raised(container: Object) -> Object:
        own = container.get("resources", {}).get(sort) or {}
        state = running.get(container.get("name", ""), {})
        held = [(state.get("resources") or {}).get(sort) or {}]
        if sort == "requests":
            held.append(state.get("allocatedResources") or {})
        most = dict(own)
        for name, amount in (pair for one in held for pair in one.items()):
            if name not in most or quantity.parse(amount) > quantity.parse(most[name]):
                most[name] = amount
        return {**container, "resources": {sort: most}}

    return {
        "containers": [raised(one) for one in spec.get("containers") or ()],
        "initContainers": [raised(one) for one in spec.get("initContainers") or ()],
    }


def _pod_names(requests: Amounts, limits: Amounts) -> Amounts:
    """Under which names a pod's amounts count: requests by their own names as well, limits only with their prefix."""
    taken: Amounts = {}
    for name, amount in requests.items():
        if name in _MEASURED or name.startswith(_HUGE_PAGES):
            taken[name] = amount
            taken[_REQUESTS + name] = amount
        elif is_extended(name) or name.startswith(_IMPLICIT_DEVICE_CLASS):
            taken[_REQUESTS + name] = amount
    return taken | {_LIMITS + name: amount for name, amount in limits.items() if name in _MEASURED}


def _service_usage(service: Object, _: datetime) -> Amounts:
    spec = service["spec"]
    ports = spec.get("ports") or []
    is_balanced = spec.get("type") == "LoadBalancer"
    if is_balanced and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    has_node_ports = is_balanced or spec.get("type") == "NodePort"
    return {
        SERVICES: _ONE,
        "services.loadbalancers": _ONE if is_balanced else _NONE,
        "services.nodeports": quantity.from_int(len(ports) if has_node_ports else 0),
    }


def _claim_usage(claim: Object, _: datetime) -> Amounts:
    spec = claim["spec"]
    annotations = claim["metadata"].get("annotations") or {}
    class_name = annotations.get(_CLASS_ANNOTATION) or spec.get("storageClassName") or ""
    taken: Amounts = {CLAIMS: _ONE}
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if wanted is not None:
        allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
        amounts = [quantity.parse(text) for text in (wanted, allocated) if text is not None]
        taken["requests.storage"] = _rounded_up(max(amounts))
    if class_name:
        taken |= {f"{class_name}{_OF_STORAGE_CLASS}{name}": amount for name, amount in taken.items()}
    return taken


def _rounded_up(amount: quantity.Quantity) -> quantity.Quantity:
    return amount if amount.is_whole else quantity.from_int(amount.value, amount.notation)


def _device_claim_usage(claim: Object, _: datetime) -> Amounts:
    total: dict[str, int] = {}
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        most: dict[str, int] = {}
        for one in request.get("firstAvailable") or [request.get("exactly") or {}]:
            name = (one.get("deviceClassName") or "") + _OF_DEVICE_CLASS
            n_devices = _MOST_DEVICES if one.get("allocationMode") == "All" else one.get("count") or 0
            most[name] = max(most.get(name, 0), n_devices)
        for name, n_devices in most.items():
            total[name] = total.get(name, 0) + n_devices
    return {name: quantity.from_int(n_devices) for name, n_devices in total.items()}


_USAGES: dict[str, Callable[[Object, datetime], Amounts]] = {
    PODS: _pod_usage,
    SERVICES: _service_usage,
    CLAIMS: _claim_usage,
    DEVICE_CLAIMS: _device_claim_usage,
}


# -- scopes ------------------------------------------------------------------------------------------------------------


def _pod_is_in(selector: Object, pod: Object) -> bool:
    match selector.get("scopeName"):
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return qos_class(pod) == "BestEffort"
        case "NotBestEffort":
            return qos_class(pod) != "BestEffort"
        case "PriorityClass":
            name = pod["spec"].get("priorityClassName")
            return _selects(selector, {name} if name else set())
        case "CrossNamespacePodAffinity":
            return _looks_into_other_namespaces(pod)
    return False


def _claim_is_in(selector: Object, claim: Object) -> bool:
    is_known = selector.get("scopeName") == "VolumeAttributesClass"
    return is_known and _selects(selector, attribute_classes(claim))


def _selects(selector: Object, names: set[str]) -> bool:
    """As a label selector would, on an object with one of these names."""
    values = set(selector.get("values") or ())
    match selector.get("operator"):
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return bool(names & values)
        case "NotIn":
            return not names or bool(names - values)
    return False


def _looks_into_other_namespaces(pod: Object) -> bool:
    affinity = pod["spec"].get("affinity") or {}
    for sort in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(sort) or {}
        terms = [*(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())]
        weighted = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [one.get("podAffinityTerm") or {} for one in weighted]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


_SCOPE_RULES: dict[str, Callable[[Object, Object], bool]] = {PODS: _pod_is_in, CLAIMS: _claim_is_in}
