"""DynamicResources: what is reserved is taken, what is bound is written, and what fails is undone."""

from __future__ import annotations

import msgspec
import pytest
from claim_server import NOW, ClaimServer
from device_clusters import Attempt, DeviceCluster, claim, device, device_class, held, node, pod, request, slice_on

from kubesched.framework.effects import Failed, RecordEvent, WaitUntil
from kubesched.framework.status import Code
from kubesched.k8s.model.resource import FINALIZER, ResourceClaim
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimConflict,
    CreateResourceClaim,
    DeleteResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    RemoveReservation,
    UpdateClaimStatus,
)
from kubesched.testing.make import Manifest

GPU = "example.com/gpu"
READY = device("d", bindingConditions=["ready"], bindingFailureConditions=["broken"])
STATE = {"driver": "gpu.example.com", "pool": "n", "device": "d"}


def world_of(*objects: Manifest) -> DeviceCluster:
    """Two pods that want a device each, and as many devices as the slice says."""
    pods = [pod("mine", name="p"), pod("yours", name="q")]
    return DeviceCluster(
        node("n"), device_class(), *pods, claim("mine", request()), claim("yours", request()), *objects
    )


def reserved(world: DeviceCluster, name: str = "p") -> Attempt:
    attempt = world.attempt(name)
    assert attempt.reserve("n").is_success
    return attempt


# -- reserve -----------------------------------------------------------------------------------------------------------


def test_what_is_reserved_is_taken_until_it_is_given_back() -> None:
    world = world_of(slice_on("n", "d"))
    first = reserved(world)
    assert world.attempt("q").rejections() == {"n": "cannot allocate all claims"}
    world.plugin.unreserve(first.cycle, first.pod, "n")
    assert world.attempt("q").fits() == ["n"]
    assert world.plugin.take_effects() == []


def test_a_claim_that_is_being_allocated_is_not_for_others_yet() -> None:
    world = world_of(slice_on("n", "d"))
    world.put(pod("mine", name="r"))
    reserved(world)
    status = world.attempt("r").prefilter
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "resource claim default/mine is in the process of being allocated"


def test_reserve_for_a_pod_without_claims_does_nothing() -> None:
    world = DeviceCluster(node("n"), pod())
    attempt = world.attempt()
    assert attempt.reserve("n").is_success
    assert world.plugin.pre_bind_pre_flight(attempt.cycle, attempt.pod, "n").is_skip
    world.plugin.unreserve(attempt.cycle, attempt.pod, "n")


def test_reserve_on_a_node_that_was_not_filtered_is_an_error() -> None:
    world = world_of(slice_on("n", "d"))
    attempt = world.attempt()
    attempt.state.sheet = type(attempt.state.sheet)()
    status = attempt.reserve("n")
    assert (status.code, status.message) == (Code.ERROR, "claim allocation not found for node")


# -- pre-bind ----------------------------------------------------------------------------------------------------------


def test_binding_writes_finalizer_allocation_and_consumer() -> None:
    world = world_of(slice_on("n", "d"))
    attempt = reserved(world)
    server = ClaimServer(attempt)
    assert world.plugin.pre_bind_pre_flight(attempt.cycle, attempt.pod, "n").is_success
    assert server.run("n").is_success
    assert server.kinds() == ["AddClaimFinalizer", "UpdateClaimStatus"]
    written = server.claims["default/mine"]
    assert written.metadata.finalizers == (FINALIZER,)
    assert [user.uid for user in written.status.reserved_for or ()] == ["uid-default-p"]
    allocation = written.status.allocation
    assert allocation is not None
    assert allocation.allocation_timestamp == NOW
    assert [(result.request, result.pool, result.device) for result in allocation.devices.results or ()] == [
        ("r", "n", "d")
    ]


def test_what_was_written_counts_before_the_watch_delivers_it() -> None:
    world = world_of(slice_on("n", "d"))
    world.put(pod("mine", name="r"))
    server = ClaimServer(reserved(world))
    assert server.run("n").is_success
    assert world.attempt("q").rejections() == {"n": "cannot allocate all claims"}
    assert world.attempt("r").fits() == ["n"]
    assert world.plugin.pre_enqueue(world.pod("r")).is_success
    server.deliver()
    assert world.attempt("q").rejections() == {"n": "cannot allocate all claims"}
    world.cluster.remove(world.claim("mine"))
    assert world.attempt("q").fits() == ["n"]


