"""DynamicResources: extended resources that device classes stand behind."""

from __future__ import annotations

import pytest
from device_clusters import DeviceCluster, claim, device_class, held, node, pod, read_pod, request, slice_on

from kubesched.framework.status import Code
from kubesched.k8s.model.core import ContainerExtendedResourceRequest
from kubesched.scheduler.plugins.dynamic_resources.requests import requests_for
from kubesched.testing.make import Manifest

GPU = "example.com/gpu"
NIC = "example.com/nic"
CLASSES = [
    device_class("gpu", 'device.driver == "gpu.example.com"', extendedResourceName=GPU),
    device_class("nic", "false"),
]
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


@pytest.mark.parametrize(
    ("resource", "fits"),
    [
        pytest.param(GPU, ["devices", "plugin"], id="by the name that the class declares"),
        pytest.param(IMPLICIT, ["devices"], id="by the name of the class"),
        pytest.param("deviceclass.resource.kubernetes.io/nic", [], id="of a class that picks no device"),
    ],
)
def test_devices_stand_in_where_a_node_has_none_of_the_resource(resource: str, fits: list[str]) -> None:
    world = DeviceCluster(
        node("plugin", allocatable={GPU: 4}),
        node("devices", allocatable={GPU: 0}),
        node("nothing"),
        slice_on("devices", "d0", "d1"),
        *CLASSES,
        pod(requests={resource: 2}),
    )
    attempt = world.attempt()
    assert attempt.fits() == fits
    assert set(attempt.rejections().values()) == {"cannot allocate all claims"}


def test_a_resource_that_nobody_knows_does_not_fit() -> None:
    world = DeviceCluster(
        node("knows", allocatable={NIC: 0}),
        node("never-heard"),
        slice_on("never-heard", "d"),
        *CLASSES,
        pod(requests={GPU: 1, NIC: 1}),
    )
    attempt = world.attempt()
    assert attempt.rejections() == {"knows": "cannot allocate all claims", "never-heard": "cannot fit resource"}
    assert attempt.status("never-heard").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_the_special_claim_does_not_get_devices_of_the_others() -> None:
    world = DeviceCluster(
        node("n"), slice_on("n", "d0", "d1"), *CLASSES, claim("mine", request()), pod("mine", requests={GPU: 1})
    )
    assert world.attempt().allocation("n") == [["n/d0"], ["n/d1"]]
    world.put(claim("mine", request("r", 2)))
    assert world.attempt().rejections() == {"n": "cannot allocate all claims"}


def test_a_node_that_has_the_resource_itself_is_left_to_others() -> None:
    world = DeviceCluster(node("n", allocatable={GPU: 1}), *CLASSES, pod(requests={GPU: 1}))
    attempt = world.attempt()
    assert attempt.fits() == ["n"]
    assert attempt.reserve("n").is_success
    assert attempt.scores() == {"n": 0}


def test_a_claim_left_over_from_an_earlier_attempt_has_to_go_first() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-default-p", "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    old = held("p-extended-resources-x7f", "n/d0", nodes="n", by=("p",))
    old["metadata"] |= {"ownerReferences": [owner], "annotations": annotations}
    world = DeviceCluster(node("n"), slice_on("n", "d0", "d1"), *CLASSES, old, pod(requests={GPU: 1}))
    assert world.attempt().rejections() == {"n": "cannot schedule extended resource claim"}


def test_a_pod_without_classes_behind_its_resources_is_skipped() -> None:
    world = DeviceCluster(node("n"), slice_on("n", "d0"), *CLASSES, pod(requests={NIC: 1}))
    assert world.attempt().prefilter.is_skip


def _container(name: str, count: int | None, *, restart: str | None = None) -> Manifest:
    requests = {"cpu": "1", **({GPU: count} if count is not None else {})}
    return {"name": name, "resources": {"requests": requests}, **({"restartPolicy": restart} if restart else {})}


@pytest.mark.parametrize(
    ("init", "containers", "expected", "mappings"),
    [
        pytest.param(
            [], [_container("a", 2)], {"container-0-request-1": 2}, {"a": ["container-0-request-1"]}, id="one"
        ),
        pytest.param(
            [],
            [_container("a", 2), _container("b", None), _container("c", 1)],
            {"container-0-request-1": 2, "container-2-request-1": 1},
            {"a": ["container-0-request-1"], "c": ["container-2-request-1"]},
            id="each container its own",
        ),
        pytest.param(
            [_container("i", 1)],
            [_container("a", 2)],
            {"container-1-request-1": 2},
            {"a": ["container-1-request-1"], "i": ["container-1-request-1"]},
            id="an init container uses what a later one gets",
        ),
        pytest.param(
            [_container("i", 3), _container("j", 4)],
            [_container("a", 2)],
            {"container-1-request-1": 2, "container-2-request-1": 2},
            {
                "a": ["container-2-request-1"],
                "i": ["container-2-request-1", "container-1-request-1"],
                "j": ["container-2-request-1", "container-1-request-1"],
            },
            id="init containers share what they need beyond that",
        ),
        pytest.param(
            [_container("side", 1, restart="Always"), _container("i", 2)],
            [_container("a", 1)],
            {"container-0-request-1": 1, "container-1-request-1": 1, "container-2-request-1": 1},
            {
                "side": ["container-0-request-1"],
                "a": ["container-2-request-1"],
                "i": ["container-2-request-1", "container-1-request-1"],
            },
            id="a sidecar that started earlier keeps its own",
        ),
    ],
)
def test_containers_that_run_together_need_devices_of_their_own(
    init: list[Manifest], containers: list[Manifest], expected: dict[str, int], mappings: dict[str, list[str]]
) -> None:
    the_pod = read_pod(pod(spec={"initContainers": init, "containers": containers}))
    world = DeviceCluster(*CLASSES)
    found = requests_for(the_pod, [GPU], {GPU: world.cluster.objects.device_classes["gpu"]})
    assert {entry.name: entry.exactly.count for entry in found.requests if entry.exactly is not None} == expected
    assert list(found.mappings) == [
        ContainerExtendedResourceRequest(container, GPU, name)
        for container, names in mappings.items()
        for name in names
    ]
