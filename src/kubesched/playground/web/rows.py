"""What the page shows of a node, a pod, a pod group, the queue, devices and claims: small rows of plain JSON. Pure.

Amounts are in the units that nodes are counted in (milli-cpus, bytes, whole units of everything else), instants are
seconds since the epoch: the page adds up and prints them. Of devices, only the newest generation of a pool counts, as
for the scheduler. Devices that are not bound to one node stand under the empty name.

Next: `stream`, which puts them together and finds out what has changed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.requests import AmountError, effective_requests, in_node_units, node_units
from kubesched.k8s.model.resource import DeviceRequest, ResourceClaim, ResourceSlice
from kubesched.k8s.model.scheduling import POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED, PodGroup, group_key_of
from kubesched.k8s.model.times import InstantError, parse_instant

Row = dict[str, Any]

QUEUE_PLACES = ("active", "backoff", "unschedulable", "gated", "inFlight")
MOST_QUEUED = 300
"""So many pods of each place are listed; all are counted."""

_TIMES_OF_QUEUE = ("waitingSeconds", "backoffSeconds")


def node_row(node: Node) -> Row:
    try:
        amounts = node_units(node.status.allocatable, "status.allocatable")
    except AmountError:
        amounts = {}
    row: Row = {"amounts": {name: amount for name, amount in amounts.items() if amount}, "labels": node.labels}
    ready = next((one.status for one in node.status.conditions or () if one.type == "Ready"), "Unknown")
    if ready != "True":
        row["notReady"] = True
    if ready == "Unknown":
        row["silent"] = True
    if node.spec.unschedulable:
        row["unschedulable"] = True
    if node.spec.taints:
        row["taints"] = [_taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints]
    return row


def pod_row(pod: Pod) -> Row:
    try:
        amounts = in_node_units(effective_requests(pod))
    except AmountError:
        amounts = {}
    row: Row = {"state": pod_state(pod), "asks": {name: amount for name, amount in amounts.items() if amount}}
    owner = controller_of(pod.metadata)
    details = {
        "node": pod.spec.node_name,
        "priority": pod.priority,
        "owner": "" if owner is None else f"{owner.kind}/{owner.name}",
        "created": _seconds(pod.metadata.creation_timestamp),
        "nominated": pod.status.nominated_node_name,
        "claims": claim_keys(pod),
        "group": group_key_of(pod),
    }
    return row | {name: value for name, value in details.items() if value}


def group_row(group: PodGroup) -> Row:
    """What it wants, and what the scheduler said of it last."""
    told = group.condition(POD_GROUP_SCHEDULED) or group.condition(POD_GROUP_INITIALLY_SCHEDULED)
    state = "waiting" if told is None else "scheduled" if told.status == "True" else "unschedulable"
    details = {
        "needs": group.min_count,
        "topology": group.topology_key,
        "priority": group.priority,
        "whole": group.is_evicted_whole,
        "created": _seconds(group.metadata.creation_timestamp),
        "message": told.message if told is not None and told.status != "True" else "",
    }
    return {"state": state} | {name: value for name, value in details.items() if value}


def claim_keys(pod: Pod) -> list[str]:
    """The ResourceClaims that the pod names, and those that were made for it."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses or ()}
    names = [one.resource_claim_name or made.get(one.name) for one in pod.spec.resource_claims or ()]
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        names.append(extended.resource_claim_name)
    return [f"{pod.metadata.namespace}/{name}" for name in names if name]


def pod_state(pod: Pod) -> str:
    """One of six words: what kubectl's STATUS column would lead to, as far as the page tells pods apart."""
    if pod.is_terminal:
        return pod.status.phase.lower()
    if pod.is_terminating:
        return "terminating"
    if not pod.spec.node_name:
        return "pending"
    return "running" if pod.status.phase == "Running" else "starting"


def queue_rows(report: Row, now_s: float) -> Row:
    """How many pods wait in each place, and the first of them. `now_s` is the time of day."""
    counts = {place: len(report.get(place, ())) for place in QUEUE_PLACES}
    listed = {place: [_queued(pod, now_s) for pod in report.get(place, ())[:MOST_QUEUED]] for place in QUEUE_PLACES}
    return {"counts": counts, "pods": listed}


def same_queue(one: Row, other: Row) -> bool:
    """Whether nothing but time has passed."""
    return one["counts"] == other["counts"] and all(
        [_timeless(pod) for pod in one["pods"][place]] == [_timeless(pod) for pod in other["pods"][place]]
        for place in QUEUE_PLACES
    )


def _queued(pod: Row, now_s: float) -> Row:
    row = {name: value for name, value in pod.items() if name not in (*_TIMES_OF_QUEUE, "uid")}
    if "waitingSeconds" in pod:
        row["since"] = round(now_s - pod["waitingSeconds"], 1)
    if "backoffSeconds" in pod:
        row["until"] = round(now_s + pod["backoffSeconds"], 1)
    return row


def _timeless(pod: Row) -> Row:
    return {name: value for name, value in pod.items() if name not in ("since", "until")}


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _seconds(instant: str | None) -> float:
    if instant is None:
        return 0.0
    try:
        return parse_instant(instant)
    except InstantError:
        return 0.0


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
