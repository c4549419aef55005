"""The world around the loop in a benchmark: an API server that does at once what it is asked, and its controllers.

Objects that the loop is shown are not copied; what changes in a write is the one thing made new.

Device claims are made for pods from templates, and given back when their pods are gone. What the scheduler has chosen
for a volume is bound or provisioned at once: the volume controller says which objects change in consequence of the two
writes of VolumeBinding, and the world shows these to the loop after it has given the answer, as a real controller would
come later too.

Next: `run`, which lets time pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import cast

from msgspec.structs import replace

from kubesched.framework.effects import BindPod, Effect, EvictPod, PatchPodStatus, RecordEvent
from kubesched.k8s.model.core import Pod, PodResourceClaimStatus
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, OwnerReference, PodKey, controller_of
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus, ResourceClaimTemplate
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, StorageClass
from kubesched.k8s.model.volumes import CSIPersistentVolumeSource
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim
from kubesched.simulator.api_model import EffectInterpreter, TypedStore
from kubesched.simulator.bench.object_factory import ObjectFactory, bound_claim, reference_to

_DELETED_AT = "2026-01-01T00:00:00Z"


class BenchWorld:
    """`unbound` and `unattempted` hold pods that are waited for; they leave when they are bound, tried or gone."""

    def __init__(self, loop: Scheduler, factory: ObjectFactory, *, eviction_delay_s: float = 0.0) -> None:
        self.loop = loop
        self.factory = factory
        self.now_s = 0.0
        self.due_s = inf
        """When the next delayed eviction is to be carried out."""
        self._store = store = TypedStore(factory.next_version, lambda item: factory.next_uid())
        store.listen(self._tell_loop)
        self.pods = cast("dict[PodKey, Pod]", store.of(Pod))
        self.unbound: set[PodKey] = set()
        self.unattempted: set[PodKey] = set()
        self.n_bound = 0
        self.bound: Callable[[Pod], None] = lambda pod: None
        """Hears of every pod that got a node."""
        self._claims = ClaimController(store, factory)
        self._volumes = VolumeController(store, factory)
        self._eviction_delay_s = eviction_delay_s
        self._delayed: list[tuple[float, int, EvictPod]] = []
        self._later: list[KubeObject] = []
        self._held: list[Callable[[], None]] | None = None
        """What the loop is to be told, while `settle_apart` holds it back."""
        self._interpreter = interpreter = EffectInterpreter(
            store, new_name=factory.generated_name, delete=lambda pod, action: self._end(pod, action.pod)
        )
        interpreter.follow_up(BindPod, self._after_binding)
        interpreter.follow_up(PatchPodStatus, lambda action: self.unattempted.discard(action.pod))
        interpreter.follow_up(BindVolumeToClaim, lambda action: self._later.extend(self._volumes.bind(action)))
        interpreter.follow_up(SelectNodeForClaim, lambda action: self._later.extend(self._volumes.provision(action)))

    # -- what users do -------------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        """An object was created or changed."""
        if isinstance(item, Pod):
            if item.spec.resource_claims and item.pod_key not in self.pods:
                item = self._claims.with_claims(item)
        elif isinstance(item, PersistentVolume) and not item.status.phase:
            item = replace(item, status=replace(item.status, phase="Available"))
        self._store.keep(item)

    def delete(self, item: KubeObject) -> None:
        """An object is deleted. Pods end at once; one with a finalizer stays, marked."""
        if not isinstance(item, Pod):
            self._store.remove(item)
            return
        key = item.pod_key
        pod = self.pods.get(key)
        if pod is not None and not pod.is_terminating:
            self._end(pod, key)

    def _end(self, pod: Pod, key: PodKey) -> None:
        if pod.metadata.finalizers:
            self._store.write(pod, metadata=replace(pod.metadata, deletion_timestamp=_DELETED_AT))
            return
        self.unbound.discard(key)
        self.unattempted.discard(key)
        self._store.remove(pod, key)
        if pod.spec.resource_claims or pod.status.extended_resource_claim_status is not None:
            self._claims.pod_gone(pod)

    def _tell_loop(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if self._held is not None:
            self._held.append(partial(self._tell_loop, before, after))
        elif after is not None:
            self.loop.put(after, self.now_s)
        elif before is not None:
            self.loop.remove(before, self.now_s)

    # -- what the loop asks for ----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Carries out all effects, and those that follow from them."""
        while effects := self.loop.outbox.take():
            for effect in effects:
                if type(effect.action) is not RecordEvent:  # events are not read here
                    self._carry_out(effect)
            while self._later:
                self._store.write(self._later.pop(0))

    def settle_apart(self) -> list[Callable[[], None]]:
        """Carries out the effects that are there. The loop hears of what became of each, and what its watches see, when
        the callables are called, one after the other."""
        held = self._held = []
        effects = self.loop.outbox.take()
        try:
            for effect in effects:
                if type(effect.action) is not RecordEvent:
                    self._carry_out(effect)
            while self._later:
                self._store.write(self._later.pop(0))
        finally:
            self._held = None
        return held

    def carry_out_delayed(self) -> None:
        """Evictions whose time has come."""
        while self._delayed and self._delayed[0][0] <= self.now_s:
            _, effect_id, action = heappop(self._delayed)
            self.loop.answer(effect_id, self._interpreter.carry_out(action), self.now_s)
        self.due_s = self._delayed[0][0] if self._delayed else inf

    def _carry_out(self, effect: Effect) -> None:
        action = effect.action
        if self._eviction_delay_s and isinstance(action, EvictPod):
            heappush(self._delayed, (self.now_s + self._eviction_delay_s, effect.id, action))
            self.due_s = self._delayed[0][0]
            return
        answer = self._interpreter.carry_out(action)
        if answer is not None:
            self._answer(effect.id, answer)

    def _answer(self, effect_id: int, answer: object) -> None:
        if self._held is not None:
            self._held.append(partial(self._answer, effect_id, answer))
        else:
            self.loop.answer(effect_id, answer, self.now_s)

    def _after_binding(self, action: BindPod) -> None:
        key = action.pod
        self.unbound.discard(key)
        self.unattempted.discard(key)
        self.n_bound += 1
        self.bound(self.pods[key])


