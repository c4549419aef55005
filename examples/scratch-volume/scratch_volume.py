"""ScratchVolume: a pod that asks for scratch space is bound once its volume is there.

The label `scratch` says how much. Before the pod is bound, the plugin creates a claim for it, which belongs to the pod
and goes with it, and waits until a provisioner has served the claim. A pod whose volume does not come in time gives its
place back, and is tried again; the claim stays, so that the next attempt goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.framework import OK, SKIP, CycleState, Failed, Handle, PodInfo, Status, Steps, WaitUntil, WriteObject
from kubesched.k8s.model.storage import PersistentVolumeClaim


@dataclass(frozen=True)
class ScratchVolumeArgs:
    label: str = "scratch"
    storage_class_name: str = "scratch"
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if self.timeout_s <= 0:
            raise ValueError("timeoutS must be above 0")


class ScratchVolume:
    name = "ScratchVolume"
    args_type = ScratchVolumeArgs

    def __init__(self, args: ScratchVolumeArgs, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        return OK if self.args.label in pod.labels else SKIP

    def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        if self.args.label not in pod.labels:
            return OK
        answer = yield WriteObject(self._claim(pod))
        if isinstance(answer, Failed) and answer.reason != "AlreadyExists":
            return Status.error(f"creating the scratch volume: {answer.message}")
        answer = yield WaitUntil(lambda: self._is_bound(pod), self.args.timeout_s, watched=(PersistentVolumeClaim,))
        if isinstance(answer, Failed):
            return Status.error(f"waiting for the scratch volume: {answer.message}")
        return OK

    def _is_bound(self, pod: PodInfo) -> bool:
        claim = self.handle.objects.persistent_volume_claims.get(f"{pod.namespace}/{_claim_name(pod)}")
        return claim is not None and claim.status.phase == "Bound"

    def _claim(self, pod: PodInfo) -> dict[str, object]:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": _claim_name(pod), "namespace": pod.namespace, "ownerReferences": [owner]},
            "spec": {
                "storageClassName": self.args.storage_class_name,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": pod.labels[self.args.label]}},
            },
        }


def _claim_name(pod: PodInfo) -> str:
    return f"scratch-{pod.name}"
