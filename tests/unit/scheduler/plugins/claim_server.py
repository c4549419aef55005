"""The world outside of PreBind: answers the plugin's effects as an API server would, and fails where it is told to."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from device_clusters import Attempt

from kubesched.framework.effects import Done, Failed, RecordEvent, WaitUntil
from kubesched.framework.status import Status
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimConflict,
    CreateResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    ReadResourceClaim,
    UpdateClaimStatus,
)

NOW = "2026-01-01T00:00:00Z"

Answer = object
Hook = Callable[[object], Answer | None]


class ClaimServer:
    """Keeps claims by key. A hook may answer in the server's place. `deliver` tells the scheduler, as a watch would."""

    def __init__(self, attempt: Attempt, *, hook: Hook | None = None, delivers: bool = False) -> None:
        self.attempt = attempt
        self.claims = dict(attempt.cluster.cluster.objects.resource_claims)
        self.seen: list[object] = []
        self._hook = hook
        self._delivers = delivers
        self._version = 100

    def run(self, node: str) -> Status:
        steps = self.attempt.cluster.plugin.pre_bind(self.attempt.cycle, self.attempt.pod, node)
        answer: object = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as stopped:
                status: Status = stopped.value
                return status
            self.seen.append(effect)
            answer = self.answer(effect)

    def answer(self, effect: object) -> Answer:
        if self._hook is not None and (given := self._hook(effect)) is not None:
            return given
        match effect:
            case CreateResourceClaim():
                metadata = msgspec.structs.replace(
                    effect.claim.metadata, name=f"{effect.generate_name}x7f", uid="uid-created"
                )
                return self.store(msgspec.structs.replace(effect.claim, metadata=metadata))
            case ReadResourceClaim():
                return self.claims[effect.key]
            case AddClaimFinalizer() | UpdateClaimStatus():
                return self._write(effect)
            case WaitUntil():
                self.deliver()
                return Done() if effect.is_settled() else Failed("timed out")
            case PatchPodExtendedResourceClaimStatus():
                return Done()
            case RecordEvent():
                return None
        raise AssertionError(effect)

    def store(self, claim: ResourceClaim) -> ResourceClaim:
        self._version += 1
        metadata = msgspec.structs.replace(claim.metadata, resource_version=str(self._version))
        self.claims[claim.key] = msgspec.structs.replace(claim, metadata=metadata)
        if self._delivers:
            self.deliver()
        return self.claims[claim.key]

    def deliver(self) -> None:
        for claim in self.claims.values():
            self.attempt.cluster.cluster.put(claim)

    def kinds(self) -> list[str]:
        return [type(effect).__name__ for effect in self.seen]

    def _write(self, effect: AddClaimFinalizer | UpdateClaimStatus) -> Answer:
        claim = self.claims[effect.key]
        if claim.metadata.resource_version != effect.resource_version:
            return ClaimConflict("the object has been modified")
        if isinstance(effect, AddClaimFinalizer):
            return self.store(effect.applied_to(claim))
        return self.store(effect.applied_to(claim, NOW))
