"""No pod is bound twice by one loop, no volume is given to two claims, and nothing is written by a shell that does not
hold the lease.

Of volumes this is asked only while a single pod uses the claim. Pods that share a claim share the promise of its
volume, and any of them that fails takes it back for all, in kube-scheduler (`RevertAssumedPodVolumes`) as here: then
another claim may be promised the volume while a request of the others is still on its way. It is the server that tells
the two apart, by the volume's version; so requests that name different versions are no concern either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from harness.chaos.checks.violation import Violation
from harness.chaos.extender import BOUND_BY_EXTENDER, binding_in
from kubesched.framework.effects import Done, Effect, FindOut
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.storage import claims_of
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim

ONCE = "no pod is bound twice"
ONE_CLAIM = "no volume is given to two claims"
LEADING = "nothing is written after leadership was lost"


@dataclass(frozen=True, slots=True)
class _VolumeWrite:
    """A request that is not answered yet."""

    volume: tuple[str, str]
    """Name and version."""
    claim_key: str
    claim_uid: str


class BindingsSeen:
    """What one loop asked for, and what it was answered."""

    def __init__(self) -> None:
        self._open: dict[int, str] = {}
        """By number of the effect, the uid of the pod to bind."""
        self._asked: dict[int, int] = {}
        """By number of a question what became of an effect, the number of that effect."""
        self._open_volumes: dict[int, _VolumeWrite] = {}
        """By number of the effect, volumes to bind to claims that no other pod uses."""
        self.done: set[str] = set()
        """Uids of pods that the loop knows to be bound, for it was told so in an answer."""

    def restarted(self) -> None:
        self._open.clear()
        self._asked.clear()
        self._open_volumes.clear()
        self.done.clear()

    def sent(self, effect: Effect, *, holds_lease: bool) -> None:
        if not holds_lease:
            raise Violation(LEADING, f"{effect.action}")
        if isinstance(effect.action, BindVolumeToClaim):
            self._volume_sent(effect.id, effect.action)
        if isinstance(effect.action, FindOut):
            self._asked[effect.id] = effect.action.number
            return
        binding = binding_in(effect.action)
        if binding is None:
            return
        if binding.uid in self.done:
            raise Violation(ONCE, f"{binding.uid} is bound already, and is to be bound to {binding.node_name}")
        if binding.uid in self._open.values():
            raise Violation(ONCE, f"{binding.uid} is being bound already, and is to be bound to {binding.node_name}")
        self._open[effect.id] = binding.uid

    def _volume_sent(self, effect_id: int, action: BindVolumeToClaim) -> None:
        claim = action.claim
        write = _VolumeWrite(
            (action.volume_name, action.resource_version), f"{claim.namespace}/{claim.name}", claim.uid
        )
        for other in self._open_volumes.values():
            if other.volume == write.volume and other.claim_uid != write.claim_uid:
                raise Violation(
                    ONE_CLAIM, f"{action.volume_name} is being bound to {other.claim_uid}, and is to be to {claim.uid}"
                )
        self._open_volumes[effect_id] = write

    def forget_shared_claims(self, pods: Iterable[Pod]) -> None:
        """`pods` are all that the loop knows or has under way."""
        if not self._open_volumes:
            return
        by_uid = {pod.metadata.uid: pod for pod in pods}
        uses = Counter(use.key for pod in by_uid.values() for use in claims_of(pod))
        self._open_volumes = {id_: write for id_, write in self._open_volumes.items() if uses[write.claim_key] < 2}

    def answered(self, effect_id: int, answer: object) -> None:
        effect_id = self._asked.pop(effect_id, effect_id)
        self._open_volumes.pop(effect_id, None)
        uid = self._open.pop(effect_id, None)
        if uid is not None and (isinstance(answer, Done) or answer == BOUND_BY_EXTENDER):
            self.done.add(uid)