def test_a_claim_that_is_allocated_already_only_gets_another_consumer() -> None:
    world = DeviceCluster(node("n"), pod("mine"), held("mine", "n/d", nodes="n", by=("other",)))
    server = ClaimServer(reserved(world))
    assert server.run("n").is_success
    assert server.kinds() == ["UpdateClaimStatus"]
    assert [user.name for user in server.claims["default/mine"].status.reserved_for or ()] == ["other", "p"]


def test_a_claim_that_the_pod_has_already_is_left_alone() -> None:
    world = DeviceCluster(node("n"), pod("mine"), held("mine", "n/d", nodes="n", by=("p",)))
    server = ClaimServer(reserved(world))
    assert server.run("n").is_success
    assert server.seen == []


def test_a_conflict_is_tried_again_with_the_newest_claim() -> None:
    world = world_of(slice_on("n", "d"))
    server = ClaimServer(reserved(world))
    server.store(world.claim("mine"))  # somebody else changed it; the scheduler has not heard of that
    assert server.run("n").is_success
    assert server.kinds() == ["AddClaimFinalizer", "ReadResourceClaim", "AddClaimFinalizer", "UpdateClaimStatus"]


@pytest.mark.parametrize(
    ("effect", "answer", "message"),
    [
        pytest.param(
            AddClaimFinalizer, Failed("no"), "add finalizer to claim default/mine: no", id="the finalizer is refused"
        ),
        pytest.param(
            UpdateClaimStatus,
            Failed("no"),
            "add allocation and reservation to claim default/mine: no",
            id="the status is refused",
        ),
        pytest.param(
            UpdateClaimStatus,
            ClaimConflict("changed"),
            "add allocation and reservation to claim default/mine: changed",
            id="somebody else is always faster",
        ),
    ],
)
def test_a_write_that_fails_frees_the_devices(effect: type, answer: object, message: str) -> None:
    world = world_of(slice_on("n", "d"))
    server = ClaimServer(reserved(world), hook=lambda asked: answer if isinstance(asked, effect) else None)
    status = server.run("n")
    assert (status.code, status.message) == (Code.ERROR, message)
    assert world.attempt("q").fits() == ["n"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param(
            held("mine", "elsewhere/d"), "claim default/mine got allocated elsewhere in the meantime", id="allocated"
        ),
        pytest.param(
            claim("mine", request(), metadata={"deletionTimestamp": NOW}),
            "claim default/mine got deleted in the meantime",
            id="deleted",
        ),
    ],
)
def test_a_claim_that_changed_meanwhile_is_not_written(changed: Manifest, message: str) -> None:
    world = world_of(slice_on("n", "d"))
    server = ClaimServer(reserved(world))
    other = DeviceCluster(changed)
    server.store(other.claim("mine"))
    assert server.run("n").message == message


def test_unreserve_takes_back_what_was_written() -> None:
    world = world_of(slice_on("n", "d"))
    attempt = reserved(world)
    assert ClaimServer(attempt).run("n").is_success
    world.plugin.unreserve(attempt.cycle, attempt.pod, "n")
    assert world.plugin.take_effects() == [RemoveReservation("default/mine", "uid-mine", "uid-default-p")]
    assert world.plugin.take_effects() == []


# -- extended resources ------------------------------------------------------------------------------------------------


def extended_world() -> DeviceCluster:
    return DeviceCluster(
        node("n"),
        slice_on("n", "d"),
        device_class(extendedResourceName=GPU),
        pod(requests={GPU: 1}),
        pod(name="q", requests={GPU: 1}),
    )


@pytest.mark.parametrize("delivers", [True, False], ids=["the watch is fast", "the watch is slow"])
def test_the_special_claim_is_created_and_told_to_the_pod(delivers: bool) -> None:
    world = extended_world()
    server = ClaimServer(reserved(world), delivers=delivers)
    assert server.run("n").is_success
    waiting = [] if delivers else ["WaitUntil"]
    assert server.kinds() == [
        "CreateResourceClaim",
        "AddClaimFinalizer",
        "UpdateClaimStatus",
        "PatchPodExtendedResourceClaimStatus",
        *waiting,
    ]
    (created,) = [effect for effect in server.seen if isinstance(effect, CreateResourceClaim)]
    assert (created.claim.name, created.claim.metadata.uid, created.generate_name) == ("", "", "p-extended-resources-")
    (told,) = [effect for effect in server.seen if isinstance(effect, PatchPodExtendedResourceClaimStatus)]
    assert told.resource_claim_name == "p-extended-resources-x7f"
    assert [mapping.request_name for mapping in told.request_mappings] == ["container-0-request-0"]
    assert world.attempt("q").rejections() == {"n": "cannot allocate all claims"}


