"""An API server, as far as a scheduler meets one: the typed store and the interpreter of effects that all worlds share,
a log of changes for each kind, and a record of bindings.

It does what it is asked at once and never errs; the extender is reached through it, too. What goes wrong between it and
the scheduler is the business of `watch` (what it says) and `wire` (what it is asked).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from harness.chaos.extender import answer_call
from kubesched.framework.effects import BindPod, CallExtender, Done
from kubesched.k8s.model.core import Node, Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.scheduling import CompositePodGroup, PodGroup
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.simulator.api_model import EffectInterpreter, TypedStore, delete_pod

NAMESPACE = "default"
DELETED_AT = "2026-01-01T00:00:00Z"

KINDS: Mapping[str, type[KubeObject]] = {
    "classes": StorageClass,
    "nodes": Node,
    "volumes": PersistentVolume,
    "claims": PersistentVolumeClaim,
    "budgets": PodDisruptionBudget,
    "pods": Pod,
    "groups": PodGroup,
    "composites": CompositePodGroup,
}
KIND_OF = {kind: name for name, kind in KINDS.items()}
_CLUSTER_WIDE = {StorageClass, Node, PersistentVolume}
_DONE = Done()

Item = TypeVar("Item", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """The object after the change, or as it was when it was deleted."""

    item: KubeObject
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class RecordedBinding:
    pod: PodKey
    uid: str
    node_name: str


class ApiServerModel:
    def __init__(self) -> None:
        self._uids = 0
        self._store = TypedStore(new_uid=self._new_uid)
        self._store.listen(self._log)
        self.logs: dict[str, list[LoggedChange]] = {kind: [] for kind in KINDS}
        self.bindings: list[RecordedBinding] = []
        """Every binding of a scheduler that was carried out, in order."""
        self._interpreter = EffectInterpreter(
            self._store,
            now=lambda: DELETED_AT,
            also={CallExtender: lambda call: answer_call(call, self.carry_out)},
        )

    # -- what anybody can do -------------------------------------------------------------------------------------------

    def all(self, kind: type[Item]) -> dict[str, Item]:
        return self._store.of(kind)

    def everything(self) -> Iterable[KubeObject]:
        return [item for kind in KINDS.values() for item in self.all(kind).values()]

    def find(self, kind: type[Item], name: str) -> Item | None:
        return self._store.find(kind, name if kind in _CLUSTER_WIDE else f"{NAMESPACE}/{name}")

    def create(self, item: KubeObject) -> bool:
        """With a uid of its own; False if there is one of that name."""
        if item.key in self.all(type(item)):
            return False
        self._store.create(item)
        return True

    def write(self, item: Item) -> Item:
        """The object is like this from now on, in a new version."""
        return self._store.write(item)

    def delete(self, item: KubeObject) -> None:
        self._store.remove(item)

    def delete_pod(self, pod: Pod) -> None:
        """A pod that has a node goes when its kubelet says so; one that has none goes at once."""
        delete_pod(self._store, pod, DELETED_AT)

    def terminate_pod(self, pod: Pod) -> None:
        self.write(replace(pod, metadata=replace(pod.metadata, deletion_timestamp=DELETED_AT)))

    def assign_pod(self, pod: Pod, node_name: str) -> None:
        self.write(replace(pod, spec=replace(pod.spec, node_name=node_name)))

    def _new_uid(self, item: KubeObject) -> str:
        self._uids += 1
        return f"{item.name}-{self._uids}"

    def _log(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if after is not None:
            self.logs[KIND_OF[type(after)]].append(LoggedChange(after, False))
        elif before is not None:
            self.logs[KIND_OF[type(before)]].append(LoggedChange(self._store.versioned(before), True))

    # -- what a scheduler asks for -------------------------------------------------------------------------------------

    def carry_out(self, action: object) -> object:
        """The answer, which an action that needs none has too."""
        answer = self._interpreter.carry_out(action)
        if isinstance(action, BindPod) and isinstance(answer, Done):
            self.bindings.append(RecordedBinding(action.pod, action.uid, action.node_name))
        return _DONE if answer is None else answer
