"""What a pod asks for: the effective requests of its containers, as a node must hold them, and the features it needs.

The sum over containers, or the peak while init containers run, whichever is more, per resource; restartable init
containers stay and count with both. Where a running pod is being resized, what its status reports counts too.
Pod-level requests replace the sum for the resources they name; overhead comes on top.

Amounts here are nano-units (exact); `PodResources` has them as the integers that nodes are counted in: milli-cpus,
bytes, and whole units of everything else. `container_totals` does it for pods as plain JSON, requests and limits both,
and `qos_class` says the quality of service class that follows.

Kubelets list in `status.declaredFeatures` what they can do beyond what every supported kubelet can. Kubernetes 1.36
knows five such features. Two of them follow from a pod's spec and so decide where it may be scheduled; the others
concern changes to pods that already run, or the kubelet alone. None has a last version: each is asked for by every
scheduler of this generation.

Next: `kubesched.framework.pod_info` keeps these per pod, `kubesched.scheduler.plugins.node_declared_features` holds
nodes against the features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import quantity
from kubesched.k8s.model.core import Container, ContainerStatus, Pod, PodSpec
from kubesched.k8s.model.meta import ResourceList
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.selectors import label_key_errors

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
NATIVE_DOMAIN = "kubernetes.io/"
QUOTA_PREFIX = "requests."

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""What a container that names no request counts as when nodes are scored, so that such pods spread too."""

Nanos = dict[str, int]

_DEFAULT_NANOS = {
    CPU: DEFAULT_MILLI_CPU * quantity.NANO // 1000,
    MEMORY: DEFAULT_MEMORY_BYTES * quantity.NANO,
}


class AmountError(KubeschedError, ValueError):
    """An amount in an object cannot be read. Names the field, for the reader to find it."""

    def __init__(self, field: str, text: object, problem: str) -> None:
        super().__init__(f"{field}: invalid quantity {text!r}: {problem}")
        self.field = field


@dataclass(frozen=True, slots=True)
class PodResources:
    """A pod's requests in the units nodes are counted in."""

    requests: dict[str, int]
    """What the pod counts for on its node."""
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    """The same for scoring, with defaults for silent containers."""
    wanted: dict[str, int]
    """By the spec alone: what a node must have free for a pod that does not run yet."""
    container_requests: dict[str, int]
    """By the containers' specs alone, with defaults for silent ones: what NodeResourcesFit scores a new pod by."""


def pod_resources(pod: Pod) -> PodResources:
    requests = effective_requests(pod)
    silent = _defaults_for_silent_containers(pod, requests)
    nonzero = effective_requests(pod, silent) if silent else requests
    in_units = in_node_units(requests)
    wanted = in_node_units(effective_requests(pod, with_status=False)) if _has_status(pod) else in_units
    if _has_status(pod) or has_pod_level_requests(pod):
        containers = effective_requests(pod, _DEFAULT_NANOS, with_status=False, with_pod_level=False)
    else:
        containers = nonzero
    return PodResources(
        requests=in_units,
        nonzero_cpu_milli=_milli(nonzero.get(CPU, 0)),
        nonzero_memory_bytes=_units(nonzero.get(MEMORY, 0)),
        wanted=wanted,
        container_requests=in_node_units(containers),
    )


def effective_requests(
    pod: Pod, defaults: Nanos | None = None, *, with_status: bool = True, with_pod_level: bool = True
) -> Nanos:
    """Nano-units by resource. `defaults` stand in for what a container does not mention; without its status, a pod
    counts as if it never ran; without pod-level requests, as if there were only its containers."""
    total = _container_requests(pod, defaults, _statuses_by_name(pod) if with_status else {})
    if with_pod_level and has_pod_level_requests(pod):
        _apply_pod_level(pod, total, with_status)
    if pod.spec.overhead:
        _add(total, to_nanos(pod.spec.overhead, "spec.overhead"))
    return total


def in_node_units(amounts: Nanos) -> dict[str, int]:
    """Milli-cpus, bytes, whole units; resources that nodes do not count are left out."""
    return {
        name: _milli(nanos) if name == CPU else _units(nanos)
        for name, nanos in amounts.items()
        if is_counted(name) and name != PODS
    }