def test_the_special_claim_is_deleted_when_binding_fails_later() -> None:
    world = extended_world()
    attempt = reserved(world)
    assert ClaimServer(attempt).run("n").is_success
    world.plugin.unreserve(attempt.cycle, attempt.pod, "n")
    assert world.plugin.take_effects() == [DeleteResourceClaim("default/p-extended-resources-x7f", "uid-created")]


def test_a_special_claim_that_cannot_be_created_leaves_nothing_behind() -> None:
    world = extended_world()
    attempt = reserved(world)
    server = ClaimServer(attempt, hook=lambda asked: Failed("no") if isinstance(asked, CreateResourceClaim) else None)
    assert server.run("n").message == "create claim for extended resources default/: no"
    world.plugin.unreserve(attempt.cycle, attempt.pod, "n")
    assert world.plugin.take_effects() == []
    assert world.attempt("q").fits() == ["n"]


def test_there_is_nothing_to_write_where_the_node_has_the_resource_itself() -> None:
    world = DeviceCluster(
        node("n", allocatable={GPU: 1}),
        device_class(extendedResourceName=GPU),
        pod("mine", requests={GPU: 1}),
        held("mine", "n/d", nodes="n", by=("p",)),
    )
    server = ClaimServer(reserved(world))
    assert server.run("n").is_success
    assert server.seen == []


# -- binding conditions ------------------------------------------------------------------------------------------------


def _with_condition(server: ClaimServer, kind: str, reason: str = "") -> None:
    condition = {"type": kind, "status": "True", "reason": reason, "message": "as it is"}
    full = DeviceCluster(claim("mine", request(), status={"devices": [STATE | {"conditions": [condition]}]})).claim(
        "mine"
    )
    known = server.claims["default/mine"]
    status = msgspec.structs.replace(known.status, devices=full.status.devices)
    server.store(msgspec.structs.replace(known, status=status))


def test_binding_waits_for_devices_to_get_ready() -> None:
    world = world_of(slice_on("n", READY))
    attempt = reserved(world)

    def get_ready(asked: object) -> None:
        if isinstance(asked, WaitUntil):
            assert not asked.is_settled()
            _with_condition(server, "ready")

    server = ClaimServer(attempt, hook=get_ready)
    assert server.run("n").is_success
    (event,) = [effect for effect in server.seen if isinstance(effect, RecordEvent)]
    assert (event.type, event.reason, event.note, event.scheduler_name) == (
        "Normal",
        "BindingConditionsPending",
        "waiting for binding conditions for device on node n",
        "default-scheduler",
    )
    (wait,) = [effect for effect in server.seen if isinstance(effect, WaitUntil)]
    assert (wait.watched, wait.timeout_s) == ((ResourceClaim,), 600.0)


def test_a_device_that_fails_to_get_ready_is_given_up_and_freed_for_another_try() -> None:
    world = world_of(slice_on("n", READY, "spare"))
    attempt = reserved(world)

    def fail(asked: object) -> None:
        if isinstance(asked, WaitUntil):
            _with_condition(server, "broken", "Smoke")

    server = ClaimServer(attempt, hook=fail)
    status = server.run("n")
    assert status.code is Code.ERROR
    assert status.message == 'device binding failed: claim=mine, reason=Smoke, message="as it is"'
    again = world.attempt()
    assert again.rejections() == {"n": "resourceclaim not available on the node"}


def test_a_pod_that_is_deleted_while_it_waits_says_so_and_the_devices_are_not_blamed() -> None:
    world = world_of(slice_on("n", READY))
    gone = Failed('pod does not exist any more: pod "p" not found', is_gone=True)
    server = ClaimServer(reserved(world), hook=lambda asked: gone if isinstance(asked, WaitUntil) else None)
    assert server.run("n").message == gone.message


def test_a_device_that_never_gets_ready_is_given_up() -> None:
    world = world_of(slice_on("n", READY))
    server = ClaimServer(reserved(world))
    status = server.run("n")
    assert (status.code, status.message) == (Code.ERROR, "device binding timeout: context deadline exceeded")
    assert world.attempt().rejections() == {"n": "resourceclaim not available on the node"}
