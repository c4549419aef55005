"""Where the amount comes from that a pod needs, where its containers alone do not explain it.

needs 4 cpu (for init container restore; 200m afterwards)
needs 3 cpu (2 of it for sidecar istio-proxy)
needs 1750m cpu (250m of it overhead)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.explanation.layout import all_of, readable
from kubesched.k8s.model.core import Container, Pod
from kubesched.k8s.model.requests import in_node_units, is_restartable, to_nanos


def made_of(pod: Pod, resources: Sequence[str]) -> str:
    """Nothing where the pod's containers ask for all of it, or the pod as a whole does."""
    named = (pod.spec.resources.requests or {}) if pod.spec.resources is not None else {}
    asked = [resource for resource in resources if resource not in named]
    parts = [*_while_starting(pod, asked), *_of_sidecars(pod, asked), *_of_overhead(pod, asked)]
    return f" ({'; '.join(parts)})" if parts else ""


def _while_starting(pod: Pod, resources: Iterable[str]) -> Iterable[str]:
    """An init container that asks for more than all that runs after it."""
    starting = [container for container in pod.spec.init_containers or () if not is_restartable(container)]
    peaks: dict[str, list[str]] = {}
    for resource in resources:
        running = _sum((*pod.spec.containers, *_sidecars(pod)), resource)
        largest = max(starting, key=lambda container: _asks(container, resource), default=None)
        if largest is not None and _asks(largest, resource) > running:
            peaks.setdefault(largest.name, []).append(f"{readable(resource, running)} {resource}")
    for name, afterwards in peaks.items():
        yield f"for init container {name}; {all_of(afterwards)} afterwards"


def _of_sidecars(pod: Pod, resources: Iterable[str]) -> Iterable[str]:
    sidecars = _sidecars(pod)
    shares = [(resource, _sum(sidecars, resource)) for resource in resources]
    told = [f"{readable(resource, units)} {resource}" for resource, units in shares if units]
    if told:
        names = [container.name for container in sidecars]
        yield f"{all_of(told)} of it for {'sidecar' if len(names) == 1 else 'sidecars'} {all_of(names)}"


def _of_overhead(pod: Pod, resources: Iterable[str]) -> Iterable[str]:
    overhead = in_node_units(to_nanos(pod.spec.overhead, "spec.overhead"))
    told = [f"{readable(resource, overhead[resource])} {resource}" for resource in resources if overhead.get(resource)]
    if told:
        yield f"{all_of(told)} of it overhead of its runtime class"


def _sidecars(pod: Pod) -> list[Container]:
    return [container for container in pod.spec.init_containers or () if is_restartable(container)]


def _sum(containers: Iterable[Container], resource: str) -> int:
    return sum(_asks(container, resource) for container in containers)


def _asks(container: Container, resource: str) -> int:
    requests = {} if container.resources is None else container.resources.requests
    return in_node_units(to_nanos(requests, "requests")).get(resource, 0)
