"""PreBind: writes the reserved allocations to the API server, then waits for devices with binding conditions.

Such devices are ready only some time after they were allocated, and may fail to get ready. If anything fails, the
engine calls Unreserve, which undoes what was written.

Next: `effects` for the requests to the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

import msgspec

from kubesched.framework.effects import Failed, RecordEvent, WaitUntil
from kubesched.framework.extension_points import Steps
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.resource import (
    FINALIZER,
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceCondition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.plugins.dynamic_resources.claim_book import ClaimBook
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimConflict,
    CreateResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    ReadResourceClaim,
    UpdateClaimStatus,
)
from kubesched.scheduler.plugins.dynamic_resources.requests import SPECIAL_CLAIM_NAME, generate_name
from kubesched.scheduler.plugins.dynamic_resources.state import (
    DynamicResourcesState,
    PodClaim,
    consumer_of,
    is_reserved_for,
    is_reserved_for_group,
)

# -- binding conditions ------------------------------------------------------------------------------------------------


class DeviceBindingError(Exception):
    """A device will not get ready."""


def has_binding_conditions(claims: Iterable[ResourceClaim]) -> bool:
    return any(result.binding_conditions for claim in claims for result in _results(claim))


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all binding conditions are met. Raises DeviceBindingError where a failure condition is."""
    if claim.status.allocation is None:
        return False
    for result in _results(claim):
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        _raise_failure(claim, result, status)
        if not all(_is_true(status, condition) for condition in result.binding_conditions):
            return False
    return True


def _raise_failure(claim: ResourceClaim, result: DeviceRequestAllocationResult, status: AllocatedDeviceStatus) -> None:
    for condition in result.binding_failure_conditions or ():
        failed = _find(status, condition)
        if failed is not None and failed.status == "True":
            raise DeviceBindingError(
                f"device binding failed: claim={claim.name}, reason={failed.reason}, message={_quoted(failed.message)}"
            )


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results or ()


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next((s for s in claim.status.devices or () if (s.driver, s.pool, s.device) == wanted), None)


def _find(status: AllocatedDeviceStatus, kind: str) -> DeviceCondition | None:
    return next((condition for condition in status.conditions or () if condition.type == kind), None)


def _is_true(status: AllocatedDeviceStatus, kind: str) -> bool:
    found = _find(status, kind)
    return found is not None and found.status == "True"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


# -- PreBind -----------------------------------------------------------------------------------------------------------


_MAX_ATTEMPTS = 5
"""How often the write of a claim is tried that others keep changing."""

_VISIBLE_TIMEOUT_S = 120.0
"""So long is a claim that was created waited for to arrive through the watch."""

_MATE_TIMEOUT_S = 30.0
"""So long is another pod of the group waited for that writes a claim of both."""

ClaimWrite = Generator[object, object, ResourceClaim]


class ClaimWriteError(Exception):
    """A claim could not be written; the pod has to try again."""


