"""What controllers know of the cluster: told by informers, and by the answers to their own writes.

Reads see one's own writes: an answer counts at once, and older news of the same object is passed over (versions only
grow). What was removed does not come back by late news. So a controller that just made a pod finds it when it counts
again, and makes no second one.

Next: `whole_objects` for objects that are kept whole.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import msgspec

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.reported_pods import ReportedPod
from kubesched.playground.controllers.whole_objects import WholeObject, WorkloadDocument

K = TypeVar("K", bound=KubeObject)
T = TypeVar("T")
V = TypeVar("V")
Listener = Callable[[KubeObject | None, KubeObject | None], None]
"""Told (before, after) of every change."""

_REMEMBERED = 20_000
_log = logging.getLogger("kubesched.controllers")


class GoneMeanwhile(Exception):  # noqa: N818  what happened to the object, not what its controller did wrong
    """An object that a controller is busy with has been deleted since it was read."""


class ClusterView:
    """An informer's handler. Objects are kept by kind and key, by uid, by owner, and pods by node."""

    def __init__(self) -> None:
        self._items: dict[type[KubeObject], dict[str, KubeObject]] = {}
        self._in_namespace: dict[tuple[type[KubeObject], str], dict[str, KubeObject]] = {}
        self._by_uid: dict[str, KubeObject] = {}
        self._owned: dict[str, dict[str, KubeObject]] = {}
        self._on_node: dict[str, dict[str, Pod]] = {}
        self._unowned: dict[str, dict[str, Pod]] = {}
        self._wholes: dict[str, WholeObject] = {}
        self._gone: set[str] = set()
        self._gone_in_order: deque[str] = deque()
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    # -- reading -------------------------------------------------------------------------------------------------------

    def find(self, kind: type[K], key: str) -> K | None:
        return cast("K | None", self._items.get(kind, {}).get(key))

    def of(self, kind: type[K]) -> dict[str, K]:
        """By key. Not to be changed."""
        return cast("dict[str, K]", self._items.get(kind, {}))

    def in_namespace(self, kind: type[K], namespace: str) -> list[K]:
        return cast("list[K]", list(self._in_namespace.get((kind, namespace), {}).values()))

    def by_uid(self, uid: str) -> KubeObject | None:
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[KubeObject]:
        """All that name this object among their owners."""
        return list(self._owned.get(uid, {}).values())

    def owned(self, uid: str, kind: type[K]) -> list[K]:
        return [item for item in self.dependents(uid) if isinstance(item, kind)]

    def n_dependents(self, uid: str) -> int:
        return len(self._owned.get(uid, ()))

    def pods_on(self, node_name: str) -> list[Pod]:
        return list(self._on_node.get(node_name, {}).values())

    def pods_without_owner(self, namespace: str) -> list[Pod]:
        return list(self._unowned.get(namespace, {}).values())

    def whole(self, item: KubeObject) -> WholeObject:
        """Of a workload, with all that the model leaves out. Raises GoneMeanwhile."""
        found = self._wholes.get(item.metadata.uid)
        if found is None:
            raise GoneMeanwhile(item.key)
        return found

    def is_gone(self, uid: str) -> bool:
        """Known to have been there, and to be no more."""
        return uid in self._gone

    def owners_of(self, item: KubeObject) -> Iterator[KubeObject]:
        """Those that are known, and theirs; each once, since owners may go in circles."""
        seen = {item.metadata.uid}
        waiting = [item]
        while waiting:
            for reference in waiting.pop().metadata.owner_references or ():
                owner = self._by_uid.get(reference.uid)
                if owner is not None and reference.uid not in seen:
                    seen.add(reference.uid)
                    waiting.append(owner)
                    yield owner

    # -- news ----------------------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        whole = None
        if isinstance(item, WorkloadDocument):
            try:
                whole = WholeObject.of(item)
            except msgspec.ValidationError as problem:
                _log.error("A workload cannot be read", extra={"fields": {"object": item.key, "err": str(problem)}})
                return
            item = whole.typed
        self._keep(item, whole)

    def put_answer(self, kind: type[KubeObject], body: bytes, is_whole: bool) -> None:
        """What the server answered to a write."""
        if is_whole:
            whole = WholeObject.of_body(kind, body)
            self._keep(whole.typed, whole)
        else:
            self._keep(msgspec.json.decode(body, type=ReportedPod if kind is Pod else kind), None)

    def remove(self, item: KubeObject) -> None:
        uid = item.metadata.uid
        self._remember_gone(uid)
        known = self._by_uid.get(uid)
        if known is not None:
            self._take_out(known)
            self._tell(known, None)

    def _keep(self, item: KubeObject, whole: WholeObject | None) -> None:
        uid = item.metadata.uid
        if uid in self._gone:
            return
        before = self._by_uid.get(uid)
        if before is not None:
            if _version(before) >= _version(item):
                return
            self._take_out(before)
        namesake = self._items.get(_kind_of(item), {}).get(item.key)
        if namesake is not None:  # made anew under the same name
            self.remove(namesake)
        self._put_in(item)
        if whole is not None:
            self._wholes[uid] = whole
        self._tell(before, item)

    def _put_in(self, item: KubeObject) -> None:
        kind, uid = _kind_of(item), item.metadata.uid
        self._items.setdefault(kind, {})[item.key] = item
        self._by_uid[uid] = item
        if item.namespace:
            self._in_namespace.setdefault((kind, item.namespace), {})[item.key] = item
        for reference in item.metadata.owner_references or ():
            self._owned.setdefault(reference.uid, {})[uid] = item
        if isinstance(item, Pod):
            if item.spec.node_name:
                self._on_node.setdefault(item.spec.node_name, {})[uid] = item
            if not item.metadata.owner_references:
                self._unowned.setdefault(item.namespace, {})[uid] = item

    def _take_out(self, item: KubeObject) -> None:
        kind, uid = _kind_of(item), item.metadata.uid
        self._items[kind].pop(item.key, None)
        self._by_uid.pop(uid, None)
        self._wholes.pop(uid, None)
        if item.namespace:
            _drop(self._in_namespace, (kind, item.namespace), item.key)
        for reference in item.metadata.owner_references or ():
            _drop(self._owned, reference.uid, uid)
        if isinstance(item, Pod):
            _drop(self._on_node, item.spec.node_name, uid)
            _drop(self._unowned, item.namespace, uid)

    def _remember_gone(self, uid: str) -> None:
        if uid in self._gone:
            return
        self._gone.add(uid)
        self._gone_in_order.append(uid)
        if len(self._gone_in_order) > _REMEMBERED:
            self._gone.discard(self._gone_in_order.popleft())

    def _tell(self, before: KubeObject | None, after: KubeObject | None) -> None:
        for listener in self._listeners:
            listener(before, after)


def _kind_of(item: KubeObject) -> type[KubeObject]:
    """Pods are kept with what kubelets report of them, and are pods all the same."""
    return Pod if isinstance(item, Pod) else type(item)


def _version(item: KubeObject) -> int:
    text = item.metadata.resource_version
    return int(text) if text.isdecimal() else 0


def _drop(index: dict[T, dict[str, V]], key: T, inner: str) -> None:
    found = index.get(key)
    if found is not None:
        found.pop(inner, None)
        if not found:
            del index[key]
