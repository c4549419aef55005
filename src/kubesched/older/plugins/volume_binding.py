"""VolumeBinding of old: finds volumes as today, and says so in the words of its version.

Broken claims ended the cycle, rejected every node, or rejected the pod as a whole, depending on the version. What was
found is reserved and bound by today's plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Steps
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PreFilterResult
from kubesched.framework.status import OK, Status
from kubesched.k8s.model import storage
from kubesched.older.config.generations import Generation, VolumeTrouble
from kubesched.older.plugins.rejection import OlderPlugin, Reason, rejection, unresolvable
from kubesched.scheduler.config.plugin_args import VolumeBindingArgs
from kubesched.scheduler.plugins.volume_binding import VolumeBinding, VolumesOfPod
from kubesched.scheduler.plugins.volume_binding.finding import UNBOUND_IMMEDIATE, Conflict, PodClaims

_REASONS = {
    Conflict.NODE.value: unresolvable("node(s) had volume node affinity conflict"),
    Conflict.BIND.value: unresolvable("node(s) didn't find available persistent volumes to bind"),
    Conflict.NOT_ENOUGH_SPACE.value: unresolvable("node(s) did not have enough free storage"),
    Conflict.VOLUME_DOES_NOT_EXIST.value: unresolvable("pvc(s) bound to non-existent pv(s)"),
}


@dataclass(frozen=True, slots=True)
class BrokenClaims:
    """What every node is told, if the claims themselves are the trouble."""

    status: Status


class OlderVolumeBinding(OlderPlugin):
    def __init__(self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation) -> None:
        super().__init__(name, args, handle, generation)
        seconds = args.get("bindTimeoutSeconds")
        self._today = VolumeBinding(VolumeBindingArgs() if seconds is None else VolumeBindingArgs(int(seconds)), handle)

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        if not any(True for _ in storage.claims_of(pod.pod)):
            cycle.put(VolumesOfPod())
            return PreFilterResult()
        claims = self._today.claims_of(pod)
        if isinstance(claims, Status):
            cycle.put(BrokenClaims(claims))
            return PreFilterResult()
        cycle.put(VolumesOfPod(claims))
        broken = self._broken(claims)
        if broken is None:
            return PreFilterResult()
        if claims.immediate and self.generation.unbound_immediate is VolumeTrouble.PRE_FILTER:
            return PreFilterResult(broken)
        cycle.put(BrokenClaims(broken))
        return PreFilterResult()

    def _broken(self, claims: PodClaims) -> Status | None:
        if claims.immediate:
            is_error = self.generation.unbound_immediate is VolumeTrouble.ERROR
            return Status.error(UNBOUND_IMMEDIATE) if is_error else Status.unresolvable(UNBOUND_IMMEDIATE)
        volumes = self.handle.objects.persistent_volumes
        missing = next((claim.spec.volume_name for claim in claims.bound if claim.spec.volume_name not in volumes), "")
        if missing and self.generation.missing_volume is VolumeTrouble.ERROR:
            return Status.error(f'could not find v1.PersistentVolume "{missing}"')
        return None

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        broken = cycle.find(BrokenClaims)
        if broken is not None:
            return broken.status
        if cycle.get(VolumesOfPod).claims is None:
            return OK
        verdicts = self._today.filter(cycle, pod, self.handle.nodes.whole.take(np.array([node.row])))
        status = verdicts.status(0)
        if not status.is_rejected:
            return status
        return rejection(self.generation, [_REASONS.get(reason, Reason(reason)) for reason in status.reasons])

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        return self._today.reserve(cycle, pod, node_name)

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        self._today.unreserve(cycle, pod, node_name)

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        return self._today.pre_bind_pre_flight(cycle, pod, node_name)

    def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        return self._today.pre_bind(cycle, pod, node_name)
