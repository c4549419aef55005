"""All that the page shows at one moment, and what has changed since another.

Objects never change, only get replaced: a row is made once for each object, and whoever looks again pays for what is
new. Next: `stream`, which looks four times a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.playground.web.devices import claim_row, device_rows
from kubesched.playground.web.rows import Row, group_row, node_row, pod_row, queue_rows, same_queue
from kubesched.playground.web.sources import WebSources

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
