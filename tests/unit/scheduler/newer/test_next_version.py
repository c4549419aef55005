"""v1.37 decides as today but for what its source says; without `emulate` nothing of that is seen."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import kubesched
from kubesched.scheduler.config import default, load
from kubesched.scheduler.config.feature_gates import GANG_SCHEDULING, GENERIC_WORKLOAD, WORKLOAD_AWARE_PREEMPTION
from kubesched.scheduler.newer.version import configuration_as_emulated, registry_as_emulated
from kubesched.scheduler.plugins.registry import REGISTRY, capabilities

NEXT = "1.37"
GIB = 2**30
Body = dict[str, Any]


def _node(name: str, cpu: str = "4", **labels: str) -> Body:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    status = {"allocatable": amounts, "capacity": amounts, "images": [{"names": ["i:1"], "sizeBytes": GIB}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def _pod(name: str, cpu: str = "1", labels: Body | None = None, **spec: Any) -> Body:
    container = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "labels": labels or {}, "uid": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def _decision(objects: list[Body], name: str = "new", emulate: str | None = NEXT) -> Body:
    found: Body = kubesched.explain(objects, name, emulate=emulate).to_dict()
    return found


@pytest.mark.parametrize(
    ("emulate", "message"),
    [
        pytest.param(
            None,
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are "
            "available: 1 No preemption victims found for incoming pod.",
            id="today",
        ),
        pytest.param(
            NEXT,
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims "
            "found for incoming pod.",
            id="v1.37",
        ),
    ],
)
def test_nothing_is_said_of_claims_where_there_are_none(emulate: str | None, message: str) -> None:
    assert _decision([_node("a"), _pod("new", "9")], emulate=emulate)["message"].startswith("0/1 nodes are available")
    taken = [_node("a"), _pod("old", "4", nodeName="a"), _pod("new", "4")]
    assert _decision(taken, emulate=emulate)["message"] == message


def test_who_preempts_says_where_and_how_many() -> None:
    objects = [_node("a"), _pod("old", "4", nodeName="a"), _pod("new", "4", priority=7)]
    assert _decision(objects)["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for pod on node a, "
        "preempting 1 victims"
    )
    assert _decision(objects, emulate=None)["message"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_that_names_its_node_is_tried_nowhere_else() -> None:
    config = configuration_as_emulated(replace(default(), emulate=NEXT))
    registry = registry_as_emulated(REGISTRY, config)
    assert "preFilter" in capabilities(registry)["NodeName"]
    assert "preFilter" not in capabilities(registry_as_emulated(REGISTRY, default()))["NodeName"]
    order = [plugin.name for plugin in config.profiles[0].plugins.multi_point.enabled]
    assert order.index("NodeName") + 1 == order.index("NodeUnschedulable")


def test_an_order_that_somebody_chose_stays() -> None:
    enabled = [{"name": "NodeName"}, {"name": "TaintToleration"}, {"name": "NodeUnschedulable"}]
    plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [*enabled, {"name": "PrioritySort"}]}}
    plugins["multiPoint"]["enabled"].append({"name": "DefaultBinder"})
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = load({**head, "profiles": [{"schedulerName": "own", "plugins": plugins}], "emulate": NEXT}, "test")
    assert configuration_as_emulated(config).profiles == config.profiles


def test_gangs_and_their_preemption_are_part_of_groups() -> None:
    config = replace(default(), emulate=NEXT, feature_gates={GENERIC_WORKLOAD: True})
    gates = configuration_as_emulated(config).gates
    assert gates[GANG_SCHEDULING]
    assert gates[WORKLOAD_AWARE_PREEMPTION]


@pytest.mark.parametrize(("emulate", "score"), [(None, 100), (NEXT, 50)])
def test_images_of_volumes_count_among_images(emulate: str | None, score: int) -> None:
    """A container and a volume of 1 GiB each, on one of two nodes: 1 GiB, of at most 1,000 MiB or twice that."""
    volumes = [{"name": "data", "image": {"reference": "i:1"}}]
    halves = [_node("a"), {**_node("b"), "status": {**_node("b")["status"], "images": []}}]
    found = _decision([*halves, _pod("new", volumes=volumes)], emulate=emulate)
    assert found["nodes"]["a"]["scores"]["ImageLocality"] == score


_NS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": name}}}
    for name in ("default", "other")
]


@pytest.mark.parametrize(("emulate", "fits"), [(None, False), (NEXT, True)])
def test_a_namespace_selector_that_excludes_some_matches_the_others_only(emulate: str | None, fits: bool) -> None:
    """A pod in a namespace that the selector does not match: v1.34 to v1.36 count it, since the selector would match a
    namespace without labels."""
    selector = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["other"]}]}
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "namespaceSelector": selector, "topologyKey": "host"}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    there = _pod("there", labels={"app": "x"}, nodeName="a")
    there["metadata"]["namespace"] = "other"
    found = _decision([*_NS, _node("a", host="a"), there, _pod("new", affinity=away)], emulate=emulate)
    assert bool(found["nodes"]["a"].get("fit")) is fits


def _budget(name: str, allowed: int, **labels: str) -> Body:
    spec = {"selector": {"matchLabels": labels}}
    metadata = {"name": name, "namespace": "default"}
    status = {"disruptionsAllowed": allowed}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


@pytest.mark.parametrize(("emulate", "node"), [(None, "b"), (NEXT, "a")])
def test_a_victim_is_taken_off_budgets_up_to_the_first_that_is_broken(emulate: str | None, node: str) -> None:
    """On a, the first victim breaks its first budget: only today the second one has nothing left for the other."""
    both, second = {"one": "1", "two": "2"}, {"two": "2"}
    objects = [
        _node("a", "2"),
        _node("b", "2"),
        _budget("first", 0, one="1"),
        _budget("second", 1, two="2"),
        _pod("v1", labels=both, nodeName="a", priority=2),
        _pod("v2", labels=second, nodeName="a", priority=1),
        _pod("v3", labels={"one": "1"}, nodeName="b", priority=1),
        _pod("v4", labels={}, nodeName="b", priority=3),
        _pod("new", "2", priority=9),
    ]
    assert _decision(objects, emulate=emulate)["preemption"]["node"] == node


def _storage(**capacity: str) -> list[Body]:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "d"}}
    class_ = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    rooms = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": name, "namespace": "default"},
            "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {"host": name}},
            "capacity": amount,
        }
        for name, amount in capacity.items()
    ]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "50Gi"}},
        },
        "status": {"phase": "Pending"},
    }
    waits = {"provisioner": "d", "volumeBindingMode": "WaitForFirstConsumer"}
    return [{**driver, "spec": {"storageCapacity": True}}, {**class_, **waits}, *rooms, claim]


_DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def test_nodes_with_more_storage_left_are_better() -> None:
    nodes = [_node("a", host="a"), _node("b", host="b"), _node("c", host="c")]
    objects = [*nodes, *_storage(a="100Gi", b="200Gi", c="50Gi"), _pod("new", volumes=_DATA)]
    found = _decision(objects)["nodes"]
    assert {name: node["scores"].get("VolumeBinding") for name, node in found.items()} == {"a": 50, "b": 75, "c": 0}
    assert _decision(objects)["best"] == ["b"]
    today = _decision(objects, emulate=None)["nodes"]
    assert {node["scores"].get("VolumeBinding", 0) for node in today.values()} == {0}


def test_a_driver_that_says_nothing_of_its_capacity_scores_no_node() -> None:
    objects = [_node("a", host="a"), *_storage(), _pod("new", volumes=_DATA)]
    objects[1]["spec"] = {}
    assert _decision(objects)["nodes"]["a"]["scores"].get("VolumeBinding", 0) == 0


@pytest.mark.parametrize(
    ("asks", "emulate", "fits"), [(True, NEXT, ["b"]), (False, NEXT, ["a", "b"]), (True, None, ["a", "b"])]
)
def test_a_driver_may_keep_pods_from_nodes_without_it(asks: bool, emulate: str | None, fits: list[str]) -> None:
    there = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "b"}}
    there["spec"] = {"drivers": [{"name": "d", "nodeID": "b"}]}
    objects = [_node("a", host="a"), _node("b", host="b"), there, *_storage(), _pod("new", volumes=_DATA)]
    driver = next(one for one in objects if one["kind"] == "CSIDriver")
    driver["spec"] = {"preventPodSchedulingIfMissing": asks}
    found = _decision(objects, emulate=emulate)
    assert [name for name, node in sorted(found["nodes"].items()) if node.get("fit")] == fits
    if fits == ["b"]:
        assert found["nodes"]["a"]["reasons"] == ["d CSI driver is not installed on the node"]


def test_a_simulation_and_versions_written_in_full() -> None:
    objects = [_node("a"), _pod("old", "4", nodeName="a"), _pod("new", "4", priority=7)]
    report = kubesched.simulate(objects, emulate="v1.37.0")
    assert {row.name: row.node for row in report.pods.named() if row.node} == {"old": "a", "new": "a"}
    with pytest.raises(kubesched.ConfigError, match=r"1\.36-alpha, 1\.37"):
        kubesched.simulate(objects, emulate="1.99")
