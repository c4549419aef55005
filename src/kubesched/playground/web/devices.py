"""What the page shows of devices: how many each node offers and how many are taken, and what each claim asks for. Pure.

Only the newest generation of a pool counts, as for the scheduler. Devices that are not bound to one node stand under
the empty name.

Next: `snapshot`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from kubesched.k8s.model.resource import DeviceRequest, ResourceClaim, ResourceSlice
from kubesched.playground.web.rows import Row

ANY_NODE = ""

Device = tuple[str, str, str]
"""Driver, pool, name."""


def device_rows(slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim]) -> dict[str, Row]:
    """By node and driver: `[taken, offered]`."""
    offered = _offered(slices)
    taken = {device for claim in claims for device in allocated(claim)}
    counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for device, node_name in offered.items():
        count = counts[node_name][device[0]]
        count[0] += device in taken
        count[1] += 1
    return {node_name: dict(by_driver) for node_name, by_driver in counts.items()}


def claim_row(claim: ResourceClaim) -> Row:
    """`asks` in words, `devices` by name once they are allocated."""
    row: Row = {"asks": [_asked(request) for request in claim.spec.devices.requests or ()]}
    devices = [f"{pool}/{name}" for _, pool, name in allocated(claim)]
    return row | ({"devices": devices} if devices else {})


def allocated(claim: ResourceClaim) -> list[Device]:
    """Those that only this claim may use; access for administrators takes nothing."""
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results or ()
    return [(one.driver, one.pool, one.device) for one in results if not one.admin_access]


def _offered(slices: Iterable[ResourceSlice]) -> dict[Device, str]:
    known = list(slices)
    newest: Counter[tuple[str, str]] = Counter()
    for one in known:
        pool = (one.spec.driver, one.spec.pool.name)
        newest[pool] = max(newest[pool], one.spec.pool.generation)
    found: dict[Device, str] = {}
    for one in known:
        spec = one.spec
        if spec.pool.generation != newest[(spec.driver, spec.pool.name)]:
            continue
        for device in spec.devices or ():
            found[(spec.driver, spec.pool.name, device.name)] = spec.node_name or device.node_name or ANY_NODE
    return found


def _asked(request: DeviceRequest) -> str:
    if request.exactly is not None:
        return _amount(request.exactly.allocation_mode, request.exactly.count, request.exactly.device_class_name)
    choices = (_amount(one.allocation_mode, one.count, one.device_class_name) for one in request.first_available or ())
    return " or ".join(choices)


def _amount(mode: str, count: int, device_class: str) -> str:
    return f"all {device_class}" if mode == "All" else f"{count or 1} × {device_class}"
