"""What an API server does with the effects of a scheduler, at once and without fail, on typed objects in memory.

The store keeps objects by kind and key, with versions. Its listeners hear of every change to the kinds that they care
about, in the order in which they were added, as (before, after). The interpreter carries out bindings, evictions and
patches of pods, writes of volumes, their claims and device claims, and what plugins write. Only kinds that the
scheduler or a controller looks at are there; of their objects, only the fields that it looks at.

The simulator, the benchmark, the fault simulation and test worlds all stand on it; they add what they have more: how
long a write takes, what goes wrong, who keeps count. It answers as `kubesched.framework.effects` says, in the words of
kube-apiserver, and a test holds it to what `kubesched.live.writes` makes of the same effects. Admission is not done
here: who brings an object has admitted it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from kubesched.framework.effects import (
    BindPod,
    Done,
    EvictPod,
    Failed,
    FindOut,
    PatchObject,
    PatchPodGroupStatus,
    PatchPodStatus,
    RecordEvent,
    WriteObject,
    Written,
)
from kubesched.k8s.model.core import Pod, PodCondition, PodExtendedResourceClaimStatus, PodStatus
from kubesched.k8s.model.manifests import KINDS_WITH_WORKLOADS, ManifestError, from_dicts, is_namespaced
from kubesched.k8s.model.merge_patch import merged
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, PodKey
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.k8s.model.storage import (
    BOUND_BY_CONTROLLER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.k8s.workloads.pod_states import merge_condition
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimConflict,
    ClaimRequest,
    CreateResourceClaim,
    DeallocateClaim,
    DeleteResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    ReadResourceClaim,
    RemoveReservation,
    UpdateClaimStatus,
)
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim

Item = TypeVar("Item", bound=KubeObject)
Listener = Callable[[KubeObject | None, KubeObject | None], None]
"""(before, after): no before for a new object, no after for one that is gone."""


class TypedStore:
    """`next_version` gives versions, each only once, and `new_uid` an identity to an object that has none."""

    def __init__(
        self, next_version: Callable[[], str] | None = None, new_uid: Callable[[KubeObject], str] | None = None
    ) -> None:
        self._numbers = count(1)
        self.next_version = next_version or self._next_number
        self._new_uid = new_uid or (lambda item: f"{item.name}-{self._next_number()}")
        self._objects: defaultdict[type[KubeObject], dict[str, Any]] = defaultdict(dict)
        self._listeners: list[tuple[Listener, tuple[type[KubeObject], ...]]] = []
        self._told: dict[type[KubeObject], tuple[Listener, ...]] = {}
        """Who cares about a kind, for the kinds that have been written."""

    def listen(self, listener: Listener, *kinds: type[KubeObject]) -> None:
        """From here on, changes to objects of these kinds are reported; without kinds, those of all."""
        self._listeners.append((listener, kinds or (KubeObject,)))
        self._told.clear()

    def _listeners_of(self, kind: type[KubeObject]) -> tuple[Listener, ...]:
        self._told[kind] = found = tuple(told for told, kinds in self._listeners if issubclass(kind, kinds))
        return found

    # -- to read -------------------------------------------------------------------------------------------------------

    def of(self, kind: type[Item]) -> dict[str, Item]:
        """All objects of a kind by key; not to be changed."""
        return self._objects[kind]

    def find(self, kind: type[Item], key: str) -> Item | None:
        return self._objects[kind].get(key)

    def __iter__(self) -> Iterator[KubeObject]:
        for items in self._objects.values():
            yield from items.values()

    # -- to write ------------------------------------------------------------------------------------------------------

    def create(self, item: Item) -> Item:
        """A new object, of a name that is free."""
        metadata = item.metadata
        return self.write(item, metadata=replace(metadata, uid=metadata.uid or self._new_uid(item)))

    def write(self, item: Item, **fields: Any) -> Item:
        """The object, with these fields changed, is as it is to be from now on, in a new version."""
        metadata = replace(fields.get("metadata") or item.metadata, resource_version=self.next_version())
        fields["metadata"] = metadata
        return self.keep(replace(item, **fields))

    def update(self, item: Item) -> Item:
        """The object as it is to be from now on."""
        return self.write(item)

    def keep(self, item: Item, key: str = "") -> Item:
        """As `write`, for an object that brings its version; and its key, where the caller knows it."""
        kind = type(item)
        objects, key = self._objects[kind], key or item.key
        known = objects.get(key)
        objects[key] = item
        for listener in self._told.get(kind) or self._listeners_of(kind):
            listener(known, item)
        return item

    def remove(self, item: KubeObject, key: str = "") -> None:
        """The object is gone, at once; `key`, where the caller knows it."""
        kind = type(item)
        known = self._objects[kind].pop(key or item.key, None)
        if known is not None:
            for listener in self._told.get(kind) or self._listeners_of(kind):
                listener(known, None)

    def versioned(self, item: Item) -> Item:
        """In a new version, and not kept: what a watch says of a deletion."""
        return replace(item, metadata=replace(item.metadata, resource_version=self.next_version()))

    def _next_number(self) -> str:
        return str(next(self._numbers))


_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def not_found(resource: str, name: str, *, reason: str = "") -> Failed:
    """As the answer to an effect; `reason` is Kubernetes' word where an object was to be written."""
    return Failed(f'{resource} "{name}" not found', is_gone=True, reason=reason)


