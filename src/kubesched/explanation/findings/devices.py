"""Behind DynamicResources: which devices a node has for each request, how many are free, and what selects them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kubesched.explanation.findings.finding import FAR, NEAR, CauseKind, Fact, Nearness
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model import selectors
from kubesched.k8s.model.resource import DeviceAttribute, DeviceTaint, ResourceClaim
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.dynamic_resources.allocator import SharedDevices
from kubesched.scheduler.plugins.dynamic_resources.device_checks import is_kept_away, is_selected
from kubesched.scheduler.plugins.dynamic_resources.offers import NodeOffer
from kubesched.scheduler.plugins.dynamic_resources.outcomes import AllocationError, SearchAbandonedError, SearchBudget
from kubesched.scheduler.plugins.dynamic_resources.published import PublishedDevice
from kubesched.scheduler.plugins.dynamic_resources.requests import Want, WantedClaim, read_claim
from kubesched.scheduler.plugins.dynamic_resources.scheduling_cycle import NOT_AVAILABLE
from kubesched.scheduler.plugins.dynamic_resources.state import ClaimNotReadyError, claims_of

_ATTRIBUTES_SHOWN = 4
_BUDGET = 200_000
"""What looking at one node's devices may cost, in units of CEL."""


@dataclass(frozen=True, slots=True)
class DeviceCount:
    """Devices of a node, in the light of one request."""

    of_class: int
    selected: int
    free: int
    tainted: int
    """Devices that the request selects, but does not tolerate the taints of."""
    taints: tuple[str, ...]
    attributes: tuple[str, ...]
    """What the devices of the class are, in a few words each."""


