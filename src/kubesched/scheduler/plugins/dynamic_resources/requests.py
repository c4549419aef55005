"""What a pod asks for: its claims' requests in the form that the search uses, and extended resources as requests.

A request is a list of alternatives: one for an exact request, several for a `firstAvailable` list of subrequests. What
is wrong with a request on every node is found here (`problem`) and reported by whoever gets to it.

A pod that asks for `example.com/gpu: 2` gets two devices if a DeviceClass backs that resource. The scheduler creates
one special claim for all of a pod's extended resources. What it requests depends on the node: a resource that the node
offers through a device plugin is left to NodeResourcesFit. Containers that run at the same time need devices of their
own; init containers that have ended leave theirs to later ones, and share one request for what they need beyond that.

Next: `search`, which finds devices for requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import numpy as np

from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import quantity
from kubesched.k8s.model.core import Container, ContainerExtendedResourceRequest, Pod
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference
from kubesched.k8s.model.quantity import Quantity, QuantityError
from kubesched.k8s.model.requests import is_extended, is_restartable
from kubesched.k8s.model.resource import (
    DEVICE_CLASS_RESOURCE_PREFIX,
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    CapacityRequirements,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    device_class_of,
)

# -- requests of claims ------------------------------------------------------------------------------------------------


EXACT_COUNT = "ExactCount"
ALL = "All"


@dataclass(frozen=True, eq=False)
class Want:
    """One request, or one of the alternatives of a request."""

    name: str
    parent: str
    """The request that this is an alternative of; empty for a plain request."""
    device_class: DeviceClass | None
    selectors: tuple[DeviceSelector, ...]
    wants_all: bool
    count: int
    admin_access: bool
    tolerations: tuple[DeviceToleration, ...] | None
    capacity: Mapping[str, Quantity]
    problem: str | None = None

    @property
    def label(self) -> str:
        """How results refer to it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def request_name(self) -> str:
        return self.parent or self.name

    @property
    def subrequest_name(self) -> str:
        return self.name if self.parent else ""


@dataclass(frozen=True, eq=False)
class WantedClaim:
    """A claim to be allocated."""

    claim: ResourceClaim
    requests: tuple[tuple[Want, ...], ...]
    constraints: tuple[DeviceConstraint, ...]

    @property
    def key(self) -> str:
        return self.claim.key

    @property
    def is_prioritized(self) -> bool:
        """Whether some request has alternatives."""
        return any(alternatives[0].parent for alternatives in self.requests)


