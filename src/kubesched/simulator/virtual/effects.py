"""Carries out what the scheduling loop asks for, as an API server would, and gives the answers.

A binding may take a while (`bind_latency_s`); everything else happens at once.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.framework.effects import (
    BindPod,
    Done,
    EvictPod,
    Failed,
    PatchObject,
    PatchPodStatus,
    RecordEvent,
    WriteObject,
)
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from kubesched.k8s.workloads.pod_states import with_condition
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.plugins.volume_binding.effects import BindVolumeToClaim, SelectNodeForClaim, Written
from kubesched.simulator.ledger import PodLedger
from kubesched.simulator.object_effects import ObjectEffects
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.deletion import Deletions
from kubesched.simulator.virtual.device_claims import DeviceAction, DeviceClaims, not_found
from kubesched.simulator.virtual.store import ClusterStore

_CONFLICT = "the object has been modified; please apply your changes to the latest version and try again"


class EffectHandler:
    def __init__(
        self,
        clock: VirtualClock,
        store: ClusterStore,
        deletions: Deletions,
        devices: DeviceClaims,
        objects: ObjectEffects,
        ledger: PodLedger,
        bind_latency_s: float,
    ) -> None:
        self._clock = clock
        self._store = store
        self._deletions = deletions
        self._devices = devices
        self._objects = objects
        self._ledger = ledger
        self._bind_latency_s = bind_latency_s

    def settle(self, loop: Scheduler) -> bool:
        """Carries out all effects that are there; False if there were none."""
        effects = loop.take_effects()
        for effect in effects:
            if isinstance(effect.action, BindPod) and self._bind_latency_s:
                self._bind_later(loop, effect.id, effect.action)
                continue
            answer = self._carry_out(effect.action)
            if answer is not None:
                loop.answer(effect.id, answer, self._clock.now_s)
        return bool(effects)

    def _bind_later(self, loop: Scheduler, effect_id: int, action: BindPod) -> None:
        self._clock.after(self._bind_latency_s, lambda: loop.answer(effect_id, self._bind(action), self._clock.now_s))

    def _carry_out(self, action: object) -> object:
        """The answer; None for what is not answered."""
        match action:
            case BindPod():
                return self._bind(action)
            case EvictPod():
                return self._evict(action)
            case PatchPodStatus():
                self._patch(action)
                return None
            case RecordEvent():
                self._ledger.scheduler_event(action)
                return None
            case BindVolumeToClaim():
                return self._bind_volume(action)
            case SelectNodeForClaim():
                return self._select_node(action)
            case WriteObject():
                return self._objects.write(action)
            case PatchObject():
                return self._objects.patch(action)
            case _:
                assert isinstance(action, DeviceAction), action
                return self._devices.carry_out(action)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def _find(self, key: PodKey, uid: str) -> Pod | None:
        pod = self._store.find(Pod, key)
        return pod if pod is not None and pod.metadata.uid == uid else None

    def _bind(self, action: BindPod) -> object:
        pod = self._find(action.pod, action.uid)
        if pod is None:
            return Failed(not_found(action.pod), is_gone=True)
        if pod.spec.node_name:
            return Failed(f"pod {pod.name} is already assigned to node {pod.spec.node_name!r}")
        if pod.is_terminating:
            return Failed(f"pod {pod.name} is being deleted, cannot be assigned to a host")
        spec = replace(pod.spec, node_name=action.node_name)
        bound = replace(pod, spec=spec, status=replace(pod.status, nominated_node_name=""))
        self._store.update(with_condition(bound, PodCondition("PodScheduled", "True")))
        return Done()

    def _evict(self, action: EvictPod) -> object:
        pod = self._find(action.pod, action.uid)
        if pod is not None and not pod.is_terminating:
            marked = self._store.update(with_condition(pod, action.condition))
            self._deletions.delete(marked, f"preempted by {action.preemptor}")
        return Done()

    def _patch(self, action: PatchPodStatus) -> None:
        pod = self._find(action.pod, action.uid)
        if pod is None:
            return
        if action.condition is not None:
            pod = self._store.update(with_condition(pod, action.condition), matters=False)
        if action.nominated_node_name is not None:
            status = replace(pod.status, nominated_node_name=action.nominated_node_name)
            self._store.update(replace(pod, status=status))

    # -- volumes -------------------------------------------------------------------------------------------------------

    def _bind_volume(self, action: BindVolumeToClaim) -> object:
        volume = self._store.find(PersistentVolume, action.volume_name)
        if volume is None:
            return Failed(f'persistentvolumes "{action.volume_name}" not found', is_gone=True)
        if volume.metadata.resource_version != action.resource_version:
            return Failed(_CONFLICT)
        metadata = volume.metadata
        if action.is_ours:
            annotations = {**(metadata.annotations or {}), BOUND_BY_CONTROLLER_ANNOTATION: "yes"}
            metadata = replace(metadata, annotations=annotations)
        spec = replace(volume.spec, claim_ref=action.claim)
        return _written(self._store.update(replace(volume, metadata=metadata, spec=spec)))

    def _select_node(self, action: SelectNodeForClaim) -> object:
        claim = self._store.find(PersistentVolumeClaim, f"{action.namespace}/{action.claim_name}")
        if claim is None:
            return Failed(f'persistentvolumeclaims "{action.claim_name}" not found', is_gone=True)
        if claim.metadata.resource_version != action.resource_version:
            return Failed(_CONFLICT)
        annotations = {**(claim.metadata.annotations or {}), SELECTED_NODE_ANNOTATION: action.node_name}
        metadata = replace(claim.metadata, annotations=annotations)
        return _written(self._store.update(replace(claim, metadata=metadata)))


def _written(item: PersistentVolume | PersistentVolumeClaim) -> Written:
    return Written(item.metadata.resource_version)
