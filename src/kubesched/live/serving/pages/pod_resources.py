"""What pods ask for and are limited to, pod by pod: `/metrics/resources`. Pure.

Counted as the API defines it, by the spec alone; pods that have finished on their node do not count.
Next: `metrics_pages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.k8s.model.core import Container, Pod
from kubesched.k8s.model.quantity import NANO
from kubesched.k8s.model.requests import (
    ATTACHABLE_VOLUMES_PREFIX,
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    AmountError,
    Nanos,
    effective_requests,
    is_restartable,
    to_nanos,
)
from kubesched.live.serving.pages.component_metrics import gauge
from kubesched.scheduler.engine.metrics.series import LabelValues, MetricFamily

_LABELS = "namespace pod node scheduler priority resource unit"
_WHAT = "by pod; the unit is given where the resource has one."
REQUEST = gauge("kube_pod_resource_request", _LABELS, "STABLE", f"Resources that pods ask for, {_WHAT}")
LIMIT = gauge("kube_pod_resource_limit", _LABELS, "STABLE", f"Resources that pods may use at most, {_WHAT}")

_UNITS = {CPU: "cores", MEMORY: "bytes", "storage": "bytes", EPHEMERAL_STORAGE: "bytes"}


def pod_resource_families(pods: Iterable[Pod]) -> list[MetricFamily]:
    requests: dict[LabelValues, float] = {}
    limits: dict[LabelValues, float] = {}
    for pod in pods:
        if pod.spec.node_name and pod.is_terminal:
            continue
        try:
            requests.update(_series(pod, effective_requests(pod, with_status=False)))
            limits.update(_series(pod, effective_limits(pod)))
        except AmountError:
            continue  # the API server lets none through; one that is there all the same must not hide the others
    return [MetricFamily(REQUEST, requests), MetricFamily(LIMIT, limits)]


def effective_limits(pod: Pod) -> Nanos:
    """The containers' limits summed, or the peak while init containers run; pod-level ones in their place; overhead on
    top of what is limited at all."""
    total = _container_limits(pod)
    resources = pod.spec.resources
    if resources is not None:
        for name, nanos in to_nanos(resources.limits, "spec.resources.limits").items():
            if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX):
                total[name] = nanos
    for name, nanos in to_nanos(pod.spec.overhead, "spec.overhead").items():
        if total.get(name):
            total[name] += nanos
    return total


def unit_of(resource: str) -> str:
    if resource.startswith(HUGE_PAGES_PREFIX):
        return "bytes"
    if resource.startswith(ATTACHABLE_VOLUMES_PREFIX):
        return "integer"
    return _UNITS.get(resource, "")


def _container_limits(pod: Pod) -> Nanos:
    total: Nanos = {}
    for index, container in enumerate(pod.spec.containers):
        _add(total, _limits(container, f"spec.containers[{index}]"))
    staying: Nanos = {}
    peak: Nanos = {}
    for index, container in enumerate(pod.spec.init_containers or ()):
        own = _limits(container, f"spec.initContainers[{index}]")
        if is_restartable(container):
            _add(total, own)
            _add(staying, own)
            running = staying
        else:
            running = dict(own)
            _add(running, staying)
        for name, nanos in running.items():
            peak[name] = max(nanos, peak.get(name, nanos))
    for name, nanos in peak.items():
        total[name] = max(nanos, total.get(name, nanos))
    return total


def _limits(container: Container, field: str) -> Nanos:
    resources = container.resources
    return {} if resources is None else to_nanos(resources.limits, f"{field}.resources.limits")


def _add(total: Nanos, amounts: Nanos) -> None:
    for name, nanos in amounts.items():
        total[name] = total.get(name, 0) + nanos


def _series(pod: Pod, amounts: Nanos) -> Iterator[tuple[LabelValues, float]]:
    spec = pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    whose = (pod.namespace, pod.name, spec.node_name, spec.scheduler_name, priority)
    for name, nanos in amounts.items():
        if nanos:
            yield (*whose, name, unit_of(name)), nanos / NANO
