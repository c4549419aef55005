"""The simulated API server's objects, and virtual time.

Beside what the typed store has: who owns what, and which pods are where. The clock has what is to happen, in the order
of its time, and of its coming where times are equal.

Next: `kubelets`, because objects take others with them when they go, and pods take their time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from kubesched.k8s.model.apps import Job
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, OwnerReference, controller_of
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.actions import NameSource
from kubesched.simulator.api_model import TypedStore

Item = TypeVar("Item", bound=KubeObject)

_FORGETFUL = ("Job", "ReplicaSet", "ReplicationController")
"""Controllers that leave their finished pods alone."""


class ClusterStore(TypedStore):
    def __init__(self, clock: VirtualClock, names: NameSource) -> None:
        super().__init__()
        self._clock = clock
        self._names = names
        self._by_uid: dict[str, KubeObject] = {}
        self._owned: dict[str, dict[str, KubeObject]] = defaultdict(dict)
        self._pods_on: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._pods_in: dict[str, dict[str, Pod]] = defaultdict(dict)
        self.n_changes = 0
        """Changes that could matter to a pod that waits."""

    # -- to read -------------------------------------------------------------------------------------------------------

    def by_uid(self, uid: str) -> KubeObject | None:
        return self._by_uid.get(uid)

    def owners_of(self, item: KubeObject) -> list[KubeObject]:
        """The owner that manages the object, the owner's owner, and so on, as far as they are known."""
        chain: list[KubeObject] = []
        while (owner := controller_of(item.metadata)) is not None:
            found = self._by_uid.get(owner.uid)
            if found is None or found in chain:
                break
            chain.append(found)
            item = found
        return chain

    def owned(self, uid: str, kind: type[Item]) -> list[Item]:
        """What belongs to the object of this uid and still counts: a finished pod or job whose controller has counted
        it is left out."""
        return [item for item in self._owned.get(uid, {}).values() if isinstance(item, kind)]

    def pods_on(self, node_name: str) -> list[Pod]:
        """Those that have not finished."""
        return list(self._pods_on.get(node_name, {}).values())

    def pods_in(self, namespace: str) -> list[Pod]:
        """Those that have not finished."""
        return list(self._pods_in.get(namespace, {}).values())

    # -- to write ------------------------------------------------------------------------------------------------------

    def create(self, item: Item) -> Item:
        """A new object, of a name that is free."""
        metadata, key = item.metadata, item.key
        stamped = replace(
            metadata,
            uid=metadata.uid or self._names.uid(f"{type(item).__name__} {key}"),
            creation_timestamp=metadata.creation_timestamp or self._clock.now,
            generation=metadata.generation or 1,
            resource_version=self.next_version(),
        )
        return self.keep(replace(item, metadata=stamped), key)

    def update(self, item: Item) -> Item:
        """The object as it is to be from now on; its identity stays."""
        known = self._objects[type(item)].get(item.key)
        if known is None:
            return item
        metadata = replace(
            item.metadata,
            uid=known.metadata.uid,
            creation_timestamp=known.metadata.creation_timestamp,
            resource_version=known.metadata.resource_version,
        )
        item = replace(item, metadata=metadata)
        if item == known:
            return item
        return self.write(item)

    def keep(self, item: Item, key: str = "") -> Item:
        key = key or item.key
        known = self._objects[type(item)].get(key)
        if known is not None:
            self._forget(known, item)
        self._remember(item)
        self.n_changes += 1
        return super().keep(item, key)

    def remove(self, item: KubeObject, key: str = "") -> None:
        key = key or item.key
        known = self._objects[type(item)].get(key)
        if known is not None:
            self._forget(known)
            self.n_changes += 1
            super().remove(known, key)

    # -- indexes -------------------------------------------------------------------------------------------------------

    def _remember(self, item: KubeObject) -> None:
        metadata = item.metadata
        uid = metadata.uid
        self._by_uid[uid] = item
        owner = controller_of(metadata) if metadata.owner_references else None
        if owner is not None and not _is_counted(item, owner):
            self._owned[owner.uid][uid] = item
        if isinstance(item, Pod) and not item.is_terminal:
            self._pods_in[metadata.namespace][uid] = item
            node_name = item.spec.node_name
            if node_name:
                self._pods_on[node_name][uid] = item

    def _forget(self, item: KubeObject, newer: KubeObject | None = None) -> None:
        """What was remembered of an object that is gone, or that is to be remembered as the newer one."""
        metadata = item.metadata
        uid = metadata.uid
        if newer is None or newer.metadata.uid != uid:
            self._by_uid.pop(uid, None)
        owner = controller_of(metadata) if metadata.owner_references else None
        if owner is not None:
            self._owned[owner.uid].pop(uid, None)
        if isinstance(item, Pod):
            if not isinstance(newer, Pod) or newer.metadata.uid != uid or newer.is_terminal:
                self._pods_in[metadata.namespace].pop(uid, None)
            node_name = item.spec.node_name
            if node_name:
                self._pods_on[node_name].pop(uid, None)


def _is_counted(item: KubeObject, owner: OwnerReference) -> bool:
    """Whether the object has ended and its controller will not look at it again. A run may have very many of them."""
    if isinstance(item, Job):
        return item.is_finished
    if not isinstance(item, Pod) or not item.is_terminal:
        return False
    return owner.kind in _FORGETFUL and not item.metadata.finalizers


Happening = Callable[[], None]

_TO_THE_MICROSECOND = 6


class VirtualClock:
    """Stands still until it is told to go on. Times are seconds since the epoch."""

    def __init__(self, start_s: float) -> None:
        self.start_s = start_s
        self.now_s = start_s
        self.elapsed_s = 0.0
        """Since the start, to the microsecond."""
        self._text = ""
        self._heap: list[tuple[float, int, Happening]] = []
        self._n_planned = 0

    def __len__(self) -> int:
        """How much is still to happen."""
        return len(self._heap)

    @property
    def now(self) -> str:
        """The time as an API server writes it."""
        if not self._text:
            self._text = print_instant(self.now_s)
        return self._text

    def at(self, at_s: float, happening: Happening) -> None:
        """What was due in the past happens now."""
        heapq.heappush(self._heap, (max(at_s, self.now_s), self._n_planned, happening))
        self._n_planned += 1

    def after(self, for_s: float, happening: Happening) -> None:
        self.at(self.now_s + for_s, happening)

    def next_s(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def go_to(self, at_s: float) -> None:
        if at_s > self.now_s:
            self.now_s = at_s
            self.elapsed_s = round(at_s - self.start_s, _TO_THE_MICROSECOND)
            self._text = ""

    def run_due(self) -> bool:
        """Lets everything happen that is due by now, and was so when this began; False if there was nothing."""
        due = []
        while self._heap and self._heap[0][0] <= self.now_s:
            due.append(heapq.heappop(self._heap)[2])
        for happening in due:
            happening()
        return bool(due)
