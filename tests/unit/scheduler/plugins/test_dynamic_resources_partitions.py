"""DynamicResources: devices cut from shared counters, and devices whose capacity is given out in portions."""

from __future__ import annotations

from typing import Any

import pytest
from device_clusters import (
    DeviceCluster,
    claim,
    device,
    device_class,
    every,
    held,
    node,
    pod,
    request,
    slice_of,
    slice_on,
)

from kubesched.testing.make import Manifest

NONE = "cannot allocate all claims"


def part(name: str, memory: str, **fields: Any) -> Manifest:
    """A device that is cut from a board's memory."""
    return device(name, consumesCounters=[{"counterSet": "board", "counters": {"memory": {"value": memory}}}], **fields)


def board(memory: str, pool: str = "n", total: int = 2) -> Manifest:
    counters = [{"name": "board", "counters": {"memory": {"value": memory}}}]
    return slice_of(f"counters-{pool}", pool, total=total, nodeName="n", sharedCounters=counters)


def outcome(*objects: Manifest, claims: tuple[str, ...] = ("mine",)) -> str | list[list[str]]:
    world = DeviceCluster(node("n"), device_class(), pod(*claims), *objects)
    attempt = world.attempt()
    status = attempt.status("n")
    return attempt.allocation("n") if status.is_success else status.message


@pytest.mark.parametrize(
    ("parts", "more", "count", "expected"),
    [
        pytest.param([part("half", "4Gi"), part("rest", "4Gi")], [], 2, [["n/half", "n/rest"]], id="all that there is"),
        pytest.param([part("most", "6Gi"), part("rest", "4Gi")], [], 2, NONE, id="more than there is"),
        pytest.param([part("all", "8Gi"), part("a", "4Gi"), part("b", "4Gi")], [], 2, [["n/a", "n/b"]], id="goes back"),
        pytest.param(
            [part("half", "4Gi"), part("most", "6Gi"), part("rest", "4Gi")],
            [held("held", "n/half")],
            1,
            [["n/rest"]],
            id="others have used up some",
        ),
        pytest.param(
            [part("half", "4Gi"), part("all", "8Gi")],
            [held("held", "n/all", "n/half")],
            1,
            NONE,
            id="others have used up more than there is",
        ),
        pytest.param(
            [part("sick", "8Gi", taints=[{"key": "k", "effect": "NoSchedule"}]), part("well", "8Gi")],
            [],
            1,
            [["n/well"]],
            id="a device that is refused gives back what it took",
        ),
    ],
)
def test_parts_draw_on_the_same_counters(
    parts: list[Manifest], more: list[Manifest], count: int, expected: str | list[list[str]]
) -> None:
    devices = slice_on("n", *parts, total=2)
    assert outcome(board("8Gi"), devices, claim("mine", request("r", count)), *more) == expected


def test_parts_on_other_nodes_draw_on_the_counters_too() -> None:
    world = DeviceCluster(
        node("n"),
        node("m"),
        device_class(),
        pod("mine"),
        claim("mine", request()),
        board("8Gi", pool="shared", total=3),
        slice_on("n", part("here", "6Gi"), pool="shared", total=3),
        slice_on("m", part("there", "6Gi"), pool="shared", total=3),
        held("held", "shared/there", nodes="m"),
    )
    assert world.attempt().rejections() == {"n": NONE, "m": NONE}


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([board("8Gi"), slice_on("n", part("a", "1Gi"), part("a", "1Gi"), total=2)], id="a device twice"),
        pytest.param([slice_on("n", part("a", "1Gi"))], id="counters that nobody published"),
        pytest.param(
            [
                board("8Gi"),
                slice_on(
                    "n",
                    device("a", consumesCounters=[{"counterSet": "board", "counters": {"x": {"value": 1}}}]),
                    total=2,
                ),
            ],
            id="a counter that the set does not have",
        ),
        pytest.param(
            [
                board("8Gi", total=3),
                slice_of("more", "n", total=3, nodeName="n", sharedCounters=[{"name": "board", "counters": {}}]),
                slice_on("n", "a", total=3),
            ],
            id="a counter set twice",
        ),
    ],
)
def test_nothing_is_taken_from_an_invalid_pool(broken: list[Manifest]) -> None:
    wanted = claim("mine", request())
    assert outcome(*broken, wanted) == "invalid resource pools were encountered"
    assert outcome(*broken, wanted, slice_of("good", "good", "d", allNodes=True)) == [["good/d"]]
    of_all = "claim default/mine, request r: asks for all devices, but resource pool gpu.example.com/n"
    assert outcome(*broken, claim("mine", every())) == f"{of_all} is currently invalid"