def read_claim(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> WantedClaim:
    devices = claim.spec.devices
    return WantedClaim(
        claim,
        tuple(_alternatives(claim.key, request, classes) for request in devices.requests or ()),
        devices.constraints or (),
    )


@dataclass(frozen=True, eq=False)
class Order:
    """All that is to be allocated for a pod on one kind of node."""

    claims: tuple[WantedClaim, ...]

    @cached_property
    def fingerprint(self) -> bytes:
        """Equal for orders that ask for the same, whatever the claims are called."""
        return msgspec.json.encode(
            [
                (
                    wanted.claim.spec.devices.requests,
                    wanted.constraints,
                    [want.device_class and want.device_class.spec.selectors for want in _all_wants(wanted)],
                )
                for wanted in self.claims
            ]
        )


def _all_wants(wanted: WantedClaim) -> list[Want]:
    return [want for alternatives in wanted.requests for want in alternatives]


def _alternatives(claim_key: str, request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> tuple[Want, ...]:
    if request.first_available:
        return tuple(_read(claim_key, sub, sub.name, request.name, classes) for sub in request.first_available)
    return (_read(claim_key, request.exactly or ExactDeviceRequest(), request.name, "", classes),)


def _read(
    claim_key: str,
    request: ExactDeviceRequest | DeviceSubRequest,
    name: str,
    parent: str,
    classes: Mapping[str, DeviceClass],
) -> Want:
    problem = _find_problem(request, classes)
    capacity: dict[str, Quantity] = {}
    try:
        capacity = _capacity(request.capacity)
    except QuantityError as error:
        problem = problem or f": {error}"
    return Want(
        name=name,
        parent=parent,
        device_class=classes.get(request.device_class_name),
        selectors=request.selectors or (),
        wants_all=request.allocation_mode == ALL,
        count=request.count or 1,
        admin_access=isinstance(request, ExactDeviceRequest) and bool(request.admin_access),
        tolerations=request.tolerations,
        capacity=capacity,
        problem=None if problem is None else f"claim {claim_key}, request {name}{problem}",
    )


def _find_problem(request: ExactDeviceRequest | DeviceSubRequest, classes: Mapping[str, DeviceClass]) -> str | None:
    for index, selector in enumerate(request.selectors or ()):
        if selector.cel is None:
            return f", selector #{index}: CEL expression empty (unsupported selector type?)"
    class_name = request.device_class_name
    if not class_name:
        return ": missing device class name (unsupported request type?)"
    if class_name not in classes:
        not_found = f'deviceclass.resource.k8s.io "{class_name}" not found'
        return f": could not retrieve device class {class_name}: {not_found}"
    if request.allocation_mode not in ("", EXACT_COUNT, ALL):
        return f": unsupported count mode {request.allocation_mode}"
    return None


def _capacity(requirements: CapacityRequirements | None) -> dict[str, Quantity]:
    requests = requirements.requests if requirements is not None else None
    return {name: quantity.parse(amount) for name, amount in (requests or {}).items()}


# -- extended resources ------------------------------------------------------------------------------------------------


SPECIAL_CLAIM_NAME = "<extended-resources>"
"""The special claim is called so until it exists. No real claim can have this name."""


def is_class_backed_name(resource: str) -> bool:
    """Whether a device class may stand behind this resource."""
    return is_extended(resource) or resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX)


@dataclass(eq=False)
class ExtendedDemand:
    """What a pod asks for by extended resources, some of it backed by device classes."""

    pod: Pod
    claim: ResourceClaim
    """The special claim: new, or left over from an earlier attempt."""
    resources: tuple[str, ...]
    classes: Mapping[str, DeviceClass]
    """By those of the resources that have one."""
    _by_kind: dict[tuple[str, ...], ExtendedRequests] = field(default_factory=dict)

    @property
    def is_left_over(self) -> bool:
        return bool(self.claim.spec.devices.requests)

    def unfit(self, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) nodes that know nothing of a resource that no class stands behind."""
        unfit = np.zeros(len(nodes), dtype=np.bool_)
        for resource in self.resources:
            if resource in self.classes:
                continue
            for position in np.flatnonzero(nodes.allocatable(resource) == 0):
                unfit[position] |= resource not in (nodes.at(int(position)).node.status.allocatable or {})
        return unfit

    def kinds(self, nodes: NodeTable) -> tuple[list[tuple[str, ...]], IntArray]:
        """Which resources nodes must provide as devices: the cases, and (n_nodes,) the number of each node's own."""
        names = [resource for resource in self.resources if resource in self.classes]
        lacking = np.zeros(len(nodes), dtype=np.int64)
        for bit, resource in enumerate(names):
            lacking |= np.equal(nodes.allocatable(resource), 0).astype(np.int64) << bit
        cases, own = np.unique(lacking, return_inverse=True)
        kinds = [tuple(name for bit, name in enumerate(names) if case >> bit & 1) for case in cases.tolist()]
        return kinds, own.reshape(-1).astype(np.int64)

    def requests(self, kind: tuple[str, ...]) -> ExtendedRequests:
        if kind not in self._by_kind:
            self._by_kind[kind] = requests_for(self.pod, kind, self.classes)
        return self._by_kind[kind]

    def claim_for(self, kind: tuple[str, ...]) -> ResourceClaim:
        """The special claim as it is on nodes of this kind."""
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=self.requests(kind).requests or None))
        return ResourceClaim(metadata=self.claim.metadata, spec=spec)


def find_demand(pod: PodInfo, classes: Mapping[str, DeviceClass]) -> tuple[tuple[str, ...], dict[str, DeviceClass]]:
    """The extended resources that a pod asks for, and the classes behind them; nothing if there is no class."""
    resources = tuple(
        sorted(name for name, units in pod.resources.requests.items() if units and is_class_backed_name(name))
    )
    if not resources or not classes:
        return (), {}
    found = {name: device_class_of(name, classes) for name in resources}
    backed = {name: device_class for name, device_class in found.items() if device_class is not None}
    return (resources, backed) if backed else ((), {})


def special_claim(pod: PodInfo) -> ResourceClaim:
    """The claim for a pod's extended resources, as long as it exists only here."""
    return ResourceClaim(
        metadata=ObjectMeta(
            name=SPECIAL_CLAIM_NAME,
            namespace=pod.namespace,
            uid=f"{pod.uid}/extended-resources",
            annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
            owner_references=(
                OwnerReference(kind="Pod", name=pod.name, uid=pod.pod.metadata.uid, api_version="v1", controller=True),
            ),
        )
    )


def generate_name(pod_name: str) -> str:
    """What the API server makes the special claim's real name from."""
    return f"{pod_name}-extended-resources-"


# -- extended resources as requests of one claim -----------------------------------------------------------------------


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