def conflict(resource: str, name: str, problem: str = _MODIFIED, *, reason: str = "") -> Failed:
    return Failed(f'Operation cannot be fulfilled on {resource} "{name}": {problem}', reason=reason)


def bound_other_uid(key: str, wanted: str, found: str) -> Failed:
    """A binding of a pod, and the one of this name is another one."""
    problem = (
        f"StorageError: invalid object, Code: 4, Key: /registry/pods/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return conflict("pods", key.rpartition("/")[2], problem)


def patched_other_uid(key: str, wanted: str) -> Failed:
    """A patch of a pod, which includes the condition of an eviction, and the one of this name is another one."""
    name = key.rpartition("/")[2]
    return Failed(f'Pod "{name}" is invalid: metadata.uid: Invalid value: "{wanted}": field is immutable')


_TIME = "2026-01-01T00:00:00Z"

Handler = Callable[[Any], object]
"""(action) -> its answer; None for an action that is not answered"""


class EffectInterpreter:
    """`delete` is how an evicted pod goes, by default as DELETE does; `also` has actions that this world carries out
    itself. `now` and `new_name` give what an API server writes of its own: the time, and names that were asked for by
    their beginning."""

    def __init__(
        self,
        store: TypedStore,
        *,
        now: Callable[[], str] = lambda: _TIME,
        new_name: Callable[[str], str] | None = None,
        delete: DeletePod | None = None,
        also: Mapping[type, Handler] | None = None,
    ) -> None:
        self._n_names = 0
        pods = PodEffects(store, delete or (lambda pod, action: delete_pod(store, pod, now())))
        volumes = VolumeEffects(store)
        new_name = new_name or self._numbered_name
        claims = ClaimEffects(store, now, new_name)
        objects = ObjectEffects(store, new_name)
        self._handlers: dict[type, Handler] = {
            BindPod: pods.bind,
            EvictPod: pods.evict,
            PatchPodStatus: pods.patch_status,
            PatchPodGroupStatus: partial(patch_group_status, store, now),
            FindOut: pods.find_out,
            RecordEvent: lambda action: None,
            WriteObject: objects.write,
            PatchObject: objects.patch,
            BindVolumeToClaim: volumes.bind_volume,
            SelectNodeForClaim: volumes.select_node,
            CreateResourceClaim: claims.create,
            ReadResourceClaim: claims.read,
            AddClaimFinalizer: claims.add_finalizer,
            UpdateClaimStatus: claims.update_status,
            PatchPodExtendedResourceClaimStatus: pods.patch_claim_status,
            **dict.fromkeys(get_args(ClaimRequest), claims.carry_out),
            **(also or {}),
        }
        self._then: dict[type, Callable[[Any], object]] = {}
        """What follows an action that was not refused."""

    def carry_out(self, action: object) -> object:
        """The answer; None for what is not answered."""
        kind = type(action)
        handler = self._handlers.get(kind)
        if handler is None:
            return Failed(f"nobody carries out {kind.__name__}")
        answer = handler(action)
        then = self._then.get(kind)
        if then is not None and type(answer) is not Failed:
            then(action)
        return answer

    def follow_up(self, kind: type, then: Callable[[Any], object]) -> None:
        """From here on, `then` is called with every action of this kind that was carried out and not refused."""
        self._then[kind] = then

    def _numbered_name(self, beginning: str) -> str:
        self._n_names += 1
        return f"{beginning}{self._n_names}"


_DONE = Done()
_SCHEDULED = PodCondition("PodScheduled", "True")
_ONLY_SCHEDULED = (_SCHEDULED,)
_NO_ANSWER = "no answer in the time that it may take"

DeletePod = Callable[[Pod, EvictPod], None]
"""(a pod that is not being deleted yet, why it is to go) -> None"""


def delete_pod(store: TypedStore, pod: Pod, at: str) -> None:
    """As DELETE does: a pod that no kubelet runs and no finalizer holds is gone, any other is marked with the time."""
    is_at_nodes = bool(pod.spec.node_name) and not pod.is_terminal and pod.spec.termination_grace_period_seconds != 0
    if not is_at_nodes and not pod.metadata.finalizers:
        store.remove(pod)
    elif not pod.is_terminating:
        store.write(pod, metadata=replace(pod.metadata, deletion_timestamp=at))


class PodEffects:
    def __init__(self, store: TypedStore, delete: DeletePod) -> None:
        self._store = store
        self._pods = store.of(Pod)
        self._delete = delete
        self._last_known = self._last_bound = PodStatus()
        """The status of the pod that was bound last, before and after: the next one often shares both."""

    def bind(self, action: BindPod) -> Done | Failed:
        pod = self._pods.get(action.pod)
        if pod is None:
            return not_found("pods", action.pod.rpartition("/")[2])
        if pod.metadata.uid != action.uid:
            return bound_other_uid(action.pod, action.uid, pod.metadata.uid)
        metadata, spec, status, problem = pod.metadata, pod.spec, pod.status, ""
        if metadata.deletion_timestamp is not None:
            problem = f"pod {pod.name} is being deleted, cannot be assigned to a host"
        elif spec.node_name:
            problem = f'pod {pod.name} is already assigned to node "{spec.node_name}"'
        elif spec.scheduling_gates:
            problem = f"pod {pod.name} has non-empty .spec.schedulingGates"
        if problem:
            return conflict("pods/binding", pod.name, problem)
        if status is not self._last_known:
            known = status.conditions
            conditions = merge_condition(known, _SCHEDULED) if known else _ONLY_SCHEDULED
            self._last_bound = replace(status, conditions=conditions, nominated_node_name="")
            self._last_known = status
        bound = replace(
            pod,
            metadata=replace(metadata, resource_version=self._store.next_version()),
            spec=replace(spec, node_name=action.node_name),
            status=self._last_bound,
        )
        self._store.keep(bound, action.pod)
        return _DONE

    def evict(self, action: EvictPod) -> Done | Failed:
        """A pod that is being deleted gets the condition, and is not deleted twice."""
        pod = self._find(action.pod, action.uid)
        if isinstance(pod, Failed):
            return pod
        status = pod.status
        conditions = merge_condition(status.conditions, action.condition)
        if conditions != status.conditions:
            pod = self._write_status(pod, replace(status, conditions=conditions), action.pod)
        if pod.metadata.deletion_timestamp is None:
            self._delete(pod, action)
        return _DONE

    def patch_status(self, action: PatchPodStatus) -> None:
        """What changes nothing is not written; the time of a probe is a change. A pod that has a node can be nominated
        for none: such a patch is refused as a whole."""
        pod = self._find(action.pod, action.uid)
        if isinstance(pod, Failed):
            return
        status, nominated = pod.status, action.nominated_node_name
        if nominated and pod.spec.node_name and nominated != status.nominated_node_name:
            return
        if action.condition is not None:
            status = replace(status, conditions=merge_condition(status.conditions, action.condition))
        if nominated is not None:
            status = replace(status, nominated_node_name=nominated)
        if status != pod.status or action.is_probe:
            self._write_status(pod, status, action.pod)

    def patch_claim_status(self, action: PatchPodExtendedResourceClaimStatus) -> Done | Failed:
        pod = self._find(action.pod, action.uid)
        if isinstance(pod, Failed):
            return pod
        claim_status = PodExtendedResourceClaimStatus(action.resource_claim_name, action.request_mappings)
        if claim_status != pod.status.extended_resource_claim_status:
            self._store.write(pod, status=replace(pod.status, extended_resource_claim_status=claim_status))
        return _DONE

    def find_out(self, asked: FindOut) -> Done | Failed:
        """What a pod looks like tells what became of a binding or an eviction."""
        action = asked.action
        if not isinstance(action, BindPod | EvictPod):
            return Failed(f"no answer to {type(action).__name__} in the time that it may take")
        pod = self._store.find(Pod, action.pod)
        if pod is None or pod.metadata.uid != action.uid:
            return _DONE if isinstance(action, EvictPod) else not_found("pods", action.pod.rpartition("/")[2])
        is_done = pod.is_terminating if isinstance(action, EvictPod) else pod.spec.node_name == action.node_name
        return _DONE if is_done else Failed(f"no answer, and the write has not come about: {_NO_ANSWER}")

    def _write_status(self, pod: Pod, status: PodStatus, key: PodKey) -> Pod:
        metadata = replace(pod.metadata, resource_version=self._store.next_version())
        return self._store.keep(replace(pod, metadata=metadata, status=status), key)

    def _find(self, key: PodKey, uid: str) -> Pod | Failed:
        """The pod to patch, or how that is refused because it is gone."""
        pod = self._pods.get(key)
        if pod is None:
            return not_found("pods", key.rpartition("/")[2])
        return pod if pod.metadata.uid == uid else patched_other_uid(key, uid)


_RESOURCE = "resourceclaims.resource.k8s.io"

ClaimAnswer = ResourceClaim | ClaimConflict | Failed


class ClaimEffects:
    """`now` is the time that is written, `new_name` makes a name of a beginning."""

    def __init__(self, store: TypedStore, now: Callable[[], str], new_name: Callable[[str], str]) -> None:
        self._store = store
        self._now = now
        self._new_name = new_name

    # -- waited for ----------------------------------------------------------------------------------------------------

    def create(self, action: CreateResourceClaim) -> ClaimAnswer:
        metadata = replace(action.claim.metadata, name=self._new_name(action.generate_name), uid="")
        return self._store.create(replace(action.claim, metadata=metadata))

    def read(self, action: ReadResourceClaim) -> ClaimAnswer:
        return self._store.find(ResourceClaim, action.key) or not_found(_RESOURCE, action.key.rpartition("/")[2])

    def add_finalizer(self, action: AddClaimFinalizer) -> ClaimAnswer:
        claim = self._find(action.key, action.uid, action.resource_version)
        if not isinstance(claim, ResourceClaim) or action.finalizer in (claim.metadata.finalizers or ()):
            return claim
        return self._store.write(action.applied_to(claim))

    def update_status(self, action: UpdateClaimStatus) -> ClaimAnswer:
        claim = self._find(action.key, action.uid, action.resource_version)
        if not isinstance(claim, ResourceClaim):
            return claim
        return self._written(claim, action.applied_to(claim, self._now()))

    # -- not waited for ------------------------------------------------------------------------------------------------

    def carry_out(self, action: ClaimRequest) -> None:
        version = action.resource_version if isinstance(action, DeallocateClaim) else ""
        claim = self._find(action.key, action.uid, version)
        if not isinstance(claim, ResourceClaim):
            return
        if isinstance(action, DeallocateClaim | RemoveReservation):
            self._written(claim, action.applied_to(claim))
        else:
            self._delete(claim, action)

    def _delete(self, claim: ResourceClaim, action: DeleteResourceClaim) -> None:
        """Finalizers of others hold it."""
        held_by = tuple(name for name in claim.metadata.finalizers or () if name != action.finalizer)
        if held_by:
            deleted_at = claim.metadata.deletion_timestamp or self._now()
            metadata = replace(claim.metadata, finalizers=held_by, deletion_timestamp=deleted_at)
            self._written(claim, replace(claim, metadata=metadata))
        else:
            self._store.remove(claim)

    # -- both ----------------------------------------------------------------------------------------------------------

    def _find(self, key: str, uid: str, version: str) -> ClaimAnswer:
        """The claim, if it is still the same one, and of this version unless that is empty."""
        claim, name = self._store.find(ResourceClaim, key), key.rpartition("/")[2]
        if claim is None or claim.metadata.uid != uid:
            return not_found(_RESOURCE, name)
        if version and claim.metadata.resource_version != version:
            return ClaimConflict(conflict(_RESOURCE, name).message)
        return claim

    def _written(self, known: ResourceClaim, changed: ResourceClaim) -> ResourceClaim:
        """What changes nothing is not written."""
        return known if changed == known else self._store.write(changed)


class VolumeEffects:
    def __init__(self, store: TypedStore) -> None:
        self._store = store

    def bind_volume(self, action: BindVolumeToClaim) -> Written | Failed:
        volume = self._find(PersistentVolume, "persistentvolumes", action.volume_name, action.resource_version)
        if isinstance(volume, Failed):
            return volume
        metadata = volume.metadata
        if action.is_ours:
            metadata = _annotated(metadata, BOUND_BY_CONTROLLER_ANNOTATION, "yes")
        return self._write(replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=action.claim)))

    def select_node(self, action: SelectNodeForClaim) -> Written | Failed:
        key = f"{action.namespace}/{action.claim_name}"
        claim = self._find(PersistentVolumeClaim, "persistentvolumeclaims", key, action.resource_version)
        if isinstance(claim, Failed):
            return claim
        metadata = _annotated(claim.metadata, SELECTED_NODE_ANNOTATION, action.node_name)
        return self._write(replace(claim, metadata=metadata))

    def _find(self, kind: type[Item], resource: str, key: str, version: str) -> Item | Failed:
        found = self._store.find(kind, key)
        name = key.rpartition("/")[2]
        if found is None:
            return not_found(resource, name)
        return found if found.metadata.resource_version == version else conflict(resource, name)

    def _write(self, item: PersistentVolume | PersistentVolumeClaim) -> Written:
        """What changes nothing is not written."""
        if item != self._store.find(type(item), item.key):
            item = self._store.write(item)
        return Written(item.metadata.resource_version)


