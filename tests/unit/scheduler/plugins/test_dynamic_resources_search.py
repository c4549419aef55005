"""DynamicResources: which devices a claim gets, and when there are none for it."""

from __future__ import annotations

from typing import Any

import pytest
from device_clusters import (
    DRIVER,
    GPU_CLASS,
    OF_DRIVER,
    DeviceCluster,
    alternative,
    claim,
    device,
    device_class,
    every,
    first_of,
    held,
    node,
    pod,
    request,
    slice_of,
    slice_on,
)

from kubesched.framework.status import Code
from kubesched.k8s.model.times import Duration
from kubesched.scheduler.config.plugin_args import DynamicResourcesArgs
from kubesched.testing.make import Manifest

NONE = "cannot allocate all claims"
SMALL = device("small", memory="1Gi", attributes={"size": "s", "numa": 0})
LARGE = device("large", memory="8Gi", attributes={"size": "l", "numa": 1})
OTHER = device("other", memory="1Gi", attributes={"size": "s", "numa": 1})
IS_LARGE = f'device.attributes["{DRIVER}"].size == "l"'
IS_SMALL = f'device.attributes["{DRIVER}"].size == "s"'
BROKEN = f'device.attributes["{DRIVER}"].nothing == "x"'
THREE = slice_on("n", SMALL, LARGE, OTHER)
TAINT = {"key": "sick", "value": "yes", "effect": "NoSchedule"}


def outcome(*objects: Manifest, claims: tuple[str, ...] = ("mine",), **fields: Any) -> str | list[list[str]]:
    """What node `n` offers for the pod's claims: devices, or why not."""
    world = DeviceCluster(node("n"), device_class(), pod(*claims), *objects, **fields)
    attempt = world.attempt()
    status = attempt.status("n")
    return attempt.allocation("n") if status.is_success else status.message


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([claim("mine", request())], NONE, id="nothing is published"),
        pytest.param([claim("mine")], [[]], id="a claim without requests"),
        pytest.param([claim("mine", request()), THREE], [["n/small"]], id="the first device there is"),
        pytest.param(
            [claim("mine", request("r", 3)), THREE], [["n/small", "n/large", "n/other"]], id="as many as asked"
        ),
        pytest.param([claim("mine", request("r", 4)), THREE], NONE, id="more than there are"),
        pytest.param([claim("mine", request("r", 1, IS_LARGE)), THREE], [["n/large"]], id="by the request's selector"),
        pytest.param(
            [claim("mine", request(device_class="large")), device_class("large", OF_DRIVER, IS_LARGE), THREE],
            [["n/large"]],
            id="by the class's selectors",
        ),
        pytest.param(
            [claim("mine", request("a"), request("b", 1, IS_SMALL), request("c", 1, IS_SMALL)), THREE],
            [["n/large", "n/small", "n/other"]],
            id="an earlier request makes room for later ones",
        ),
        pytest.param([claim("mine", every()), THREE], [["n/small", "n/large", "n/other"]], id="all devices"),
        pytest.param([claim("mine", every("r", IS_SMALL)), THREE], [["n/small", "n/other"]], id="all that match"),
        pytest.param([claim("mine", every()), slice_on("n")], NONE, id="all devices of none"),
        pytest.param(
            [claim("mine", every()), THREE, held("held", "n/large")], NONE, id="all devices when one of them is taken"
        ),
        pytest.param([claim("mine", request()), THREE, held("held", "n/small")], [["n/large"]], id="a device is taken"),
        pytest.param(
            [claim("mine", request()), THREE, held("held", "n/small", adminAccess=True)],
            [["n/small"]],
            id="admin access takes nothing",
        ),
        pytest.param(
            [claim("mine", request("r", 3, adminAccess=True)), THREE, held("held", "n/small", "n/large")],
            [["n/small", "n/large", "n/other"]],
            id="admin access to what is taken",
        ),
        pytest.param(
            [claim("mine", request("a", 3, adminAccess=True), request("b")), THREE],
            NONE,
            id="what a claim has for admin access it cannot have otherwise",
        ),
        pytest.param(
            [claim("mine", request()), slice_on("n", device("sick", taints=[TAINT]), "well")],
            [["n/well"]],
            id="a tainted device",
        ),
        pytest.param(
            [
                claim("mine", request(tolerations=[{"key": "sick", "operator": "Exists"}])),
                slice_on("n", device("sick", taints=[TAINT]), "well"),
            ],
            [["n/sick"]],
            id="a taint that is tolerated",
        ),
        pytest.param(
            [
                claim("mine", request(tolerations=[{"key": "sick", "value": "no"}])),
                slice_on("n", device("sick", taints=[TAINT | {"effect": "NoExecute"}])),
            ],
            NONE,
            id="a toleration for another value",
        ),
        pytest.param(
            [claim("mine", request()), slice_on("n", device("odd", taints=[TAINT | {"effect": "None"}]))],
            [["n/odd"]],
            id="a taint without a known effect keeps nobody away",
        ),
    ],
)
def test_devices_are_taken_in_order_as_far_as_they_suit(
    objects: list[Manifest], expected: str | list[list[str]]
) -> None:
    assert outcome(*objects) == expected