class DevicesOfNodes:
    """Facts by row. Nodes that are offered the same devices in the same state share them."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._cluster = cluster
        self._pod = pod
        self._known: dict[int, tuple[Fact, ...]] = {}

    def of(self, row: int) -> tuple[Fact, ...]:
        alone = self._cluster.nodes.take(np.array([row]))
        code = int(self._shared.offers.codes(alone)[0]) if self._claims else 0
        if code not in self._known:
            offer = self._shared.offers.offer(alone)
            self._known[code] = tuple(fact for claim in self._wanted for fact in _request_facts(claim, offer))
        return (*self._known[code], *self._elsewhere(row))

    def _elsewhere(self, row: int) -> Iterator[Fact]:
        """Claims that have their devices, but not for this node."""
        node = self._cluster.table.nodes[row]
        for claim in self._claims:
            allocation = claim.status.allocation
            if allocation is None or allocation.node_selector is None:
                continue
            compiled = selectors.from_node_selector(allocation.node_selector)
            if not compiled.matches(node):
                places = " or ".join(
                    " and ".join(map(str, (*term.labels, *term.fields))) or "no node" for term in compiled.terms
                )
                text = f"resource claim {claim.name}: its devices are only for {places}"
                fields = {"claim": claim.key, "devices": _device_names(claim), "required": places}
                yield Fact(DynamicResources.name, text, fields, FAR, NOT_AVAILABLE, CauseKind.DEVICE_PLACE)

    @cached_property
    def _shared(self) -> SharedDevices:
        shared = SharedDevices()
        shared.refresh(self._cluster.objects)
        return shared

    @cached_property
    def _claims(self) -> list[ResourceClaim]:
        try:
            return list(claims_of(self._pod.pod, self._cluster.objects.resource_claims.get, of_groups=True))
        except ClaimNotReadyError:
            return []

    @cached_property
    def _wanted(self) -> list[WantedClaim]:
        classes = self._cluster.objects.device_classes
        return [read_claim(claim, classes) for claim in self._claims if claim.status.allocation is None]


def _request_facts(claim: WantedClaim, offer: NodeOffer) -> Iterator[Fact]:
    """For each request that cannot be met, the alternative that comes nearest."""
    for alternatives in claim.requests:
        found = [_fact(claim, want, count_devices(claim.key, want, offer)) for want in alternatives]
        if all(fact is not None for fact in found):
            yield min((fact for fact in found if fact is not None), key=lambda fact: (fact.nearness, fact.distance))


def count_devices(claim_key: str, want: Want, offer: NodeOffer) -> DeviceCount:
    budget = SearchBudget(_BUDGET)
    any_of_class = replace(want, selectors=())
    of_class = [
        index
        for index, device in enumerate(offer.devices)
        if offer.usable[index] and _selects(any_of_class, device, claim_key, budget)
    ]
    wanted = [index for index in of_class if _selects(want, offer.devices[index], claim_key, budget)]
    selected = [index for index in wanted if not is_kept_away(offer.devices[index], want)]
    tainted = [offer.devices[index] for index in wanted if is_kept_away(offer.devices[index], want)]
    n_free = sum(not offer.is_dedicated[index] for index in selected)
    told = dict.fromkeys(_attributes_text(offer.devices[index]) for index in of_class)
    taints = dict.fromkeys(_taint_text(taint) for device in tainted for taint in device.taints)
    return DeviceCount(len(of_class), len(selected), n_free, len(tainted), tuple(taints), tuple(told))


def _taint_text(taint: DeviceTaint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _selects(want: Want, device: PublishedDevice, claim_key: str, budget: SearchBudget) -> bool:
    try:
        return is_selected(want, device, claim_key, budget)
    except (AllocationError, SearchAbandonedError):
        return False


def _fact(claim: WantedClaim, want: Want, count: DeviceCount) -> Fact | None:
    """None where there are enough devices for this request alone."""
    class_name = "" if want.device_class is None else want.device_class.name
    expressions = [selector.cel.expression for selector in want.selectors if selector.cel is not None]
    n_wanted = max(count.selected, 1) if want.wants_all else want.count
    asked = f"claim {claim.claim.name}, request {want.label}"
    which = f" with {' and '.join(expressions)}" if expressions else ""
    fields: dict[str, Any] = {
        "claim": claim.key,
        "request": want.label,
        "deviceClass": class_name,
        "selectors": expressions,
        "requested": n_wanted,
        "devices": count.of_class,
        "matching": count.selected,
        "free": count.free,
        "found": list(count.attributes),
    }
    if count.of_class == 0:
        return _device_fact(f"{asked}: no device of class {class_name}", fields, CauseKind.NO_SUCH_DEVICE, FAR + NEAR)
    if count.selected == 0 and count.tainted:
        fields |= {"tainted": count.tainted, "taints": list(count.taints)}
        general = f"{asked}: its devices of class {class_name} have taints that the claim does not tolerate"
        text = f"{general}: {', '.join(count.taints)}"
        return _device_fact(text, fields, CauseKind.DEVICE_TAINT, NEAR, general)
    if count.selected == 0:
        general = f"{asked}: no device of class {class_name}{which}"
        text = f"{general}; there are {count.of_class}: {'; '.join(count.attributes)}"
        return _device_fact(text, fields, CauseKind.NO_SUCH_DEVICE, FAR, general)
    if count.free >= n_wanted:
        return None
    is_enough = count.selected >= n_wanted
    general = f"{asked}: needs {n_wanted} of class {class_name}{which}, not enough {'free' if is_enough else 'there'}"
    text = f"{asked}: needs {n_wanted} of class {class_name}{which}, free {count.free} of {count.selected}"
    if count.tainted:
        text += f", {count.tainted} more with taints ({', '.join(count.taints)})"
    distance = (n_wanted - count.free) / n_wanted
    nearness = Nearness.LACKS if is_enough else Nearness.TOO_SMALL
    return Fact(DynamicResources.name, text, fields, distance, "", CauseKind.DEVICES, nearness, general)


def _device_fact(text: str, fields: dict[str, Any], kind: CauseKind, distance: float, general: str = "") -> Fact:
    return Fact(DynamicResources.name, text, fields, distance, "", kind, general=general)


def _attributes_text(device: PublishedDevice) -> str:
    """`model=a100, memory=40Gi`: what a selector may look at, as far as it is the same for many devices."""
    attributes = [f"{name}={_value(value)}" for name, value in sorted((device.device.attributes or {}).items())]
    capacity = [f"{name}={published.value}" for name, published in sorted(device.capacity.items())]
    told = [text for text in attributes if not text.startswith(("index=", "uuid="))]
    return ", ".join([*told[:_ATTRIBUTES_SHOWN], *capacity[:_ATTRIBUTES_SHOWN]]) or "no attributes"


def _value(attribute: DeviceAttribute) -> object:
    values: Sequence[object] = (attribute.string, attribute.int_value, attribute.bool_value, attribute.version)
    return next((value for value in values if value is not None), "")


def _device_names(claim: ResourceClaim) -> list[str]:
    allocation = claim.status.allocation
    results = () if allocation is None or allocation.devices is None else allocation.devices.results or ()
    return [f"{result.driver}/{result.pool}/{result.device}" for result in results]
