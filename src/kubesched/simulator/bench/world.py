"""The world around the loop in a benchmark: an API server that does at once what it is asked, and nothing more.

Objects that the loop is shown are not copied; what changes in a write is the one thing made new. Pods are kept here,
all else is as the loop's own cluster knows it, since nothing gets lost between the two.

Next: `driver`, which lets time pass.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

from msgspec.structs import replace

from kubesched.framework.effects import BindPod, Done, Effect, EvictPod, Failed, PatchPodStatus, RecordEvent
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.storage import PersistentVolume
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.plugins.dynamic_resources.effects import PatchPodExtendedResourceClaimStatus
from kubesched.scheduler.plugins.volume_binding.effects import BindVolumeToClaim, SelectNodeForClaim
from kubesched.simulator.bench.claim_controller import ClaimAction, ClaimController
from kubesched.simulator.bench.object_factory import ObjectFactory
from kubesched.simulator.bench.volume_controller import VolumeController, VolumeWrite

_DONE = Done()
_DELETED_AT = "2026-01-01T00:00:00Z"


class BenchWorld:
    """`unbound` and `unattempted` hold pods that somebody waits for; they leave when they are bound, tried or gone."""

    def __init__(self, loop: Scheduler, factory: ObjectFactory, *, eviction_delay_s: float = 0.0) -> None:
        self.loop = loop
        self.factory = factory
        self.now_s = 0.0
        self.due_s = inf
        """When the next delayed eviction is to be carried out."""
        self.pods: dict[PodKey, Pod] = {}
        self.unbound: set[PodKey] = set()
        self.unattempted: set[PodKey] = set()
        self.n_bound = 0
        self.bound: Callable[[Pod], None] = lambda pod: None
        """Is told of every pod that got a node."""
        objects = loop.cluster.objects
        self.claims = ClaimController(objects, factory, self.put, self.delete)
        self._volumes = VolumeController(objects, factory)
        self._eviction_delay_s = eviction_delay_s
        self._delayed: list[tuple[float, int, EvictPod]] = []
        self._later: list[KubeObject] = []
        self._actions: dict[type, Callable[[Any], object]] = {
            BindPod: self._bind,
            PatchPodStatus: self._patch,
            RecordEvent: lambda action: None,
            BindVolumeToClaim: lambda action: self._write(self._volumes.bind(action)),
            SelectNodeForClaim: lambda action: self._write(self._volumes.provision(action)),
            PatchPodExtendedResourceClaimStatus: self._patch_claim_status,
            **dict.fromkeys(ClaimAction.__args__, self.claims.carry_out),
        }

    # -- what users do -------------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        """An object was created or changed."""
        if isinstance(item, Pod):
            if item.spec.resource_claims and item.pod_key not in self.pods:
                item = self.claims.with_claims(item)
            self.pods[item.pod_key] = item
        elif isinstance(item, PersistentVolume) and not item.status.phase:
            item = replace(item, status=replace(item.status, phase="Available"))
        self.loop.put(item, self.now_s)

    def delete(self, item: KubeObject) -> None:
        """An object is deleted. Pods end at once; one with a finalizer stays, marked."""
        if not isinstance(item, Pod):
            self.loop.remove(item, self.now_s)
            return
        pod = self.pods.get(item.pod_key)
        if pod is None or pod.is_terminating:
            return
        if pod.metadata.finalizers:
            metadata = replace(pod.metadata, deletion_timestamp=_DELETED_AT)
            self.put(self.factory.versioned(replace(pod, metadata=metadata)))
            return
        key = pod.pod_key
        del self.pods[key]
        self.unbound.discard(key)
        self.unattempted.discard(key)
        self.loop.remove(pod, self.now_s)
        self.claims.pod_gone(pod)

    # -- what the loop asks for ----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Carries out all effects, and those that follow from them."""
        effects = self.loop.take_effects()
        while effects:
            for effect in effects:
                self._carry_out(effect)
            while self._later:
                self.put(self._later.pop(0))
            effects = self.loop.take_effects()

    def carry_out_delayed(self) -> None:
        """Evictions whose time has come."""
        while self._delayed and self._delayed[0][0] <= self.now_s:
            _, effect_id, action = heappop(self._delayed)
            self._evict(effect_id, action)
        self.due_s = self._delayed[0][0] if self._delayed else inf

    def _carry_out(self, effect: Effect) -> None:
        action = effect.action
        if isinstance(action, EvictPod):
            if self._eviction_delay_s:
                heappush(self._delayed, (self.now_s + self._eviction_delay_s, effect.id, action))
                self.due_s = self._delayed[0][0]
            else:
                self._evict(effect.id, action)
            return
        doing = self._actions.get(type(action))
        if doing is None:
            answer: object = Failed(f"nobody carries out {type(action).__name__} in a benchmark")
        else:
            answer = doing(action)
        if answer is not None:
            self.loop.answer(effect.id, answer, self.now_s)

    def _bind(self, action: BindPod) -> object:
        key = action.pod
        pod = self.pods.get(key)
        if pod is None:
            return Failed(f'pods "{key.partition("/")[2]}" not found', is_gone=True)
        pod = replace(pod, spec=replace(pod.spec, node_name=action.node_name))
        self.pods[key] = pod
        self.unbound.discard(key)
        self.unattempted.discard(key)
        self.n_bound += 1
        self.loop.put(pod, self.now_s)
        self.bound(pod)
        return _DONE

    def _evict(self, effect_id: int, action: EvictPod) -> None:
        pod = self.pods.get(action.pod)
        if pod is not None:
            self.delete(pod)
        self.loop.answer(effect_id, _DONE, self.now_s)

    def _patch(self, action: PatchPodStatus) -> None:
        pod = self.pods.get(action.pod)
        if pod is None:
            return
        status = pod.status
        if action.condition is not None:
            status = replace(status, conditions=_with(status.conditions, action.condition))
        if action.nominated_node_name is not None:
            status = replace(status, nominated_node_name=action.nominated_node_name)
        self.unattempted.discard(action.pod)
        self.put(self.factory.versioned(replace(pod, status=status)))

    def _patch_claim_status(self, action: PatchPodExtendedResourceClaimStatus) -> object:
        pod = self.pods.get(action.pod)
        if pod is None:
            return Failed(f'pods "{action.pod.partition("/")[2]}" not found', is_gone=True)
        self.put(self.factory.versioned(self.claims.patched(pod, action)))
        return _DONE

    def _write(self, write: VolumeWrite) -> object:
        for item in write.written:
            self.put(item)
        self._later.extend(write.later)
        return write.answer


def _with(conditions: tuple[PodCondition, ...] | None, condition: PodCondition) -> tuple[PodCondition, ...]:
    if not conditions:
        return (condition,)
    return (*(known for known in conditions if known.type != condition.type), condition)