def to_nanos(amounts: ResourceList | None, field: str) -> Nanos:
    if not amounts:
        return {}
    try:
        return {name: quantity.parse(text).nanos for name, text in amounts.items()}
    except quantity.QuantityError:
        raise _explain_amount(amounts, field) from None


def node_units(amounts: ResourceList | None, field: str) -> dict[str, int]:
    """A node's allocatable amounts, with the number of pods among them."""
    found = to_nanos(amounts, field)
    return {
        name: _milli(nanos) if name == CPU else _units(nanos)
        for name, nanos in found.items()
        if name == PODS or is_counted(name)
    }


@lru_cache(maxsize=4096)
def is_counted(name: str) -> bool:
    """Whether nodes keep account of this resource: the built-in ones, and scalar ones."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS) or is_scalar(name)


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Extended resources, huge pages, attachable volumes, and whatever lives in a kubernetes.io domain."""
    return is_extended(name) or NATIVE_DOMAIN in name or name.startswith((HUGE_PAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX))


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """A resource outside of Kubernetes' own domain, whose name still fits when a quota puts its prefix before it."""
    if "/" not in name or NATIVE_DOMAIN in name or name.startswith(QUOTA_PREFIX):
        return False
    return not label_key_errors(QUOTA_PREFIX + name)


def has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(_is_pod_level(name) for name in resources.requests or ())


def is_restartable(container: Container) -> bool:
    """An init container that keeps running beside the others (a sidecar)."""
    return container.restart_policy == "Always"


def is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _container_requests(pod: Pod, defaults: Nanos | None, statuses: dict[str, ContainerStatus]) -> Nanos:
    spec = pod.spec
    total: Nanos = {}
    for index, container in enumerate(spec.containers):
        _add(total, _one_container(pod, container, f"spec.containers[{index}]", statuses, defaults))
    peak: Nanos = {}
    staying: Nanos = {}
    for index, container in enumerate(spec.init_containers or ()):
        field = f"spec.initContainers[{index}]"
        restartable = is_restartable(container)
        own = _one_container(pod, container, field, statuses if restartable else {}, defaults)
        if restartable:
            _add(total, own)
            _add(staying, own)
            _raise_to(peak, staying)
        else:
            while_running = dict(own)
            _add(while_running, staying)
            _raise_to(peak, while_running)
    _raise_to(total, peak)
    return total


def _one_container(
    pod: Pod, container: Container, field: str, statuses: dict[str, ContainerStatus], defaults: Nanos | None
) -> Nanos:
    resources = container.resources
    amounts = to_nanos(resources.requests, f"{field}.resources.requests") if resources is not None else {}
    status = statuses.get(container.name) if statuses else None
    if status is not None and status.resources is not None:
        amounts = _during_resize(
            pod, amounts, status.resources.requests, status.allocated_resources, "status.containerStatuses"
        )
    if defaults:
        amounts = {**defaults, **amounts}
    return amounts


def _during_resize(
    pod: Pod, wanted: Nanos, actuated: ResourceList | None, allocated: ResourceList | None, field: str
) -> Nanos:
    """The most of what is wanted, set and granted; what is wanted does not count when it can never be granted."""
    effective = {} if is_resize_infeasible(pod) else dict(wanted)
    _raise_to(effective, to_nanos(actuated, f"{field}.resources.requests"))
    _raise_to(effective, to_nanos(allocated, f"{field}.allocatedResources"))
    return effective


def _apply_pod_level(pod: Pod, total: Nanos, with_status: bool) -> None:
    resources = pod.spec.resources
    assert resources is not None
    wanted = to_nanos(resources.requests, "spec.resources.requests")
    effective = wanted
    if with_status and pod.status.resources is not None:
        effective = _during_resize(pod, wanted, pod.status.resources.requests, pod.status.allocated_resources, "status")
    for name in wanted:
        if _is_pod_level(name):
            total[name] = effective.get(name, 0)


def _defaults_for_silent_containers(pod: Pod, requests: Nanos) -> Nanos:
    if not has_pod_level_requests(pod):
        return _DEFAULT_NANOS
    return {name: nanos for name, nanos in _DEFAULT_NANOS.items() if name not in requests}


def _has_status(pod: Pod) -> bool:
    """Whether the status says anything about resources that may differ from the spec."""
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses) or status.resources is not None


