"""What is told of a gang that is kept off nodes which have room for it, or held back; and that it is tried out."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from test_pod_group_explanations import _group, _node, _pods

import kubesched

_KEPT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
_OTHER = {"key": "x", "effect": "NoExecute"}
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
_ON_SSD = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [_SSD]}]}}


def _tainted(name: str, *taints: dict[str, Any], cpu: str = "4", **labels: str) -> dict[str, Any]:
    is_cordoned = {"unschedulable": True} if _CORDON in taints else {}
    return {**_node(name, cpu, **labels), "spec": {"taints": list(taints), **is_cordoned}}


def _with_port(n: int) -> list[dict[str, Any]]:
    pods = copy.deepcopy(_pods(n))
    for pod in pods:
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return pods


ZONE = "topology.kubernetes.io/zone"


def _in_zone(name: str, zone: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    return _node(name, cpu, **labels, **{ZONE: zone})


def _with_volumes(n: int, *zones: str) -> list[dict[str, Any]]:
    """Pods, each with a claim that is bound to a volume of a zone: of the last one, if there are more pods."""
    objects = []
    for at, pod in enumerate(copy.deepcopy(_pods(n))):
        zone = zones[min(at, len(zones) - 1)]
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"c{at}"}}]
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": f"c{at}"}
        volume = {"claimRef": claim, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
        bound = {"pv.kubernetes.io/bind-completed": "yes"}
        objects += [
            pod,
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"v{at}"}, "spec": volume},
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"c{at}", "annotations": bound},
                "spec": {"volumeName": f"v{at}"},
                "status": {"phase": "Bound"},
            },
        ]
    return objects


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        pytest.param(
            [_tainted("a", _KEPT), _group(3), *_pods(3)], ["tolerate gpu=yes:NoSchedule on each pod"], id="a taint"
        ),
        pytest.param(
            [_tainted("a", _KEPT, _OTHER), _group(3), *_pods(3)],
            ["tolerate gpu=yes:NoSchedule and x:NoExecute on each pod"],
            id="two taints",
        ),
        pytest.param(
            [_tainted("a", _NOT_READY), _group(3), *_pods(3)],
            ["add a node like a (4 cpu, 8Gi memory)"],
            id="a node that is not well",
        ),
        pytest.param([_tainted("a", _KEPT, cpu="2"), _group(3), *_pods(3)], [], id="a taint, and no room behind it"),
        pytest.param(
            [_tainted("a", _KEPT, rack="r"), _node("b", "1", rack="s"), _group(3, rack=True), *_pods(3)],
            [
                "add 2 nodes like b (1 cpu, 8Gi memory each)",
                "lower the cpu request of each pod from 1 to 300m",
                "lower minCount from 3 to 1",
                "tolerate gpu=yes:NoSchedule on each pod",
            ],
            id="a taint in another rack than the nearest",
        ),
        pytest.param(
            [_tainted("a", _CORDON, cpu="2"), _tainted("b", _CORDON, cpu="2"), _group(3), *_pods(3)],
            ["uncordon a and b", "add 2 nodes like a (2 cpu, 8Gi memory each)"],
            id="cordoned",
        ),
        pytest.param(
            [_node("a"), _node("b"), _group(2), *_pods(2, nodeSelector={"disk": "ssd"})],
            ["label a with disk=ssd", "drop node selector and required node affinity of each pod"],
            id="a node selector",
        ),
        pytest.param(
            [_node("a"), _group(2), *_pods(2, affinity={"nodeAffinity": _ON_SSD})],
            ["drop node selector and required node affinity of each pod"],
            id="node affinity",
        ),
        pytest.param(
            [_node("a"), _node("b"), _group(3, rack=True), *_pods(3)],
            ["label a and b with one value of rack", "drop the topology constraint on rack"],
            id="no node has the topology's label",
        ),
        pytest.param(
            [_node("a", "4"), _node("b", "4"), _group(3), *_with_port(3)],
            ["add a node like a (4 cpu, 8Gi memory)", "give up host port 80 of each pod", "lower minCount from 3 to 2"],
            id="host ports",
        ),
        pytest.param(
            [_node("a", "4"), _group(3), *_pods(1)],
            ["create 2 more pods like p0", "lower minCount from 3 to 1"],
            id="pods are missing",
        ),
        pytest.param(
            [_node("a", "2"), _group(3), *_pods(2)],
            ["create 1 more pod like p0, and add a node like a (2 cpu, 8Gi memory)", "lower minCount from 3 to 2"],
            id="pods are missing, and so is room for them",
        ),
        pytest.param(
            [_node("a", "2"), _group(2), *_pods(2, schedulingGates=[{"name": "quota"}])],
            ["remove the scheduling gates of 2 pods"],
            id="gated",
        ),
        pytest.param(
            [_node("a", "1"), _group(2), *_pods(2, schedulingGates=[{"name": "quota"}])], [], id="gated, and no room"
        ),
        pytest.param(
            [_in_zone("n1", "a"), _in_zone("n2", "b", "1"), _group(3), *_with_volumes(3, "b")],
            [
                f"add 2 nodes like n2 (1 cpu, 8Gi memory each) with {ZONE}=b, where volumes of the pods are",
                f"move the volumes v0, v1 and v2 from {ZONE}=b to a",
                "lower the cpu request of each pod from 1 to 300m",
                "lower minCount from 3 to 1",
            ],
            id="volumes in another zone",
        ),
        pytest.param(
            [_in_zone("n1", "a"), _group(3), *_with_volumes(3, "b")],
            [
                f"add a node like n1 (4 cpu, 8Gi memory) with {ZONE}=b, where volumes of the pods are",
                f"move the volumes v0, v1 and v2 from {ZONE}=b to a",
            ],
            id="volumes in a zone without nodes",
        ),
        pytest.param(
            [_in_zone("n1", "a"), _group(2), *_with_volumes(2, "a", "b")],
            [
                f"add a node like n1 (4 cpu, 8Gi memory) with {ZONE}=b, where volumes of the pods are",
                f"move the volume v1 from {ZONE}=b to a",
                "lower minCount from 2 to 1",
            ],
            id="volumes in two zones, one without nodes",
        ),
        pytest.param(
            [
                _in_zone("n1", "a", rack="r"),
                _in_zone("n2", "b", "1", rack="s"),
                _in_zone("n3", "b", "1", rack="t"),
                _group(3, rack=True),
                *_with_volumes(3, "b"),
            ],
            [
                f"add 2 nodes like n2 (1 cpu, 8Gi memory each) with {ZONE}=b, where volumes of the pods are",
                f"move the volumes v0, v1 and v2 from {ZONE}=b to a",
                "lower the cpu request of each pod from 1 to 300m",
                "lower minCount from 3 to 1",
            ],
            id="volumes in another zone than the rack with room",
        ),
    ],
)
def test_what_keeps_a_gang_off_is_told_with_what_to_do(objects: list[dict[str, Any]], told: list[str]) -> None:
    found = kubesched.explain(objects, "podgroup/g")
    assert [change["description"] for change in found.to_dict()["changes"]] == told
    text = " ".join(str(found).split())
    assert all(line in text for line in told)
    assert found.to_dict()["fits"] is False
