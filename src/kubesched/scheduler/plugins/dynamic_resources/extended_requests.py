"""From containers that ask for extended resources to the requests of the one claim that stands for them.

Containers that run at the same time need devices of their own. Init containers that come and go use those of the
containers that start later, and share one request for what they need beyond that.

Next: `extended`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubesched.k8s.model import quantity
from kubesched.k8s.model.core import Container, ContainerExtendedResourceRequest, Pod
from kubesched.k8s.model.requests import is_restartable
from kubesched.k8s.model.resource import DeviceClass, DeviceRequest, ExactDeviceRequest
from kubesched.scheduler.plugins.dynamic_resources.wants import EXACT_COUNT


@dataclass(frozen=True, slots=True)
class Portion:
    """So many devices, asked for under a name."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class ExtendedRequests:
    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]
    """Which request each container's resource comes from."""


def requests_for(pod: Pod, resources: Sequence[str], classes: Mapping[str, DeviceClass]) -> ExtendedRequests:
    """For the resources that a node has to provide as devices."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        portions, mapped = _for_resource(pod, resource)
        mappings.extend(mapped)
        for portion in portions:
            exactly = ExactDeviceRequest(
                device_class_name=classes[resource].name, allocation_mode=EXACT_COUNT, count=portion.count
            )
            requests.append(DeviceRequest(portion.name, exactly=exactly))
    requests.sort(key=lambda request: request.name)
    return ExtendedRequests(tuple(requests), tuple(mappings))


def _for_resource(pod: Pod, resource: str) -> tuple[list[Portion], list[ContainerExtendedResourceRequest]]:
    init_containers = pod.spec.init_containers or ()
    containers = (*init_containers, *pod.spec.containers)
    passing = [index for index, container in enumerate(init_containers) if not is_restartable(container)]
    lasting: list[Portion | None] = [None] * len(containers)
    mappings: list[ContainerExtendedResourceRequest] = []
    for index, container in enumerate(containers):
        if index not in passing:
            lasting[index], used = _for_container(index, container, resource, ())
            mappings.extend(_mapping(container, resource, name) for name in used)
    largest: Portion | None = None
    own_names: set[str] = set()
    uses: list[tuple[Container, str]] = []
    for index in passing:
        reusable = [portion for portion in lasting[index:] if portion is not None]
        portion, used = _for_container(index, containers[index], resource, reusable)
        uses.extend((containers[index], name) for name in used)
        if portion is not None:
            own_names.add(portion.name)
            if largest is None or largest.count < portion.count:
                largest = portion
    for container, name in uses:
        shared = largest.name if largest is not None and name in own_names else name
        mappings.append(_mapping(container, resource, shared))
    return [portion for portion in (largest, *lasting) if portion is not None], mappings


def _for_container(
    index: int, container: Container, resource: str, reusable: Sequence[Portion]
) -> tuple[Portion | None, list[str]]:
    """What the container needs beyond what it can use of others, and the names of all it uses."""
    requests = (container.resources.requests if container.resources is not None else None) or {}
    if resource not in requests:
        return None, []
    amount = quantity.parse(requests[resource])
    if not amount or not amount.is_whole:
        return None, []
    used: list[str] = []
    covered = 0
    for portion in reusable:
        covered += portion.count
        used.append(portion.name)
        if covered >= amount.value:
            return None, used
    name = f"container-{index}-request-{sorted(requests).index(resource)}"
    return Portion(name, amount.value - covered), [*used, name]


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container.name, resource, request)