class ClaimController:
    def __init__(self, store: TypedStore, factory: ObjectFactory) -> None:
        self._store = store
        self._factory = factory

    def with_claims(self, pod: Pod) -> Pod:
        """The pod with the claims that its templates ask for, which are there from now on."""
        statuses = []
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name is None:
                continue
            key = f"{pod.namespace}/{entry.resource_claim_template_name}"
            template = self._store.find(ResourceClaimTemplate, key)
            if template is None:
                continue
            name = self._factory.generated_name(f"{pod.name}-{entry.name}-")
            owner = OwnerReference("Pod", pod.name, pod.metadata.uid, "v1", controller=True)
            metadata = ObjectMeta(name=name, namespace=pod.namespace, owner_references=(owner,))
            self._store.create(ResourceClaim(metadata, template.spec.spec))
            statuses.append(PodResourceClaimStatus(entry.name, name))
        if not statuses:
            return pod
        return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses)))

    def pod_gone(self, pod: Pod) -> None:
        """Claims made for the pod go with it; others are free again once no pod uses them."""
        uid = pod.metadata.uid
        names = [entry.resource_claim_name for entry in pod.spec.resource_claims or ()]
        names += [status.resource_claim_name for status in pod.status.resource_claim_statuses or ()]
        if pod.status.extended_resource_claim_status is not None:
            names.append(pod.status.extended_resource_claim_status.resource_claim_name)
        for name in names:
            claim = self._store.find(ResourceClaim, f"{pod.namespace}/{name}")
            if claim is None:
                continue
            owner = controller_of(claim.metadata)
            if owner is not None and owner.uid == uid:
                self._store.remove(claim)
            else:
                self._give_back(claim, uid)

    def _give_back(self, claim: ResourceClaim, uid: str) -> None:
        users = tuple(user for user in claim.status.reserved_for or () if user.uid != uid)
        status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
        self._store.write(claim, status=status)


class VolumeController:
    def __init__(self, store: TypedStore, factory: ObjectFactory) -> None:
        self._store = store
        self._factory = factory

    def bind(self, action: BindVolumeToClaim) -> tuple[KubeObject, ...]:
        """After a claim was written into a volume: both are bound."""
        volume = self._store.find(PersistentVolume, action.volume_name)
        claim = self._store.find(PersistentVolumeClaim, f"{action.claim.namespace}/{action.claim.name}")
        if volume is None or claim is None:
            return ()
        return replace(volume, status=replace(volume.status, phase="Bound")), bound_claim(claim, volume)

    def provision(self, action: SelectNodeForClaim) -> tuple[KubeObject, ...]:
        """After a node was selected for a claim: a volume is made, and the claim bound to it."""
        claim = self._store.find(PersistentVolumeClaim, f"{action.namespace}/{action.claim_name}")
        if claim is None:
            return ()
        volume = self._new_volume(claim)
        return volume, bound_claim(claim, volume)

    def _new_volume(self, claim: PersistentVolumeClaim) -> PersistentVolume:
        name = f"pvc-{claim.metadata.uid}"
        class_name = claim.spec.storage_class_name or ""
        storage_class = self._store.find(StorageClass, class_name)
        driver = "" if storage_class is None else storage_class.provisioner
        requests = None if claim.spec.resources is None else claim.spec.resources.requests
        volume = PersistentVolume(
            ObjectMeta(name=name, uid=self._factory.next_uid()),
            PersistentVolumeSpec(
                capacity=requests,
                access_modes=claim.spec.access_modes,
                claim_ref=reference_to(claim),
                storage_class_name=class_name,
                csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name),
            ),
        )
        return replace(volume, status=replace(volume.status, phase="Bound"))
