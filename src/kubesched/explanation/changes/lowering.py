"""How to write a smaller request into a pod: which containers ask for less, so that the whole asks for so much.

The largest container gives way first, so that as few as possible change. Init containers are brought under the same
limit; a request of the pod as a whole is lowered with them. Where Kubernetes wants request and limit to be equal
(extended resources, huge pages), the limit follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubesched.explanation.changes.patches import PatchOperation, put
from kubesched.k8s.model import quantity
from kubesched.k8s.model.core import Container, Pod, ResourceRequirements
from kubesched.k8s.model.quantity import Notation, Quantity
from kubesched.k8s.model.requests import CPU, HUGE_PAGES_PREFIX, is_extended, is_restartable, to_nanos

Path = tuple[str | int, ...]


@dataclass(slots=True)
class _Asking:
    """One container's request of the resource in question, as it is and as it becomes."""

    path: Path
    resources: ResourceRequirements
    before: int
    after: int


def lower_request(pod: Pod, resource: str, units: int) -> tuple[PatchOperation, ...] | None:
    """Operations after which the pod asks for so many milli-cpus, bytes or whole units; None if there is no way."""
    overhead = to_nanos(pod.spec.overhead, "spec.overhead").get(resource, 0)
    budget = units * (quantity.NANO // 1000 if resource == CPU else quantity.NANO) - overhead
    if budget < 0:
        return None
    staying = [_asking(container, path, resource) for container, path in _staying(pod)]
    _cut_down(staying, budget)
    passing = _capped_init_containers(pod, resource, budget, {asking.path: asking.after for asking in staying})
    whole = _whole_pod(pod, resource, budget)
    changed = [asking for asking in [*staying, *passing, *whole] if asking.after < asking.before]
    return tuple(operation for asking in changed for operation in _operations(asking, resource))


def _staying(pod: Pod) -> Iterator[tuple[Container, Path]]:
    """Containers that run as long as the pod does."""
    for index, container in enumerate(pod.spec.containers):
        yield container, ("spec", "containers", index)
    for index, container in enumerate(pod.spec.init_containers or ()):
        if is_restartable(container):
            yield container, ("spec", "initContainers", index)


def _asking(container: Container, path: Path, resource: str) -> _Asking:
    resources = container.resources or ResourceRequirements()
    nanos = to_nanos(resources.requests, "requests").get(resource, 0)
    return _Asking((*path, "resources"), resources, nanos, nanos)


def _cut_down(staying: list[_Asking], budget: int) -> None:
    excess = sum(asking.after for asking in staying) - budget
    for asking in sorted(staying, key=lambda asking: -asking.before):
        if excess <= 0:
            return
        cut = min(excess, asking.after)
        asking.after -= cut
        excess -= cut


def _capped_init_containers(pod: Pod, resource: str, budget: int, staying: dict[Path, int]) -> list[_Asking]:
    """Init containers that come and go, each beside the restartable ones that were started before it."""
    found = []
    beside = 0
    for index, container in enumerate(pod.spec.init_containers or ()):
        asking = _asking(container, ("spec", "initContainers", index), resource)
        if is_restartable(container):
            beside += staying[asking.path]
            continue
        asking.after = min(asking.after, budget - beside)
        found.append(asking)
    return found


def _whole_pod(pod: Pod, resource: str, budget: int) -> list[_Asking]:
    resources = pod.spec.resources
    if resources is None or resource not in (resources.requests or {}):
        return []
    nanos = to_nanos(resources.requests, "spec.resources.requests")[resource]
    return [_Asking(("spec", "resources"), resources, nanos, min(nanos, budget))]


def _operations(asking: _Asking, resource: str) -> Iterator[PatchOperation]:
    is_bytes = resource != CPU and not is_extended(resource)
    text = str(Quantity(asking.after, Notation.BINARY_SI if is_bytes else Notation.DECIMAL_SI))
    yield put(*asking.path, "requests", resource, value=text)
    is_tied = is_extended(resource) or resource.startswith(HUGE_PAGES_PREFIX)
    if is_tied and resource in (asking.resources.limits or {}):
        yield put(*asking.path, "limits", resource, value=text)