@pytest.mark.parametrize(
    ("constraint", "requests", "expected"),
    [
        pytest.param(
            {"matchAttribute": f"{DRIVER}/numa"}, [request("r", 2)], [["n/large", "n/other"]], id="the same value"
        ),
        pytest.param({"matchAttribute": f"{DRIVER}/numa"}, [request("r", 3)], NONE, id="not all have the same value"),
        pytest.param({"matchAttribute": f"{DRIVER}/no"}, [request()], NONE, id="nobody has the attribute"),
        pytest.param({"matchAttribute": "elsewhere/numa"}, [request()], NONE, id="another driver's attribute"),
        pytest.param(
            {"matchAttribute": f"{DRIVER}/numa", "requests": ["b"]},
            [request("a"), request("b", 2)],
            [["n/small", "n/large", "n/other"]],
            id="for one request only",
        ),
        pytest.param(
            {"distinctAttribute": f"{DRIVER}/size"},
            [request("a"), request("b")],
            [["n/small", "n/large"]],
            id="different values",
        ),
        pytest.param(
            {"distinctAttribute": f"{DRIVER}/size"},
            [request("a"), request("b"), request("c")],
            NONE,
            id="too few values",
        ),
        pytest.param(
            {"distinctAttribute": f"{DRIVER}/size", "requests": ["f/x"]},
            [first_of("f", alternative("x")), request("b", 1, IS_SMALL)],
            [["n/small", "n/other"]],
            id="for a subrequest only",
        ),
    ],
)
def test_constraints_hold_across_the_devices_of_a_claim(
    constraint: Manifest, requests: list[Manifest], expected: str | list[list[str]]
) -> None:
    assert outcome(claim("mine", *requests, constraints=[constraint]), THREE) == expected


def test_values_of_different_kinds_are_different() -> None:
    devices = [device("number", attributes={"a": 1}), device("truth", attributes={"a": True})]
    wanted = claim("mine", request("r", 2), constraints=[{"matchAttribute": f"{DRIVER}/a"}])
    assert outcome(wanted, slice_on("n", *devices)) == NONE


@pytest.mark.parametrize(
    ("alternatives", "expected"),
    [
        pytest.param([alternative("a", 1, IS_LARGE), alternative("b", 1)], [["n/large"]], id="the first will do"),
        pytest.param(
            [alternative("a", 2, IS_LARGE), alternative("b", 1)], [["n/small"]], id="the second will have to do"
        ),
        pytest.param([alternative("a", 2, IS_LARGE), alternative("b", 4)], NONE, id="none will do"),
        pytest.param(
            [alternative("a", 40), alternative("b", 1)], [["n/small"]], id="the first is too many for any claim"
        ),
        pytest.param(
            [alternative("a", 0, allocationMode="All"), alternative("b", 1)],
            [["n/small", "n/large", "n/other"]],
            id="all devices first",
        ),
    ],
)
def test_the_first_subrequest_that_works_is_taken(
    alternatives: list[Manifest], expected: str | list[list[str]]
) -> None:
    assert outcome(claim("mine", first_of("f", *alternatives)), THREE) == expected


def test_a_later_request_can_force_an_earlier_one_to_its_second_choice() -> None:
    wanted = claim(
        "mine", first_of("f", alternative("a", 2, IS_SMALL), alternative("b", 1, IS_LARGE)), request("r", 1, IS_SMALL)
    )
    assert outcome(wanted, THREE) == [["n/large", "n/small"]]


