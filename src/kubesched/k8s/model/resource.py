"""Dynamic resource allocation (`resource.k8s.io/v1`): claims, slices, device classes, taints, and rules on them.

An extended resource may stand for devices. A class is asked for by the name it declares (`extendedResourceName`), or by
its own name behind a fixed prefix. Where two classes declare the same name, the newer one has it, so that one can take
over from the other; of two equally old ones the first in the order of their names.

Rules add taints to what drivers publish; `taints` has what tolerates them.

Next: `kubesched.scheduler.plugins.dynamic_resources` allocates devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.core import NodeSelector
from kubesched.k8s.model.meta import Amount, Int64, KubeObject, KubeStruct, ObjectMeta
from kubesched.k8s.model.times import parse_instant

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim until no pod uses it any more."""

EXTENDED_RESOURCE_CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""Marks (with the value `true`) the claim that the scheduler made for a pod's extended resources."""

DEVICE_CLASS_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
"""With a class's name behind it: the extended resource that stands for one device of that class."""

ALLOCATION_RESULTS_MAX_SIZE = 32
"""As many devices can be allocated for one claim."""

FIRST_AVAILABLE_MAX_SIZE = 8
"""As many subrequests can one request have."""


class CELDeviceSelector(KubeStruct, frozen=True):
    expression: str


class DeviceSelector(KubeStruct, frozen=True):
    cel: CELDeviceSelector | None = None


class DeviceToleration(KubeStruct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(KubeStruct, frozen=True):
    requests: dict[str, Amount] | None = None


class ExactDeviceRequest(KubeStruct, frozen=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(KubeStruct, frozen=True):
    name: str
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: CapacityRequirements | None = None


class DeviceRequest(KubeStruct, frozen=True):
    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] | None = None


class DeviceConstraint(KubeStruct, frozen=True):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(KubeStruct, frozen=True):
    """Parameters that only the driver understands."""

    driver: str = ""
    parameters: Any = None


class DeviceClaimConfiguration(KubeStruct, frozen=True):
    requests: tuple[str, ...] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(KubeStruct, frozen=True):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[DeviceClaimConfiguration, ...] | None = None


class ResourceClaimSpec(KubeStruct, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(KubeStruct, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Amount] | None = None


class DeviceAllocationConfiguration(KubeStruct, frozen=True):
    source: str = ""
    requests: tuple[str, ...] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(KubeStruct, frozen=True):
    results: tuple[DeviceRequestAllocationResult, ...] | None = None
    config: tuple[DeviceAllocationConfiguration, ...] | None = None


class AllocationResult(KubeStruct, frozen=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(KubeStruct, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(KubeStruct, frozen=True):
    """What a driver says about a device that it has been asked to prepare."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: str | None = None


class AllocatedDeviceStatus(KubeStruct, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] | None = None
    data: Any = None
    network_data: Any = None


class ResourceClaimStatus(KubeStruct, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] | None = None
    devices: tuple[AllocatedDeviceStatus, ...] | None = None


class ResourceClaim(KubeObject, frozen=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject, frozen=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceAttribute(KubeStruct, frozen=True):
    """Exactly one is set. Named for the API's fields, which Python reserves."""

    int_value: Int64 | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRequestPolicyRange(KubeStruct, frozen=True):
    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityRequestPolicy(KubeStruct, frozen=True):
    default: Amount | None = None
    valid_values: tuple[Amount, ...] | None = None
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(KubeStruct, frozen=True):
    value: Amount = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(KubeStruct, frozen=True):
    value: Amount = "0"


class CounterSet(KubeStruct, frozen=True):
    name: str
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(KubeStruct, frozen=True):
    counter_set: str
    counters: dict[str, Counter] | None = None


class DeviceTaint(KubeStruct, frozen=True):
    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class Device(KubeStruct, frozen=True):
    name: str
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[DeviceCounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(KubeStruct, frozen=True):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 1


class ResourceSliceSpec(KubeStruct, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(KubeObject, frozen=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(KubeStruct, frozen=True):
    """Which devices a rule is about; what it leaves out may be anything."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(KubeStruct, frozen=True):
    taint: DeviceTaint
    device_selector: DeviceTaintSelector | None = None


class DeviceTaintRule(KubeObject, frozen=True):
    """A taint that someone other than the driver puts on devices (`resource.k8s.io/v1beta2`)."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec(DeviceTaint("", ""))
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class DeviceClassConfiguration(KubeStruct, frozen=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(KubeStruct, frozen=True):
    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[DeviceClassConfiguration, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()


def device_class_of(resource: str, classes: Mapping[str, DeviceClass]) -> DeviceClass | None:
    """The class whose devices the resource stands for. `classes` by their names."""
    if not classes:
        return None
    if resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX):
        return classes.get(resource.removeprefix(DEVICE_CLASS_RESOURCE_PREFIX))
    claimants = [found for found in classes.values() if found.spec.extended_resource_name == resource]
    return min(claimants, key=_rank, default=None)


def _rank(found: DeviceClass) -> tuple[float, str]:
    created = found.metadata.creation_timestamp
    return (-parse_instant(created) if created else float("inf"), found.name)


def selects(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Whether the rule is about this device; one without a selector is about all."""
    selector = rule.spec.device_selector
    if selector is None:
        return True
    asked = ((selector.driver, driver), (selector.pool, pool), (selector.device, device))
    return all(wanted is None or wanted == found for wanted, found in asked)


def with_rule_taints(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice as if its driver had published the taints of the rules too; the same object if there are none."""
    spec = slice_.spec
    devices = list(spec.devices or ())
    is_changed = False
    for rule in rules:
        for position, device in enumerate(devices):
            if selects(rule, spec.driver, spec.pool.name, device.name):
                devices[position] = replace(device, taints=(*(device.taints or ()), rule.spec.taint))
                is_changed = True
    return replace(slice_, spec=replace(spec, devices=tuple(devices))) if is_changed else slice_
