"""Which changes are told for which trouble, in which order, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.simulator.asking import explain
from kubesched.testing import make
from kubesched.testing.make import HOSTNAME, ZONE, Manifest

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HUGE = make.taint("node.kubernetes.io/unreachable", effect="NoExecute")


def descriptions(objects: list[Manifest]) -> list[str]:
    return [change.description for change in explain(objects, "default/p").changes]


def changes(objects: list[Manifest]) -> dict[str, dict[str, Any]]:
    return {change.kind.value: change.to_dict() for change in explain(objects, "default/p").changes}


def _affinity(kind: str, *terms: Manifest) -> Manifest:
    return {"affinity": {kind: {REQUIRED: list(terms)}}}


def _node_affinity(*terms: list[Manifest]) -> Manifest:
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions} for expressions in terms]}
    return {"affinity": {"nodeAffinity": {REQUIRED: required}}}


def _is(key: str, *values: str) -> Manifest:
    return {"key": key, "operator": "In", "values": list(values)}


CASES = [
    pytest.param(
        [make.node("a", cpu=2), make.node("b", cpu=3), make.pod("p", cpu=4)],
        [
            "lower the cpu request from 4 to 3",
            "add a node like a, but with at least 4 cpu",
        ],
        id="a pod larger than every node can only ask for less",
    ),
    pytest.param(
        [make.node("a", cpu=4, memory="1Gi"), make.node("b", cpu=1, memory="4Gi"), make.pod("p", cpu=3, memory="3Gi")],
        [
            "add a node like a, but with at least 3Gi memory",
            "lower the memory request from 3Gi to 1Gi",
            "lower the cpu request from 3 to 1",
        ],
        id="one resource alone, wherever that is enough",
    ),
    pytest.param(
        [make.node("a", cpu=2, memory="2Gi"), make.node("b", cpu=1, memory="3Gi"), make.pod("p", cpu=4, memory="4Gi")],
        [
            "add a node like a, but with at least 4 cpu and with at least 4Gi memory",
            "lower the cpu request from 4 to 2 and the memory request from 4Gi to 2Gi",
        ],
        id="several resources where one alone is not enough, on the node where least is given up",
    ),
    pytest.param(
        [
            make.node("a", cpu=4),
            make.pod("x", on="a", cpu=2),
            make.pod("y", on="a", cpu="1500m"),
            make.pod("p", cpu=2),
        ],
        [
            "free 1500m cpu on a, for example by moving default/y away",
            "add a node like a (4 cpu, 8Gi memory)",
            "lower the cpu request from 2 to 500m",
            "raise the priority from 0 to 1, which evicts default/y from a",
        ],
        id="free what is missing; the smallest pod that has it could go",
    ),
    pytest.param(
        [make.node("a", cpu=4, taints=[make.taint("gpu", "x"), make.taint("spot")]), make.pod("p")],
        [
            "add a node like a, but without the taint gpu=x:NoSchedule and without the taint spot:NoSchedule",
            "tolerate gpu=x:NoSchedule and spot:NoSchedule",
        ],
        id="all taints of the one node",
    ),
    pytest.param(
        [make.node("a", taints=[HUGE]), make.node("b", taints=[make.taint("gpu")]), make.pod("p")],
        [
            "add a node like a (4 cpu, 8Gi memory)",
            "tolerate gpu:NoSchedule",
        ],
        id="rather a taint of its owner's than one that says a node is not well",
    ),
    pytest.param(
        [
            make.node("a", unschedulable=True, taints=[make.taint("node.kubernetes.io/unschedulable")]),
            make.pod("p"),
        ],
        [
            "uncordon a",
            "add a node like a (4 cpu, 8Gi memory)",
        ],
        id="uncordoning takes the taint away that goes with it",
    ),
    pytest.param(
        [
            make.node("a", labels={"disk": "hdd", "arch": "arm"}),
            make.pod("p", spec={"nodeSelector": {"disk": "ssd", "arch": "arm"}}),
        ],
        [
            "add a node like a, but with disk=ssd",
            "drop the nodeSelector disk=ssd",
        ],
        id="the one label that does not match",
    ),
    pytest.param(
        [
            make.node("a", labels={"disk": "hdd", "arch": "arm"}),
            make.pod("p", spec=_node_affinity([_is("disk", "ssd"), _is("arch", "arm")], [_is("arch", "amd64")])),
        ],
        [
            "add a node like a, but with disk=ssd",
            "drop the node affinity requirement disk=ssd",
        ],
        id="one requirement of the term that comes closest",
    ),
    pytest.param(
        [make.node("a"), make.pod("p", spec=_node_affinity([_is("disk", "ssd")]))],
        [
            "label a with disk=ssd",
            "add a node like a, but with disk=ssd",
            "drop the required node affinity",
        ],
        id="the whole affinity where a term would be left empty",
    ),
    pytest.param(
        [
            make.node("a"),
            make.pod("x", on="a", labels={"app": "db"}, priority=5),
            make.pod("p", spec=_affinity("podAntiAffinity", make.affinity_term(HOSTNAME, {"app": "db"}))),
        ],
        [
            "add a node like a (4 cpu, 8Gi memory)",
            f"drop the pod anti-affinity term app=db within {HOSTNAME}",
            "move default/x away from a",
            "raise the priority from 0 to 6, which evicts default/x from a",
        ],
        id="an anti-affinity term",
    ),
    pytest.param(
        [make.node("a"), make.pod("p", spec=_affinity("podAffinity", make.affinity_term(HOSTNAME, {"app": "db"})))],
        [
            f"drop the pod affinity term app=db within {HOSTNAME}",
        ],
        id="an affinity term",
    ),
    pytest.param(
        [make.node("a"), make.pod("x", on="a", host_ports=(80,)), make.pod("p", host_ports=(80, 81), priority=1)],
        [
            "evict default/x from a",
            "add a node like a (4 cpu, 8Gi memory)",
            "drop the host port 80/TCP of container main",
        ],
        id="a host port, or the pod that holds it",
    ),
    pytest.param(
        [
            make.node("a", labels={ZONE: "n"}, cpu=1),
            make.node("b", labels={ZONE: "s"}, taints=[make.taint("gpu")]),
            make.pod("x", on="a", labels={"app": "w"}, priority=9),
            make.pod(
                "p", labels={"app": "w"}, spec={"topologySpreadConstraints": [make.spread(ZONE, labels={"app": "w"})]}
            ),
        ],
        [
            f"raise maxSkew of the topology spread constraint on {ZONE} from 1 to 2",
            "add a node like b, but without the taint gpu:NoSchedule",
            "tolerate gpu:NoSchedule",
            "raise the priority from 0 to 10, which evicts default/x from a",
        ],
        id="a skew raised as little as it can be",
    ),
    pytest.param(
        [
            make.node("a"),
            make.pod(
                "p", labels={"app": "w"}, spec={"topologySpreadConstraints": [make.spread(ZONE, labels={"app": "w"})]}
            ),
        ],
        [
            f"drop the topology spread constraint on {ZONE}",
        ],
        id="a constraint on a label that no node has",
    ),
    pytest.param(
        [make.node("a", cpu=1, taints=[make.taint("gpu")]), make.pod("p", cpu=2)],
        [
            "add a node like a, but with at least 2 cpu and without the taint gpu:NoSchedule",
            "tolerate gpu:NoSchedule and lower the cpu request from 2 to 1",
        ],
        id="two kinds together where none alone is enough",
    ),
    pytest.param(
        [
            make.node("a", pods=1, taints=[make.taint("gpu")]),
            make.pod("x", on="a", priority=1),
            make.pod("p", spec={"preemptionPolicy": "Never"}),
        ],
        [
            "add a node like a, but without the taint gpu:NoSchedule",
            "tolerate gpu:NoSchedule and free the place of a pod on a",
        ],
        id="freeing is part of a combination where requests do not help",
    ),
    pytest.param(
        [
            make.node("a", cpu=1, allocatable={"example.com/gpu": 1}),
            make.pod("x", on="a", requests={"example.com/gpu": 1}),
            make.pod("p", requests={"example.com/gpu": 1}),
        ],
        [
            "free 1 example.com/gpu on a, for example by moving default/x away",
            "add a node like a (1 cpu, 8Gi memory)",
            "raise the priority from 0 to 1, which evicts default/x from a",
            "do without example.com/gpu",
        ],
        id="a request that would be lowered to nothing is told last",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), CASES)
def test_the_smallest_changes_are_told_with_the_most_acceptable_first(
    objects: list[Manifest], expected: list[str]
) -> None:
    assert descriptions(objects) == expected


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([make.node("a"), make.pod("p")], id="it fits"),
        pytest.param([make.pod("p")], id="there are no nodes"),
        pytest.param([make.node("a"), make.pod("p", spec={"schedulingGates": [{"name": "g"}]})], id="it is gated"),
    ],
)
def test_nothing_is_told_where_no_change_is_needed_or_none_can_help(objects: list[Manifest]) -> None:
    assert descriptions(objects) == []


def test_the_smallest_node_that_would_do_is_copied() -> None:
    objects = [
        make.node("large", cpu=16, labels={"disk": "ssd"}),
        make.node("middle", cpu=8, labels={"disk": "ssd"}),
        make.node("other", cpu=8),
        make.node("small", cpu=2, labels={"disk": "ssd"}),
        *(make.pod(f"x{node}", on=node, cpu=cpu) for node, cpu in (("large", 15), ("middle", 7), ("other", 7))),
        make.pod("p", cpu=4, spec={"nodeSelector": {"disk": "ssd"}}),
    ]
    added = changes(objects)["add-node"]
    assert (added["like"], added["node"]) == ("middle", "new-node")
    assert added["manifest"]["metadata"]["labels"] == {HOSTNAME: "new-node", "disk": "ssd"}


def test_a_priority_class_that_suffices_is_named() -> None:
    priority_class = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    objects = [
        make.node("a", cpu=1),
        make.pod("x", on="a", cpu=1, priority=10),
        make.pod("p", cpu=1),
        priority_class | {"value": 1000},
        priority_class | {"metadata": {"name": "higher"}, "value": 2000},
    ]
    expected = "raise the priority from 0 to 11 (priorityClassName high has 1000), which evicts default/x from a"
    assert changes(objects)["raise-priority"]["description"] == expected


def test_a_pod_that_must_not_preempt_is_let() -> None:
    objects = [
        make.node("a", cpu=1),
        make.pod("x", on="a", cpu=1),
        make.pod("p", cpu=1, priority=5, spec={"preemptionPolicy": "Never"}),
    ]
    expected = "let it preempt (preemptionPolicy: PreemptLowerPriority), which evicts default/x from a"
    assert changes(objects)["raise-priority"]["description"] == expected


def test_a_change_says_what_to_do_as_a_patch() -> None:
    objects = [make.node("a", taints=[make.taint("gpu", "x")]), make.pod("p")]
    assert changes(objects)["tolerate"] == {
        "kind": "tolerate",
        "description": "tolerate gpu=x:NoSchedule",
        "node": "a",
        "cost": "takes room that is kept for others (0 pods there)",
        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
        "actions": [
            {
                "action": "patch",
                "kind": "Pod",
                "name": "default/p",
                "patch": [
                    {
                        "op": "add",
                        "path": "/spec/tolerations",
                        "value": [{"key": "gpu", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
                    }
                ],
            }
        ],
    }


def test_pods_that_would_come_back_are_not_moved_away() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    objects = [
        make.node("a", cpu=2),
        make.pod("agent", on="a", cpu=1, metadata={"ownerReferences": [owner]}),
        make.pod("x", on="a", cpu=1),
        make.pod("p", cpu=1),
    ]
    assert changes(objects)["free"]["pods"] == ["default/x"]
