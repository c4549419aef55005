"""An API server, as far as a scheduler meets one: objects with resource versions, a log of changes for each kind, and
the writes that a scheduler makes, refused where the real one would refuse them.

It does what it is asked at once and never errs; the extender is reached through it, too. What goes wrong between it and
the scheduler is the business of `watch` (what it says) and `wire` (what it is asked).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec.structs import replace

from harness.chaos.extender import answer_call
from kubesched.framework.effects import BindPod, CallExtender, Done, EvictPod, Failed, FindOut, PatchPodStatus
from kubesched.k8s.model.core import Node, Pod, PodCondition
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.policy import PodDisruptionBudget
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.volume_claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from kubesched.scheduler.plugins.volume_binding.effects import BindVolumeToClaim, SelectNodeForClaim, Written

NAMESPACE = "default"
DELETED_AT = "2026-01-01T00:00:00Z"

KINDS: Mapping[str, type[KubeObject]] = {
    "classes": StorageClass,
    "nodes": Node,
    "volumes": PersistentVolume,
    "claims": PersistentVolumeClaim,
    "budgets": PodDisruptionBudget,
    "pods": Pod,
}
KIND_OF = {kind: name for name, kind in KINDS.items()}

Item = TypeVar("Item", bound=KubeObject)
Handler = Callable[[Any], object]


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
        self._version = 0
        self._uids = 0
        self._objects: dict[str, dict[str, KubeObject]] = {kind: {} for kind in KINDS}
        self.logs: dict[str, list[LoggedChange]] = {kind: [] for kind in KINDS}
        self.bindings: list[RecordedBinding] = []
        """Every binding of a scheduler that was carried out, in order."""
        self._handlers: dict[type, Handler] = {
            BindPod: self._bind,
            EvictPod: self._evict,
            PatchPodStatus: self._patch,
            BindVolumeToClaim: self._bind_volume,
            SelectNodeForClaim: self._select_node,
            CallExtender: lambda call: answer_call(call, self._bind),
            FindOut: self._find_out,
        }

    # -- what anybody can do -------------------------------------------------------------------------------------------

    def all(self, kind: type[Item]) -> dict[str, Item]:
        found: dict[str, Any] = self._objects[KIND_OF[kind]]
        return found

    def everything(self) -> Iterable[KubeObject]:
        return [item for objects in self._objects.values() for item in objects.values()]

    def find(self, kind: type[Item], name: str) -> Item | None:
        return self.all(kind).get(name if kind in _CLUSTER_WIDE else f"{NAMESPACE}/{name}")

    def create(self, item: KubeObject) -> bool:
        """With a uid of its own; False if there is one of that name."""
        kind = KIND_OF[type(item)]
        if item.key in self._objects[kind]:
            return False
        self._uids += 1
        self.write(replace(item, metadata=replace(item.metadata, uid=f"{item.name}-{self._uids}")))
        return True

    def write(self, item: Item) -> Item:
        """The object is like this from now on, in a new version."""
        item = self._renewed(item)
        kind = KIND_OF[type(item)]
        self._objects[kind][item.key] = item
        self.logs[kind].append(LoggedChange(item, False))
        return item

    def delete(self, item: KubeObject) -> None:
        kind = KIND_OF[type(item)]
        del self._objects[kind][item.key]
        self.logs[kind].append(LoggedChange(self._renewed(item), True))

    def delete_pod(self, pod: Pod) -> None:
        """A pod that has a node goes when its kubelet says so; one that has none goes at once."""
        if not pod.spec.node_name or pod.is_terminal:
            self.delete(pod)
        elif not pod.is_terminating:
            self.terminate_pod(pod)

    def terminate_pod(self, pod: Pod) -> None:
        self.write(replace(pod, metadata=replace(pod.metadata, deletion_timestamp=DELETED_AT)))

    def assign_pod(self, pod: Pod, node_name: str) -> None:
        self.write(replace(pod, spec=replace(pod.spec, node_name=node_name)))

    def _renewed(self, item: Item) -> Item:
        self._version += 1
        return replace(item, metadata=replace(item.metadata, resource_version=str(self._version)))

    # -- what a scheduler asks for -------------------------------------------------------------------------------------

    def carry_out(self, action: object) -> object:
        """The answer, which an action that needs none has too."""
        return self._handlers[type(action)](action)

    def _bind(self, action: BindPod) -> object:
        pod = self.all(Pod).get(action.pod)
        if pod is None:
            return _not_found("pods", action.pod)
        problem = ""
        if pod.metadata.uid != action.uid:
            problem = (
                f"the UID in the precondition ({action.uid}) does not match the UID in record ({pod.metadata.uid})"
            )
        elif pod.is_terminating:
            problem = f"pod {pod.name} is being deleted, cannot be assigned to a host"
        elif pod.spec.node_name:
            problem = f'pod {pod.name} is already assigned to node "{pod.spec.node_name}"'
        elif pod.spec.scheduling_gates:
            problem = f"pod {pod.name} has non-empty .spec.schedulingGates"
        if problem:
            return Failed(f'Operation cannot be fulfilled on pods/binding "{pod.name}": {problem}')
        self.bindings.append(RecordedBinding(action.pod, action.uid, action.node_name))
        self.assign_pod(pod, action.node_name)
        return Done()

    def _evict(self, action: EvictPod) -> object:
        pod = self.all(Pod).get(action.pod)
        if pod is None or pod.metadata.uid != action.uid:
            return Done()
        conditions = _with_condition(pod.status.conditions, action.condition)
        pod = self.write(replace(pod, status=replace(pod.status, conditions=conditions)))
        self.delete_pod(pod)
        return Done()

    def _find_out(self, asked: FindOut) -> object:
        """What a pod looks like tells what became of a binding or an eviction."""
        action = asked.action
        if isinstance(action, BindPod | EvictPod):
            pod = self.all(Pod).get(action.pod)
            is_gone = pod is None or pod.metadata.uid != action.uid
            if isinstance(action, EvictPod):
                is_done = is_gone or (pod is not None and pod.is_terminating)
            elif is_gone:
                return _not_found("pods", action.pod)
            else:
                is_done = pod is not None and pod.spec.node_name == action.node_name
            if is_done:
                return Done()
        return Failed("no answer in the time that it may take")

    def _patch(self, action: PatchPodStatus) -> object:
        pod = self.all(Pod).get(action.pod)
        if pod is None or pod.metadata.uid != action.uid:
            return _not_found("pods", action.pod)
        status = pod.status
        if action.condition is not None:
            status = replace(status, conditions=_with_condition(status.conditions, action.condition))
        if action.nominated_node_name is not None:
            status = replace(status, nominated_node_name=action.nominated_node_name)
        if status != pod.status:
            self.write(replace(pod, status=status))
        return Done()

    def _bind_volume(self, action: BindVolumeToClaim) -> object:
        volume = self.all(PersistentVolume).get(action.volume_name)
        if volume is None:
            return _not_found("persistentvolumes", action.volume_name)
        if volume.metadata.resource_version != action.resource_version:
            return _outdated("persistentvolumes", volume.name)
        if action.is_ours:
            volume = _annotated(volume, BOUND_BY_CONTROLLER_ANNOTATION, "yes")
        volume = self.write(replace(volume, spec=replace(volume.spec, claim_ref=action.claim)))
        return Written(volume.metadata.resource_version)

    def _select_node(self, action: SelectNodeForClaim) -> object:
        claim = self.find(PersistentVolumeClaim, action.claim_name)
        if claim is None:
            return _not_found("persistentvolumeclaims", action.claim_name)
        if claim.metadata.resource_version != action.resource_version:
            return _outdated("persistentvolumeclaims", claim.name)
        claim = self.write(_annotated(claim, SELECTED_NODE_ANNOTATION, action.node_name))
        return Written(claim.metadata.resource_version)


_CLUSTER_WIDE = {StorageClass, Node, PersistentVolume}


def _annotated(item: Item, key: str, value: str) -> Item:
    annotations = {**(item.metadata.annotations or {}), key: value}
    return replace(item, metadata=replace(item.metadata, annotations=annotations))


def _with_condition(known: tuple[PodCondition, ...] | None, condition: PodCondition) -> tuple[PodCondition, ...]:
    return (*(other for other in known or () if other.type != condition.type), condition)


def _not_found(resource: str, key: str) -> Failed:
    return Failed(f'{resource} "{key.rpartition("/")[2]}" not found', is_gone=True)


def _outdated(resource: str, name: str) -> Failed:
    return Failed(
        f'Operation cannot be fulfilled on {resource} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
