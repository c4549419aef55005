"""What VolumeBinding asks of the world outside before a pod is bound, and what it is answered.

The two writes are answered by `Written`, or by `Failed` with the API server's message. `WaitForBinding` is answered by
`Done` when it is time to look again (the volume controller or a provisioner may have finished), or by `Failed` when
waiting has come to an end: `DEADLINE_EXCEEDED`, or `pod_is_gone`.

Next: `binding`, which yields these.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.framework.effects import Failed
from kubesched.k8s.model.storage import ObjectReference

DEADLINE_EXCEEDED = Failed("context deadline exceeded")
"""The answer to `WaitForBinding` once `timeout_s` have passed since it was first yielded."""


def pod_is_gone(pod_name: str) -> Failed:
    """The answer to `WaitForBinding` once the pod was deleted."""
    return Failed(f'pod does not exist any more: pod "{pod_name}" not found')


@dataclass(frozen=True, slots=True)
class Written:
    """The object was written, and is now of this version; empty where versions are not kept."""

    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class BindVolumeToClaim:
    """Write the claim into the persistent volume's `spec.claimRef`, if the volume is still of this version.

    `is_ours` asks for the annotation that marks a binding as the controller's and not the user's.
    """

    volume_name: str
    resource_version: str
    claim: ObjectReference
    is_ours: bool


@dataclass(frozen=True, slots=True)
class SelectNodeForClaim:
    """Annotate the claim with the node its volume is to be made for, if the claim is still of this version."""

    namespace: str
    claim_name: str
    resource_version: str
    node_name: str


@dataclass(frozen=True, slots=True)
class WaitForBinding:
    """Wait for a change of one of these volumes or claims, or just for a second."""

    volume_names: tuple[str, ...]
    claim_keys: tuple[str, ...]
    timeout_s: float
    poll_interval_s: float = 1.0