def _annotated(metadata: ObjectMeta, key: str, value: str) -> ObjectMeta:
    return replace(metadata, annotations={**(metadata.annotations or {}), key: value})


class ObjectEffects:
    """`new_name` makes a name of a beginning, for objects that ask for one by `generateName`."""

    def __init__(self, store: TypedStore, new_name: Callable[[str], str]) -> None:
        self._store = store
        self._new_name = new_name

    def write(self, action: WriteObject) -> Written | Failed:
        manifest = dict(action.manifest)
        metadata = manifest["metadata"] = dict(manifest.get("metadata") or {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._new_name(metadata["generateName"])
        item = _read(manifest)
        if isinstance(item, Failed):
            return item
        version = item.metadata.resource_version
        known = self._store.find(type(item), item.key)
        if not version:
            if known is not None:
                return Failed(f'{_resource(manifest)} "{item.name}" already exists', reason="AlreadyExists")
            return _written(self._store.create(item))
        if known is None:
            return _not_found(manifest, item.name)
        if known.metadata.resource_version != version:
            return _conflict(manifest, item.name)
        return _written(self._store.update(item))

    def patch(self, action: PatchObject) -> Written | Failed:
        header = {"apiVersion": action.api_version, "kind": action.kind}
        namespace, _, name = action.key.rpartition("/")
        kind = _kind(header)
        if kind is None:
            return _no_kind(header)
        key = f"{namespace or 'default'}/{name}" if is_namespaced(kind) else name
        known = self._store.find(kind, key)
        if known is None:
            return _not_found(header, name)
        wanted = action.patch.get("metadata") or {}
        if wanted.get("uid", known.metadata.uid) != known.metadata.uid:
            return _conflict(header, name)
        if wanted.get("resourceVersion", known.metadata.resource_version) != known.metadata.resource_version:
            return _conflict(header, name)
        is_status = action.subresource == "status"
        part = {field: value for field, value in action.patch.items() if (field == "status") == is_status}
        changed = _read({**merged(msgspec.to_builtins(known), part), **header})
        return changed if isinstance(changed, Failed) else _written(self._store.update(changed))


def _read(manifest: Mapping[str, Any]) -> KubeObject | Failed:
    if _kind(manifest) is None:
        return _no_kind(manifest)
    try:
        (item,) = from_dicts([manifest], kinds=KINDS_WITH_WORKLOADS).objects
    except ManifestError as problem:
        return Failed(str(problem), reason="Invalid")
    return item


def _kind(header: Mapping[str, Any]) -> type[KubeObject] | None:
    return KINDS_WITH_WORKLOADS.get((_group(header), str(header.get("kind", ""))))


def _group(header: Mapping[str, Any]) -> str:
    return str(header.get("apiVersion", "")).rpartition("/")[0]


def _resource(header: Mapping[str, Any]) -> str:
    """`resourceclaims.resource.k8s.io`, as an API server says it."""
    kind, group = str(header["kind"]).lower(), _group(header)
    plural = f"{kind}es" if kind.endswith("s") else f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return f"{plural}.{group}" if group else plural


def _written(item: KubeObject) -> Written:
    return Written(item.metadata.resource_version, item.name, item.metadata.uid)


def _no_kind(header: Mapping[str, Any]) -> Failed:
    kind, version = header.get("kind", ""), header.get("apiVersion", "")
    return Failed(f'no matches for kind "{kind}" in version "{version}"', is_gone=True, reason="NotFound")


def _not_found(header: Mapping[str, Any], name: str) -> Failed:
    return not_found(_resource(header), name, reason="NotFound")


def _conflict(header: Mapping[str, Any], name: str) -> Failed:
    return conflict(_resource(header), name, reason="Conflict")


def patch_group_status(store: TypedStore, now: Callable[[], str], action: PatchPodGroupStatus) -> None:
    """Takes the place of the condition of this type; the time is that of the last turn."""
    group = store.find(PodGroup, action.group)
    if group is None or group.metadata.uid != action.uid:
        return
    known = group.condition(action.condition.type)
    since = now() if action.is_turn or known is None else known.last_transition_time
    condition = replace(action.condition, last_transition_time=since, observed_generation=action.generation)
    others = tuple(one for one in group.status.conditions or () if one.type != condition.type)
    store.write(group, status=replace(group.status, conditions=(*others, condition)))
