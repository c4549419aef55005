"""Server-sent events: the whole state for a start, then what changes, to everybody who listens.

One look at the state serves all listeners, and nobody looks while nobody listens. A listener that does not keep up
gets the whole state again instead of all that it missed. Objects never change, only get replaced: a row is made once
for each object, and whoever looks again pays for what is new (`StateReader`).

What is shown of a node, a pod, a pod group, the queue, devices and claims are small rows of plain JSON. Amounts are in
the units that nodes are counted in (milli-cpus, bytes, whole units of everything else), instants are seconds since the
epoch: the page adds up and prints them. Of devices, only the newest generation of a pool counts, as for the scheduler.
Devices that are not bound to one node stand under the empty name.

Next: `page`, which hands listeners in.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.requests import AmountError, effective_requests, in_node_units, node_units
from kubesched.k8s.model.resource import DeviceRequest, ResourceClaim, ResourceSlice
from kubesched.k8s.model.scheduling import POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED, PodGroup, group_key_of
from kubesched.k8s.model.times import InstantError, parse_instant
from kubesched.playground.web.sources import WebSources

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
        "parent": group.spec.parent_composite_pod_group_name,
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


MOST_WAITING = 8
"""So many messages may wait for a listener."""
KEEP_ALIVE_S = 15.0
"""After so long without news a listener gets a comment: that is how we notice that it is gone."""
PAUSES_PER_LOOK = 10
"""Looking at a large cluster takes its time: at most a tenth of all, as the scheduler may be in the same loop."""

_KEEP_ALIVE = b": still here\n\n"


class StateStream:
    """`listen` yields messages, ready to be written; `stop` ends all of them."""

    def __init__(self, reader: StateReader, pause_s: float) -> None:
        self._reader = reader
        self._pause_s = pause_s
        self._listeners: set[_Listener] = set()
        self._looking: asyncio.Task[None] | None = None
        self._last: ShownState | None = None

    async def listen(self) -> AsyncGenerator[bytes]:
        listener = _Listener()
        self.look()
        assert self._last is not None
        listener.restart(_message("state", self._last.report()))
        self._listeners.add(listener)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_forever(), name="web page stream")
        try:
            while (message := await listener.next()) is not None:
                yield message
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                await self._stop_looking()

    async def stop(self) -> None:
        for listener in self._listeners:
            listener.end()
        await self._stop_looking()

    async def _look_forever(self) -> None:
        time_s = asyncio.get_running_loop().time
        pause_s = self._pause_s
        while True:
            await asyncio.sleep(pause_s)
            started_s = time_s()
            self.look()
            pause_s = max(self._pause_s, PAUSES_PER_LOOK * (time_s() - started_s))

    def look(self) -> None:
        """The changes go to all who listen already."""
        before, self._last = self._last, self._reader.read()
        if before is None or not self._listeners:
            return
        found = changes(before, self._last)
        if not found:
            return
        message = _message("change", found)
        for listener in self._listeners:
            if not listener.put(message):
                listener.restart(_message("state", self._last.report()))

    async def _stop_looking(self) -> None:
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking


class _Listener:
    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._has_news = asyncio.Event()
        self._has_ended = False

    def put(self, message: bytes) -> bool:
        """False if too much waits already."""
        if len(self._waiting) >= MOST_WAITING:
            return False
        self._waiting.append(message)
        self._has_news.set()
        return True

    def restart(self, message: bytes) -> None:
        self._waiting.clear()
        self.put(message)

    def end(self) -> None:
        self._has_ended = True
        self._has_news.set()

    async def next(self) -> bytes | None:
        """None at the end."""
        while not self._waiting and not self._has_ended:
            self._has_news.clear()
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await self._has_news.wait()
            except TimeoutError:
                return _KEEP_ALIVE
        return None if self._has_ended else self._waiting.popleft()


def _message(kind: str, body: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(body))


K = TypeVar("K", bound=KubeObject)

KINDS = ("nodes", "pods", "groups", "claims", "devices")


@dataclass(frozen=True, slots=True)
class ShownState:
    """Rows by key; who holds one must not change it."""

    nodes: Mapping[str, Row]
    pods: Mapping[str, Row]
    groups: Mapping[str, Row]
    claims: Mapping[str, Row]
    devices: Mapping[str, Row]
    """By node; empty if no driver offers any."""
    queue: Row

    def report(self) -> dict[str, Any]:
        return {kind: getattr(self, kind) for kind in (*KINDS, "queue")}


class StateReader:
    """Looks at the sources. `now_s` is the time of day."""

    def __init__(self, sources: WebSources, now_s: Callable[[], float]) -> None:
        self._sources = sources
        self._now_s = now_s
        self._nodes = _RowKeeper(node_row)
        self._pods = _RowKeeper(pod_row)
        self._groups = _RowKeeper(group_row)
        self._claims = _RowKeeper(claim_row)
        self._devices = _DeviceKeeper()

    def read(self) -> ShownState:
        sources = self._sources
        claims = list(sources.claims())
        return ShownState(
            nodes=self._nodes.rows(sources.nodes()),
            pods=self._pods.rows(sources.pods()),
            groups=self._groups.rows(sources.groups()),
            claims=self._claims.rows(claims),
            devices=self._devices.rows(list(sources.slices()), claims),
            queue=queue_rows(sources.queue(), self._now_s()),
        )


class _RowKeeper(Generic[K]):
    """Rows of one kind, kept for as long as their objects are there."""

    def __init__(self, make: Callable[[K], Row]) -> None:
        self._make = make
        self._kept: dict[str, tuple[K, Row]] = {}

    def rows(self, items: Iterable[K]) -> dict[str, Row]:
        before, kept = self._kept, {}
        for item in items:
            key = item.key
            known = before.get(key)
            if known is not None and known[0] is item:
                kept[key] = known
                continue
            row = self._make(item)
            kept[key] = (item, known[1] if known is not None and known[1] == row else row)
        self._kept = kept
        return {key: row for key, (_, row) in kept.items()}


class _DeviceKeeper:
    """Counts devices again only after a slice or a claim has changed, which is seldom."""

    def __init__(self) -> None:
        self._seen: list[KubeObject] = []
        self._rows: dict[str, Row] = {}

    def rows(self, slices: list[ResourceSlice], claims: list[ResourceClaim]) -> dict[str, Row]:
        seen: list[KubeObject] = [*slices, *claims]
        if len(seen) != len(self._seen) or any(one is not other for one, other in zip(seen, self._seen, strict=True)):
            before, self._seen = self._rows, seen
            counted = device_rows(slices, claims)
            self._rows = {name: before[name] if before.get(name) == row else row for name, row in counted.items()}
        return self._rows


def changes(before: ShownState, after: ShownState) -> dict[str, Any]:
    """What to put and what to take away to come from one to the other; empty if there is nothing to do."""
    found: dict[str, Any] = {}
    for name in KINDS:
        old, new = getattr(before, name), getattr(after, name)
        put = {key: row for key, row in new.items() if old.get(key) is not row}
        gone = [key for key in old if key not in new]
        if put or gone:
            found[name] = {"put": put, "gone": gone}
    if not same_queue(before.queue, after.queue):
        found["queue"] = after.queue
    return found