def test_claims_of_a_pod_do_not_get_the_same_device() -> None:
    both = outcome(claim("one", request()), claim("two", request()), THREE, claims=("one", "two"))
    assert both == [["n/small"], ["n/large"]]


def test_an_earlier_claim_makes_room_for_a_later_one() -> None:
    both = outcome(claim("one", request()), claim("two", request("r", 2, IS_SMALL)), THREE, claims=("one", "two"))
    assert both == [["n/large"], ["n/small", "n/other"]]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param(
            [claim("mine", request("r", 1, BROKEN)), THREE],
            "claim default/mine: selector #0: CEL runtime error: no such key: nothing",
            id="a selector without an answer",
        ),
        pytest.param(
            [claim("mine", request(device_class="b")), device_class("b", OF_DRIVER, BROKEN), THREE],
            "class b: selector #1: CEL runtime error: no such key: nothing",
            id="a class's selector without an answer",
        ),
        pytest.param(
            [claim("mine", {"name": "r", "exactly": {"deviceClassName": GPU_CLASS, "selectors": [{}]}})],
            "claim default/mine, request r, selector #0: CEL expression empty (unsupported selector type?)",
            id="a selector of an unknown kind",
        ),
        pytest.param(
            [claim("mine", request(allocationMode="Some"))],
            "claim default/mine, request r: unsupported count mode Some",
            id="an unknown mode",
        ),
        pytest.param(
            [claim("mine", request("a", 20), request("b", 20))],
            "claim default/mine: number of requested devices 40 exceeds the claim limit of 32",
            id="more devices than a claim can hold",
        ),
        pytest.param(
            [claim("mine", request(), constraints=[{}])],
            "claim default/mine, constraint #0: empty constraint (unsupported constraint type?)",
            id="a constraint of an unknown kind",
        ),
        pytest.param(
            [claim("mine", every(), constraints=[{"matchAttribute": f"{DRIVER}/size"}]), THREE],
            f"claim default/mine, request r: cannot add device {DRIVER}/n/large "
            "because a claim constraint would not be satisfied",
            id="a constraint that all devices cannot meet",
        ),
        pytest.param(
            [claim("mine", request("r", 1, OF_DRIVER)), slice_on("n", device("empty", attributes={"a": {}}))],
            "claim default/mine: selector #0: CEL runtime error: attribute a: unsupported attribute value",
            id="an attribute of an unknown kind",
        ),
    ],
)
def test_mistakes_end_the_attempt(objects: list[Manifest], message: str) -> None:
    world = DeviceCluster(node("n"), device_class(), pod("mine"), *objects)
    status = world.attempt().status("n")
    assert (status.code, status.message) == (Code.ERROR, message)


def test_a_search_that_takes_too_long_is_given_up() -> None:
    many = slice_on("n", *(f"d{index}" for index in range(24)))
    hopeless = claim("mine", request("a", 11), request("b", 2, "false"))
    ten_milliseconds = DynamicResourcesArgs(filter_timeout=Duration(10**7))
    world = DeviceCluster(node("n"), device_class(), pod("mine"), many, hopeless, args=ten_milliseconds)
    status = world.attempt().status("n")
    assert (status.code, status.message) == (Code.ERROR, "node n: timed out trying to allocate devices")


def test_claims_for_very_many_devices_are_no_problem() -> None:
    names = [f"c{index}" for index in range(20)]
    devices = slice_on("n", *(f"d{index:03}" for index in range(640)))
    found = outcome(*(claim(name, request("r", 32)) for name in names), devices, claims=tuple(names))
    assert [len(devices) for devices in found] == [32] * 20


def test_pools_are_tried_by_driver_and_name_those_with_binding_conditions_last() -> None:
    slices = [
        slice_of("s1", "b", "d", allNodes=True),
        slice_of("s2", "a", device("d", bindingConditions=["ready"]), allNodes=True),
        slice_of("s4", "c", "late", total=2, allNodes=True),
        slice_of("s3", "c", "early", total=2, allNodes=True),
        slice_of("s5", "z", "d", driver="a-driver", allNodes=True),
    ]
    assert outcome(claim("mine", request("r", 5)), *slices) == [["z/d", "b/d", "c/early", "c/late", "a/d"]]
