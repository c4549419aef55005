"""Who is notified of changes: by what there is now (`InformerHandler`), or by what happened (`ResourceEventHandler`).

A scheduler only needs to know what there is: `put` and `remove` are enough, and cost least. Who wants to know what an
object was before, whether it was there from the beginning, or whether its deletion was seen, is a
`ResourceEventHandler`, which has client-go's three calls.

Next: `informer`, which tells them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kubesched.k8s.client.list_watch.decoding import K
from kubesched.k8s.model.meta import KubeObject

K_contra = TypeVar("K_contra", bound=KubeObject, contravariant=True)


class InformerHandler(Protocol):
    """Notified of every change, synchronously: it must be quick, and not wait."""

    def put(self, item: KubeObject) -> None: ...

    def remove(self, item: KubeObject) -> None: ...


class ResourceEventHandler(Protocol[K_contra]):
    """The same, in client-go's calls.

    `is_in_initial_list`: it was there when this handler came, or when the kind was first listed. A resync is an
    `on_update` with the same object twice. `is_final_state_unknown`: nobody told us of the deletion, it was found by a
    later list; `item` is what was last known (client-go's `DeletedFinalStateUnknown`)."""

    def on_add(self, item: K_contra, is_in_initial_list: bool) -> None: ...

    def on_update(self, old: K_contra, new: K_contra) -> None: ...

    def on_delete(self, item: K_contra, is_final_state_unknown: bool) -> None: ...


@dataclass(frozen=True)
class EventHandlerFuncs(Generic[K]):
    """A `ResourceEventHandler` of those functions that are given."""

    added: Callable[[K, bool], None] | None = None
    updated: Callable[[K, K], None] | None = None
    deleted: Callable[[K, bool], None] | None = None

    def on_add(self, item: K, is_in_initial_list: bool) -> None:
        if self.added is not None:
            self.added(item, is_in_initial_list)

    def on_update(self, old: K, new: K) -> None:
        if self.updated is not None:
            self.updated(old, new)

    def on_delete(self, item: K, is_final_state_unknown: bool) -> None:
        if self.deleted is not None:
            self.deleted(item, is_final_state_unknown)
