"""Single defaults of a new pod: requests, tolerations, host ports. Each gives the pod with them filled in.

Next: `admission`, which puts them together.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubesched.k8s.model.amounts import ResourceList
from kubesched.k8s.model.core import Container, ContainerPort, Pod, Toleration
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.requests import CPU, HUGE_PAGES_PREFIX, MEMORY, effective_requests
from kubesched.k8s.model.taints import NO_EXECUTE

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
EVICTION_AFTER_S = 300


def with_default_requests(pod: Pod) -> Pod:
    """What a container limits and does not request, it requests up to its limit."""
    spec = pod.spec
    containers, init_containers = _requesting(spec.containers), _requesting(spec.init_containers or ())
    if containers == spec.containers and init_containers == (spec.init_containers or ()):
        return pod
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers or None))


def with_pod_level_requests(pod: Pod) -> Pod:
    """A pod that limits itself as a whole requests as much as its containers do, or else up to the limit."""
    resources = pod.spec.resources
    if resources is None or not resources.limits:
        return pod
    requests: ResourceList = dict(resources.requests or {})
    by_containers = effective_requests(replace(pod, spec=replace(pod.spec, overhead=None)), with_pod_level=False)
    for name, nanos in by_containers.items():
        if name in (CPU, MEMORY):
            requests.setdefault(name, str(Quantity(nanos)))
    for name, limit in resources.limits.items():
        if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX):
            requests.setdefault(name, limit)
    return replace(pod, spec=replace(pod.spec, resources=replace(resources, requests=requests)))


def with_default_tolerations(pod: Pod) -> Pod:
    """For five minutes, a pod puts up with a node that is not ready or cannot be reached."""
    known = pod.spec.tolerations or ()
    added = tuple(
        Toleration(key=key, operator="Exists", effect=NO_EXECUTE, toleration_seconds=EVICTION_AFTER_S)
        for key in (NOT_READY_TAINT, UNREACHABLE_TAINT)
        if not any(_speaks_of(toleration, key) for toleration in known)
    )
    return replace(pod, spec=replace(pod.spec, tolerations=(*known, *added))) if added else pod


def with_host_ports(pod: Pod) -> Pod:
    """On the host's network, every port of a container is a port of the host."""
    spec = pod.spec
    if not spec.host_network:
        return pod
    return replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(map(_on_host, spec.containers)),
            init_containers=None if spec.init_containers is None else tuple(map(_on_host, spec.init_containers)),
        ),
    )


def _requesting(containers: Sequence[Container]) -> tuple[Container, ...]:
    return tuple(map(_with_requests, containers))


def _with_requests(container: Container) -> Container:
    resources = container.resources
    if resources is None or not resources.limits:
        return container
    missing = {name: limit for name, limit in resources.limits.items() if name not in (resources.requests or {})}
    if not missing:
        return container
    requests = {**(resources.requests or {}), **missing}
    return replace(container, resources=replace(resources, requests=requests))


def _speaks_of(toleration: Toleration, taint_key: str) -> bool:
    return toleration.key in ("", taint_key) and toleration.effect in ("", NO_EXECUTE)


def _on_host(container: Container) -> Container:
    if not container.ports:
        return container
    return replace(container, ports=tuple(map(_as_host_port, container.ports)))


def _as_host_port(port: ContainerPort) -> ContainerPort:
    return port if port.host_port else replace(port, host_port=port.container_port)
