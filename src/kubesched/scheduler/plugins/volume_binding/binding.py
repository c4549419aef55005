"""Has what was promised to a pod written, and waits until its claims are bound.

The writing is done by whoever drives `bind_volumes`; see `effects`. The volume controller, or a provisioner, then does
the binding proper. That is over when every claim is bound; it has failed when one of them was undone meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from kubesched.framework.effects import Failed, WaitUntil
from kubesched.framework.extension_points import Steps
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import BOUND_BY_CONTROLLER_ANNOTATION
from kubesched.scheduler.plugins.volume_binding.effects import BindVolumeToClaim, SelectNodeForClaim, Written
from kubesched.scheduler.plugins.volume_binding.promises import (
    PromisedBinding,
    PromisedProvision,
    Promises,
    Reservation,
    reference_to,
)

Progress = Callable[[], bool | str]
"""True once all claims are bound, False while some are not; a message when they never will be."""


def bind_volumes(
    promises: Promises, reservation: Reservation, node_name: str, timeout_s: float, progress: Progress
) -> Steps:
    failure = yield from _write(reservation, node_name)
    if failure is not None:
        promises.take_back(reservation, keep_written_claims=True)
        return Status.error(failure.message)
    answer = yield WaitUntil(
        lambda: progress() is not False,
        timeout_s,
        watched=(PersistentVolume, PersistentVolumeClaim),
        looks_at_once=False,
    )
    if isinstance(answer, Failed):
        return Status.error(f"binding volumes: {answer.message}")
    state = progress()
    return Status.error(f"binding volumes: {state}") if isinstance(state, str) else OK


def _write(reservation: Reservation, node_name: str) -> Generator[object, object, Failed | None]:
    """Volumes first, then claims; nothing written is undone, the next attempt goes on from there."""
    for binding in reservation.bindings:
        answer = yield _volume_write(binding)
        if isinstance(answer, Failed):
            return answer
        binding.written_version = answer.resource_version if isinstance(answer, Written) else ""
    for provision in reservation.provisions:
        answer = yield _claim_write(provision, node_name)
        if isinstance(answer, Failed):
            return answer
        provision.written_version = answer.resource_version if isinstance(answer, Written) else ""
    return None


def _volume_write(binding: PromisedBinding) -> BindVolumeToClaim:
    metadata = binding.volume.metadata
    return BindVolumeToClaim(
        volume_name=metadata.name,
        resource_version=metadata.resource_version,
        claim=binding.volume.spec.claim_ref or reference_to(binding.claim),
        is_ours=BOUND_BY_CONTROLLER_ANNOTATION in (metadata.annotations or {}),
    )


def _claim_write(provision: PromisedProvision, node_name: str) -> SelectNodeForClaim:
    metadata = provision.claim.metadata
    return SelectNodeForClaim(metadata.namespace, metadata.name, metadata.resource_version, node_name)
