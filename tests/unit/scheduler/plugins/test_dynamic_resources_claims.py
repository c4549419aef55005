"""DynamicResources: the claims of a pod, before any node is looked at, and where allocated ones can be used."""

from __future__ import annotations

import numpy as np
import pytest
from device_clusters import DeviceCluster, claim, device_class, first_of, held, node, pod, request, slice_on

from kubesched.framework.status import OK, Code
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.testing.make import Manifest

TEMPLATE = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}


def _generated(claim_name: str | None) -> Manifest:
    """A pod whose claim was made from a template."""
    status = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": claim_name}]}
    return pod(spec=TEMPLATE, status=status)


def _owned(uid: str) -> Manifest:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    return claim("mine", request(), metadata={"ownerReferences": [owner]})


@pytest.mark.parametrize(
    ("the_pod", "claims", "reason"),
    [
        pytest.param(pod(), [], None, id="no claims"),
        pytest.param(pod("mine"), [claim("mine", request())], None, id="the claim exists"),
        pytest.param(pod("mine"), [], 'could not find ResourceClaim "default/mine"', id="the claim does not exist"),
        pytest.param(
            pod("mine"),
            [claim("mine", request(), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'resourceclaim "mine" is being deleted',
            id="the claim is on its way out",
        ),
        pytest.param(
            pod(spec=TEMPLATE),
            [],
            'pod "default/p": ResourceClaim not created yet',
            id="no claim made from the template",
        ),
        pytest.param(_generated(None), [], None, id="the template needs no claim"),
        pytest.param(_generated("mine"), [_owned("uid-default-p")], None, id="made for this pod"),
        pytest.param(
            _generated("mine"),
            [_owned("uid-of-a-namesake")],
            "ResourceClaim default/mine was not created for Pod default/p (Pod is not owner)",
            id="made for a pod that had the same name",
        ),
        pytest.param(
            pod(spec={"resourceClaims": [{"name": "c"}]}),
            [],
            'pod "default/p", spec.resourceClaim "c": none of the supported fields are set',
            id="a reference of an unknown kind",
        ),
    ],
)
def test_a_pod_waits_outside_the_queue_for_its_claims(
    the_pod: Manifest, claims: list[Manifest], reason: str | None
) -> None:
    world = DeviceCluster(node("n"), device_class(), the_pod, *claims)
    status = world.plugin.pre_enqueue(world.pod())
    attempt = world.attempt()
    if reason is None:
        assert status.is_success
        assert not attempt.prefilter.is_rejected
    else:
        assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
        assert (attempt.prefilter.code, attempt.prefilter.reasons) == (status.code, status.reasons)


def test_a_pod_that_needs_no_device_is_skipped() -> None:
    world = DeviceCluster(node("n"), device_class(), pod(cpu="1", requests={"example.com/other": 1}))
    assert world.attempt().prefilter.is_skip


@pytest.mark.parametrize(
    ("requests", "code", "reason"),
    [
        pytest.param(
            [request(device_class="no")],
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request r: device class no does not exist",
            id="a class that does not exist",
        ),
        pytest.param(
            [
                first_of(
                    "f", request()["exactly"] | {"name": "a"}, request(device_class="no")["exactly"] | {"name": "b"}
                )
            ],
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "request f/b: device class no does not exist",
            id="a class of a subrequest that does not exist",
        ),
        pytest.param(
            [{"name": "r"}],
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "resource claim default/mine, request r: unknown request type",
            id="a request of an unknown kind",
        ),
        pytest.param(
            [request(device_class="")],
            Code.ERROR,
            "request r: unsupported request type",
            id="a request without a class",
        ),
    ],
)
def test_requests_must_name_classes_that_exist(requests: list[Manifest], code: Code, reason: str) -> None:
    world = DeviceCluster(node("n"), device_class(), pod("mine"), claim("mine", *requests))
    status = world.attempt().prefilter
    assert (status.code, status.reasons) == (code, (reason,))


def test_an_allocated_claim_needs_no_class_any_more() -> None:
    world = DeviceCluster(
        node("n"), pod("mine"), held("mine", "n/gpu-0", nodes="n", requests=[request(device_class="no")])
    )
    assert world.attempt().fits() == ["n"]


def test_an_allocated_claim_can_be_used_where_its_devices_are() -> None:
    selected = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["1"]}]}]}
    on_rack = claim("on-rack", request(), status={"allocation": {"nodeSelector": selected}})
    world = DeviceCluster(
        node("a", labels={"rack": "1"}),
        node("b", labels={"rack": "1"}),
        node("c"),
        pod("on-rack", "on-b"),
        on_rack,
        held("on-b", "b/gpu-0", nodes="b"),
    )
    attempt = world.attempt()
    assert attempt.fits() == ["b"]
    assert attempt.status("c").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert set(attempt.rejections().values()) == {"resourceclaim not available on the node"}


def test_a_claim_that_others_use_can_be_shared() -> None:
    world = DeviceCluster(node("n"), pod("mine"), held("mine", "n/gpu-0", nodes="n", by=("another", "third")))
    assert world.attempt().fits() == ["n"]


def test_what_cannot_be_allocated_is_named_before_what_cannot_be_used() -> None:
    world = DeviceCluster(
        node("a"),
        node("b"),
        device_class(),
        pod("held", "new"),
        held("held", "b/gpu-0", nodes="b"),
        claim("new", request()),
    )
    assert set(world.attempt().rejections().values()) == {"cannot allocate all claims"}


def test_filter_answers_for_any_part_of_the_table() -> None:
    world = DeviceCluster(
        *(node(name) for name in "abc"), slice_on("b", "gpu-0"), device_class(), pod("mine"), claim("mine", request())
    )
    attempt = world.attempt()
    for position, name in enumerate(world.nodes.names):
        part = world.nodes.take(np.array([position]))
        alone = world.plugin.filter(attempt.cycle, attempt.pod, part)
        status = OK if alone is ACCEPT_ALL else alone.status(0)
        assert status == attempt.status(name)
        assert status.is_success == (name == "b")
