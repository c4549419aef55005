"""What VolumeBinding asks of the world outside before a pod is bound, and what it is answered.

Both writes are answered by `Written`, or by `Failed` with the API server's message.

Next: `binding`, which yields these.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.framework.effects import Written
from kubesched.k8s.model.storage import ObjectReference

__all__ = ["BindVolumeToClaim", "SelectNodeForClaim", "Written"]


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