def _statuses_by_name(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses:
        return {}
    found = {entry.name: entry for entry in status.container_statuses or ()}
    found.update({entry.name: entry for entry in status.init_container_statuses or ()})
    return found


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def _add(total: Nanos, amounts: Nanos) -> None:
    for name, nanos in amounts.items():
        total[name] = total.get(name, 0) + nanos


def _raise_to(total: Nanos, amounts: Nanos) -> None:
    for name, nanos in amounts.items():
        if name not in total or nanos > total[name]:
            total[name] = nanos


def _milli(nanos: int) -> int:
    return quantity.Quantity(nanos).milli_value


def _units(nanos: int) -> int:
    return quantity.Quantity(nanos).value


def _explain_amount(amounts: ResourceList, field: str) -> AmountError:
    for name, text in amounts.items():
        try:
            quantity.parse(text)
        except quantity.QuantityError as problem:
            return AmountError(f"{field}.{name}" if "/" not in name else f"{field}[{name}]", text, str(problem))
    raise AssertionError("every amount can be read")


Object = dict[str, Any]
Amounts = dict[str, Quantity]

_QOS_RESOURCES = ("cpu", "memory")


def container_totals(spec: Object, sort: str) -> Amounts:
    """Sum over containers and sidecars, or the most that any init container needs beside the sidecars before it."""
    total: Amounts = {}
    for container in spec.get("containers") or []:
        _add_amounts(total, container_amounts(container, sort))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers", []):
        needed = container_amounts(container, sort)
        if container.get("restartPolicy") == "Always":
            _add_amounts(total, needed)
            _add_amounts(sidecars, needed)
            needed = dict(sidecars)
        else:
            _add_amounts(needed, sidecars)
        for name, amount in needed.items():
            peak[name] = max(peak.get(name, amount), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, amount), amount)
    return total


def container_amounts(container: Object, sort: str) -> Amounts:
    given = (container.get("resources") or {}).get(sort) or {}
    return {name: quantity.parse(amount) for name, amount in given.items()}


def _add_amounts(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def qos_class(pod: Object) -> str:
    spec = pod["spec"]
    if "resources" in spec:
        holders = [{"resources": spec["resources"]}]
        limits_everything = not spec["resources"].get("limits") or _limits_both(spec["resources"])
    else:
        holders = [*(spec.get("containers") or []), *spec.get("initContainers", [])]
        limits_everything = all(_limits_both(holder.get("resources", {})) for holder in holders)
    requests: Amounts = {}
    limits: Amounts = {}
    for holder in holders:
        _add_amounts(requests, _positive(holder, "requests"))
        _add_amounts(limits, _positive(holder, "limits"))
    if not requests and not limits:
        return "BestEffort"
    is_equal = all(limits.get(name) == amount for name, amount in requests.items())
    is_guaranteed = limits_everything and is_equal and len(requests) == len(limits)
    return "Guaranteed" if is_guaranteed else "Burstable"


def _positive(holder: Object, sort: str) -> Amounts:
    return {
        n: amount for n, amount in container_amounts(holder, sort).items() if n in _QOS_RESOURCES and amount.nanos > 0
    }


def _limits_both(resources: Object) -> bool:
    return _positive({"resources": resources}, "limits").keys() >= set(_QOS_RESOURCES)


def _restarts_all_containers(spec: PodSpec) -> bool:
    """A container's restart rule may restart the whole pod in place."""
    return any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *(spec.init_containers or ()))
        for rule in container.restart_policy_rules or ()
    )


def _has_user_namespace_on_host_network(spec: PodSpec) -> bool:
    return spec.host_network and spec.host_users is False


def _never(_spec: PodSpec) -> bool:
    """Not a matter of scheduling."""
    return False


DECLARED_FEATURES: Final[Mapping[str, Callable[[PodSpec], bool]]] = {
    "ExtendWebSocketsToKubelet": _never,
    "InPlacePodLevelResourcesVerticalScaling": _never,
    "InPlacePodVerticalScalingInitContainers": _never,
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _has_user_namespace_on_host_network,
}
"""The features by name, and whether a pod with this spec needs the feature where it is scheduled."""


def required_features(spec: PodSpec) -> frozenset[str]:
    return frozenset(name for name, is_needed in DECLARED_FEATURES.items() if is_needed(spec))