def shared_device(name: str, memory: str, **policy: Any) -> Manifest:
    capacity = {"memory": {"value": memory, **({"requestPolicy": policy} if policy else {})}}
    return device(name, capacity=capacity, allowMultipleAllocations=True)


def asks(memory: str, name: str = "r", count: int = 1) -> Manifest:
    return request(name, count, capacity={"requests": {"memory": memory}})


def consumed(*objects: Manifest) -> str | list[dict[str, str]]:
    world = DeviceCluster(node("n"), device_class(), pod("mine"), *objects)
    attempt = world.attempt()
    status = attempt.status("n")
    if not status.is_success:
        return status.message
    assert attempt.reserve("n").is_success
    (entry,) = attempt.state.claims
    assert entry.allocation is not None
    results = entry.allocation.devices.results or ()
    assert len({result.share_id for result in results}) == len(results)
    return [{key: str(amount) for key, amount in (result.consumed_capacity or {}).items()} for result in results]


VALUES = {"default": "1Gi", "validValues": ["1Gi", "4Gi"]}
STEPS = {"default": "2Gi", "validRange": {"min": "2Gi", "max": "6Gi", "step": "2Gi"}}


@pytest.mark.parametrize(
    ("policy", "wanted", "expected"),
    [
        pytest.param({}, asks("3Gi"), [{"memory": "3Gi"}], id="as asked"),
        pytest.param({}, request(), [{"memory": "8Gi"}], id="all of it where nothing is asked"),
        pytest.param({}, asks("9Gi"), NONE, id="more than there is"),
        pytest.param(VALUES, request(), [{"memory": "1Gi"}], id="the usual portion"),
        pytest.param(VALUES, asks("2Gi"), [{"memory": "4Gi"}], id="the next portion up"),
        pytest.param(VALUES, asks("5Gi"), NONE, id="no portion is large enough"),
        pytest.param(STEPS, asks("1Gi"), [{"memory": "2Gi"}], id="at least the smallest"),
        pytest.param(STEPS, asks("3Gi"), [{"memory": "4Gi"}], id="in steps"),
        pytest.param(STEPS, asks("7Gi"), NONE, id="at most the largest"),
        pytest.param(
            STEPS,
            request(capacity={"requests": {"cores": "1"}}),
            NONE,
            id="a capacity that the device does not have",
        ),
    ],
)
def test_capacity_is_given_out_in_portions(
    policy: Manifest, wanted: Manifest, expected: str | list[dict[str, str]]
) -> None:
    assert consumed(slice_on("n", shared_device("d", "8Gi", **policy)), claim("mine", wanted)) == expected


@pytest.mark.parametrize(
    ("held_memory", "expected"),
    [
        pytest.param("4Gi", [{"memory": "4Gi"}], id="enough is left"),
        pytest.param("5Gi", NONE, id="too little is left"),
    ],
)
def test_what_others_use_of_a_device_is_not_left(held_memory: str, expected: str | list[dict[str, str]]) -> None:
    other = held("held", "n/d", shareID="s", consumedCapacity={"memory": held_memory})
    assert consumed(slice_on("n", shared_device("d", "8Gi")), claim("mine", asks("4Gi")), other) == expected


def test_requests_share_a_device_as_long_as_it_lasts() -> None:
    wanted = claim("mine", asks("4Gi", "a"), asks("4Gi", "b"))
    assert outcome(slice_on("n", shared_device("d", "8Gi")), wanted) == [["n/d", "n/d"]]
    wanted = claim("mine", asks("4Gi", "a"), asks("5Gi", "b"))
    assert outcome(slice_on("n", shared_device("d", "8Gi")), wanted) == NONE


def test_a_device_that_one_claim_has_to_itself_is_not_shared() -> None:
    assert consumed(slice_on("n", shared_device("d", "8Gi")), claim("mine", asks("1Gi")), held("held", "n/d")) == NONE


def test_a_device_to_oneself_must_be_large_enough() -> None:
    small = slice_on("n", device("d", memory="2Gi"))
    assert consumed(small, claim("mine", asks("2Gi"))) == [{}]
    assert consumed(small, claim("mine", asks("3Gi"))) == NONE
