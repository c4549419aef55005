"""Carries out what a scheduler asks for, at once and without fail, and says what it is to be answered.

A world that stands on it adds what it has more: how long a write takes, what goes wrong, who keeps count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args

from kubesched.framework.effects import (
    BindPod,
    EvictPod,
    Failed,
    FindOut,
    PatchObject,
    PatchPodGroupStatus,
    PatchPodStatus,
    RecordEvent,
    WriteObject,
)
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimRequest,
    CreateResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    ReadResourceClaim,
    UpdateClaimStatus,
)
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim
from kubesched.simulator.api_model.claim_effects import ClaimEffects, VolumeEffects
from kubesched.simulator.api_model.object_effects import ObjectEffects, patch_group_status
from kubesched.simulator.api_model.pod_effects import DeletePod, PodEffects, delete_pod
from kubesched.simulator.api_model.store import TypedStore

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

    def carry_out(self, action: object) -> object:
        """The answer; None for what is not answered."""
        handler = self._handlers.get(type(action))
        return Failed(f"nobody carries out {type(action).__name__}") if handler is None else handler(action)

    def follow_up(self, kind: type, then: Callable[[Any], object]) -> None:
        """From here on, `then` is called with every action of this kind that was carried out and not refused."""
        carry_out = self._handlers[kind]

        def both(action: Any) -> object:
            answer = carry_out(action)
            if type(answer) is not Failed:
                then(action)
            return answer

        self._handlers[kind] = both

    def _numbered_name(self, beginning: str) -> str:
        self._n_names += 1
        return f"{beginning}{self._n_names}"
