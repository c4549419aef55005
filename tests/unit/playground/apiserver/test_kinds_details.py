"""Details of pods, volumes and devices that are refused, in kube-apiserver's words and order."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import FakeLookup, change_mistakes, create, errors, pod, resource_of

from kubesched.playground.apiserver.kinds.registry import ALL_KINDS, find
from kubesched.playground.apiserver.served_resource import Object

PODS = next(kind for kind in ALL_KINDS if kind.kind == "Pod")
_ID = "must be between 0 and 2147483647, inclusive"
_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def _container(**parts: Any) -> list[Object]:
    return [{"name": "c", "image": "i", **parts}]


def _volume(**source: Any) -> list[Object]:
    return [{"name": "v", **source}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"os": {}}, ["spec.os.name: Required value"], id="a system without name"),
        pytest.param(
            {"os": {"name": "x"}},
            ['spec.os: Unsupported value: "x": supported values: "linux", "windows"'],
            id="an unknown system",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "x"}]}, [f'spec.hostAliases[0].ip: Invalid value: "x": {_ADDRESS}'], id="no address"
        ),
        pytest.param(
            {"dnsConfig": {"options": [{}]}},
            ["spec.dnsConfig.options[0]: Required value: must not be empty"],
            id="an option without name",
        ),
        pytest.param(
            {"securityContext": {"supplementalGroups": [2**40]}},
            [f"spec.securityContext.supplementalGroups[0]: Invalid value: {2**40}: {_ID}"],
            id="a group out of range",
        ),
        pytest.param(
            {"containers": _container(securityContext={"seccompProfile": {}})},
            [
                "spec.containers[0].securityContext.seccompProfile.type: Required value: "
                "type is required when seccompProfile is set"
            ],
            id="a profile without type",
        ),
        pytest.param(
            {"containers": _container(resizePolicy=[{"resourceName": "x", "restartPolicy": "NotRequired"}])},
            ['spec.containers[0].resizePolicy: Unsupported value: "x": supported values: "cpu", "memory"'],
            id="a resize of something else",
        ),
        pytest.param(
            {"volumes": _volume(configMap={"name": "m", "items": [{"path": "/p"}]})},
            [
                "spec.volumes[0].configMap.items[0].key: Required value",
                'spec.volumes[0].configMap.items[0].path: Invalid value: "/p": must be a relative path',
            ],
            id="an item without key and with an absolute path",
        ),
        pytest.param(
            {"volumes": _volume(downwardAPI={"items": [{"path": "p", "fieldRef": {"fieldPath": "x"}}]})},
            [
                'spec.volumes[0].downwardAPI.fieldRef.fieldPath: Invalid value: "x": '
                "error converting fieldPath: field label not supported: x"
            ],
            id="an unknown field",
        ),
        pytest.param(
            {"volumes": _volume(ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}})},
            ["spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"],
            id="a claim without size",
        ),
        pytest.param(
            {"containers": [{"name": "a.b", "image": "i"}]},
            ['spec.containers[0].name: Invalid value: "a.b": must not contain dots'],
            id="a name with dots",
        ),
    ],
)
def test_pods_with_a_detail_that_is_wrong(spec: Object, expected: list[str]) -> None:
    assert errors(PODS, pod(**spec)) == expected


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("x", "Always", id="no tag"),
        pytest.param("registry:5000/a/b", "Always", id="a port is no tag"),
        pytest.param("x:1", "IfNotPresent", id="a tag"),
        pytest.param("x@sha256:abc", "IfNotPresent", id="a digest"),
        pytest.param("A_b", "IfNotPresent", id="not a name"),
        pytest.param("a..b", "IfNotPresent", id="an empty part"),
        pytest.param("f" * 64, "IfNotPresent", id="an identifier"),
    ],
)
def test_images_are_pulled_always_when_they_mean_the_latest(image: str, policy: str) -> None:
    stored, _ = create(PODS, pod(containers=[{"name": "c", "image": image}]))
    assert stored["spec"]["containers"][0]["imagePullPolicy"] == policy


def _sized(cpu: str) -> Object:
    return {"requests": {"cpu": cpu}}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"spec.containers.0.resources": _sized("2")}, [], id="more cpu"),
        pytest.param({"spec.containers.0.image": "other"}, [], id="another image is left out"),
        pytest.param(
            {"spec.containers.0.resources": {}},
            [
                'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            ],
            id="no requests any more",
        ),
        pytest.param(
            {"spec.containers.0.name": "d"},
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
            id="another name",
        ),
    ],
)
def test_a_resize_changes_cpu_and_memory_only(change: Object, expected: list[str]) -> None:
    body = pod(containers=_container(resources=_sized("1")))
    assert change_mistakes(PODS, body, change, subresource="resize") == expected


def test_metadata_that_is_wrong_is_a_cause_each_time_it_is_looked_at() -> None:
    old, _ = create(PODS, pod())
    new = {**old, "metadata": {**old["metadata"], "labels": {"bad": "a b"}}}
    assert [error.field for error in PODS.validate(new, old)] == ["metadata.labels"] * 4
    nodes = find("", "v1", "nodes")
    assert nodes is not None
    node, _ = create(nodes, {"metadata": {"name": "n"}})
    wrong = {**node, "spec": {"taints": [{"key": "k", "effect": "odd"}]}}
    assert [error.field for error in nodes.validate(wrong, node)] == ["metadata.taints[0].effect"] * 2


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        pytest.param(
            ("resource.k8s.io", "v1", "resourceslices"),
            {"spec": {"pool": {"name": "p", "resourceSliceCount": 1}, "driver": "d", "devices": [{"name": "-"}]}},
            ["spec", "spec.devices[0].name"],
            id="a slice of no node with a device without name",
        ),
        pytest.param(
            ("resource.k8s.io", "v1", "resourceclaims"),
            {"spec": {"devices": {"requests": [{"name": "r"}], "constraints": [{"requests": ["x"]}]}}},
            ["spec.devices.requests[0]", "spec.devices.constraints[0].requests[0]", "spec.devices.constraints[0]"],
            id="a request for nothing and a constraint on nothing",
        ),
        pytest.param(
            ("storage.k8s.io", "v1", "volumeattachments"),
            {"spec": {"nodeName": "n"}},
            ["spec.attacher", "spec.source"],
            id="an attachment of nothing",
        ),
        pytest.param(
            ("", "v1", "persistentvolumes"),
            {"spec": {"capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"], "csi": {}, "nodeAffinity": {}}},
            ["spec.nodeAffinity.required", "spec.csi.driver", "spec.csi.volumeHandle"],
            id="a volume without driver",
        ),
    ],
)
def test_storage_and_devices_that_are_wrong(kind: tuple[str, str, str], body: Object, expected: list[str]) -> None:
    resource = find(*kind)
    assert resource is not None
    told = errors(resource, {"metadata": {"name": "x"}, **body})
    assert [text.partition(": ")[0] for text in told] == expected


def test_every_service_has_an_address_of_its_own_also_the_three_hundredth() -> None:
    services = resource_of("v1", "services")
    others = FakeLookup({"services": []})
    for number in range(300):
        made, _ = create(services, {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80}]}}, others)
        others.objects["services"].append(made | {"metadata": {"name": f"s{number}", "uid": f"u{number}"}})
    assert len({made["spec"]["clusterIP"] for made in others.objects["services"]}) == 300