@dataclass(slots=True)
class Binding:
    """One pod's PreBind."""

    state: DynamicResourcesState
    pod: PodInfo
    node_name: str
    book: ClaimBook
    refresh: Callable[[], None]
    """Takes what the API server said meanwhile into the book."""
    timeout_s: float
    group: PodGroup | None = None
    """The pod's group, if it has claims of its own."""
    has_mates: bool = False
    """Other pods of its group may write what this one was given; without, that is a failure."""

    def steps(self) -> Steps:
        for entry in self.state.claims:
            if self._may_use(entry.claim) or self._is_served_by_node(entry):
                continue
            try:
                yield from self._bind(entry)
            except ClaimWriteError as error:
                self._release(entry)
                return Status.error(str(error))
        if not has_binding_conditions(entry.claim for entry in self._real_claims()):
            return OK
        return (yield from self._await_conditions())

    def _may_use(self, claim: ResourceClaim) -> bool:
        """It is reserved for the pod, or for its group."""
        return is_reserved_for(claim, self.pod.uid) or (
            self.group is not None and is_reserved_for_group(claim, self.pod.pod)
        )

    def _is_served_by_node(self, entry: PodClaim) -> bool:
        """Whether the special claim has nothing to ask for, because the node has the extended resources itself."""
        if not entry.is_special or entry.claim.spec.devices.requests:
            return False
        if entry.reserved is not None and entry.reserved.spec.devices.requests:
            return False
        self._release(entry)
        return True

    # -- one claim ----------------------------------------------------------------------------------------------------

    def _bind(self, entry: PodClaim) -> Generator[object, object, None]:
        if entry.is_special and entry.claim.name == SPECIAL_CLAIM_NAME:
            entry.claim = yield from self._create(entry)
        if self.has_mates and entry.reserved is not None:
            yield from self._await_mate(entry)
        entry.claim = yield from self._write_with_retries(entry)
        if entry.is_special:
            yield from self._tell_pod(entry.claim)
            yield from self._await_visible(entry.claim)
        self._release(entry, is_known=self.book.assume(entry.claim))

    def _await_mate(self, entry: PodClaim) -> Generator[object, object, None]:
        """One pod of the group writes what it was given, and the others look what came of it."""

        def newest() -> ResourceClaim:
            self.refresh()
            return self.book.get(entry.claim.key) or entry.claim

        def is_over() -> bool:
            is_written = newest().status.allocation is not None
            return is_written or not self.book.is_written_by_another(entry.claim, self.pod.uid)

        if not is_over():
            yield WaitUntil(is_over, _MATE_TIMEOUT_S, watched=(ResourceClaim,))
        entry.claim = newest()
        self.book.begin_writing(entry.claim, self.pod.uid)

    def _create(self, entry: PodClaim) -> ClaimWrite:
        assert entry.reserved is not None
        metadata = msgspec.structs.replace(entry.claim.metadata, name="", uid="")
        claim = ResourceClaim(metadata=metadata, spec=entry.reserved.spec)
        answer = yield CreateResourceClaim(claim, generate_name(self.pod.name))
        if not isinstance(answer, ResourceClaim):
            raise ClaimWriteError(f"create claim for extended resources {self.pod.namespace}/: {_reason(answer)}")
        return answer

    def _write_with_retries(self, entry: PodClaim) -> ClaimWrite:
        claim = entry.claim
        failure = ""
        for attempt in range(_MAX_ATTEMPTS):
            if attempt:
                answer = yield ReadResourceClaim(claim.key)
                if not isinstance(answer, ResourceClaim):
                    raise ClaimWriteError(f"get updated claim {claim.key} after conflict: {_reason(answer)}")
                claim = answer
            try:
                return (yield from self._write(entry, claim))
            except _ConflictError as conflict:
                failure = str(conflict)
        raise ClaimWriteError(failure)

    def _write(self, entry: PodClaim, claim: ResourceClaim) -> ClaimWrite:
        key = claim.key
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimWriteError(f"claim {key} got deleted in the meantime")
        allocation = entry.allocation
        if self.has_mates and allocation is not None and _is_same(claim.status.allocation, allocation):
            allocation = None
            if self._may_use(claim):
                return claim
        what = "reservation" if allocation is None else "allocation and reservation"
        if allocation is None:
            allocation = claim.status.allocation
            if allocation is None:
                raise ClaimWriteError(f"claim {key} got deallocated elsewhere in the meantime")
        elif claim.status.allocation is not None:
            raise ClaimWriteError(f"claim {key} got allocated elsewhere in the meantime")
        elif FINALIZER not in (claim.metadata.finalizers or ()):
            answer = yield AddClaimFinalizer(key, claim.metadata.uid, claim.metadata.resource_version)
            claim = _written(answer, f"add finalizer to claim {key}")
        consumers = (*(claim.status.reserved_for or ()), consumer_of(self.pod.pod, claim, self.group))
        answer = yield UpdateClaimStatus(
            key, claim.metadata.uid, claim.metadata.resource_version, allocation, consumers
        )
        return _written(answer, f"add {what} to claim {key}")

    def _tell_pod(self, claim: ResourceClaim) -> Generator[object, object, None]:
        pod = self.pod
        answer = yield PatchPodExtendedResourceClaimStatus(pod.key, pod.uid, claim.name, self.state.mappings)
        if isinstance(answer, Failed):
            raise ClaimWriteError(f"update pod {pod.key} ExtendedResourceClaimStatus: {answer.message}")

    def _await_visible(self, claim: ResourceClaim) -> Generator[object, object, None]:
        """Until the watch delivers a claim that is new, only the pending allocation keeps its devices."""

        def is_visible() -> bool:
            self.refresh()
            return self.book.get(claim.key) is not None

        if not is_visible():
            yield WaitUntil(is_visible, _VISIBLE_TIMEOUT_S, watched=(ResourceClaim,))
            self.refresh()

    def _release(self, entry: PodClaim, *, is_known: bool = False) -> None:
        if entry.reserved is not None:
            self.book.release(entry.reserved, self.pod.uid, is_known=is_known)

    # -- devices that are not ready yet -------------------------------------------------------------------------------

    def _await_conditions(self) -> Steps:
        pod = self.pod
        note = f"waiting for binding conditions for device on node {self.node_name}"
        scheduler_name = pod.spec.scheduler_name
        yield RecordEvent(pod.key, pod.uid, "Normal", "BindingConditionsPending", "Scheduling", note, scheduler_name)
        answer = yield WaitUntil(lambda: self._look() is not None, self.timeout_s, watched=(ResourceClaim,))
        status = self._look()
        if status is not None:
            return status
        assert isinstance(answer, Failed), "the wait ended before it was settled"
        if answer.is_gone:
            return Status.error(answer.message)
        for entry in self._real_claims():
            self.book.note_timeout(entry.claim)
        return Status.error("device binding timeout: context deadline exceeded")

    def _look(self) -> Status | None:
        """How the wait ends; None while it goes on."""
        self.refresh()
        for entry in self._real_claims():
            claim = self.book.get(entry.claim.key)
            if claim is None:
                return Status.error(f'could not find ResourceClaim "{entry.claim.key}"')
            entry.claim = claim
            try:
                if not is_ready(claim):
                    return None
            except DeviceBindingError as error:
                return Status.error(str(error))
        return OK

    def _real_claims(self) -> list[PodClaim]:
        return [entry for entry in self.state.claims if entry.claim.name != SPECIAL_CLAIM_NAME]


def _is_same(one: AllocationResult | None, other: AllocationResult) -> bool:
    """Whenever it was."""
    return one is not None and (one.devices, one.node_selector) == (other.devices, other.node_selector)


class _ConflictError(Exception):
    """The claim changed before it could be written."""


def _written(answer: object, what: str) -> ResourceClaim:
    if isinstance(answer, ResourceClaim):
        return answer
    if isinstance(answer, ClaimConflict):
        raise _ConflictError(f"{what}: {answer.message}")
    raise ClaimWriteError(f"{what}: {_reason(answer)}")


def _reason(answer: object) -> str:
    return answer.message if isinstance(answer, Failed | ClaimConflict) else f"unexpected answer {answer!r}"
