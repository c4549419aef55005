"""What each version decided and said, on clusters small enough to reckon by hand."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.older.config import EMULATED_VERSIONS
from kubesched.scheduler.config import ConfigError
from kubesched.testing import make

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
POLICY = {"apiVersion": "v1", "kind": "Policy"}


def asked(version: str, *objects: dict[str, Any], **how: Any) -> dict[str, Any]:
    found: dict[str, Any] = kubesched.explain(objects, "default/new", emulate=version, **how).to_dict()
    return found


def only(*priorities: dict[str, Any], **policy: Any) -> dict[str, Any]:
    """A Policy that filters by what is mandatory alone, and scores by these priorities."""
    return {**POLICY, "predicates": [], "priorities": list(priorities), **policy}


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("1.14", "node(s) had taints that the pod didn't tolerate"),
        ("1.17", "node(s) had taints that the pod didn't tolerate"),
        ("1.18", "node(s) had taint {gpu: }, that the pod didn't tolerate"),
        ("1.19", "node(s) had taint {gpu: }, that the pod didn't tolerate"),
    ],
)
def test_the_words_about_taints(version: str, reason: str) -> None:
    answer = asked(version, make.node("a", taints=[make.taint("gpu")]), make.pod("new"))
    assert answer["message"] == f"0/1 nodes are available: 1 {reason}."
    assert answer["nodes"]["a"]["code"] == "UnschedulableAndUnresolvable"


@pytest.mark.parametrize(
    ("version", "plugin", "reasons"),
    [
        ("1.14", "GeneralPredicates", ["Insufficient cpu", "Insufficient pods", "node(s) didn't match node selector"]),
        ("1.17", "NodeResourcesFit", ["Insufficient pods"]),
        ("1.18", "NodeResourcesFit", ["Insufficient cpu", "Too many pods"]),
        ("1.19", "NodeResourcesFit", ["Insufficient cpu", "Too many pods"]),
    ],
)
def test_how_many_reasons_a_node_is_told(version: str, plugin: str, reasons: list[str]) -> None:
    pod = make.pod("new", cpu="8", spec={"nodeSelector": {"disk": "ssd"}})
    node = asked(version, make.node("a", cpu="4", pods=0), pod)["nodes"]["a"]
    assert (node["plugin"], node["reasons"]) == (plugin, reasons)


@pytest.mark.parametrize("version", ["1.14", "1.18", "1.19"])
def test_all_predicates_are_told_if_all_are_checked(version: str) -> None:
    policy = {**POLICY, "alwaysCheckAllPredicates": True, "priorities": []}
    node = make.node("a", cpu="1", taints=[make.taint("gpu")])
    found = asked(version, node, make.pod("new", cpu="2"), policy=policy)["nodes"]["a"]
    assert [entry["code"] for entry in found["plugins"]] == ["Unschedulable", "UnschedulableAndUnresolvable"]
    assert found["code"] == "UnschedulableAndUnresolvable"


@pytest.mark.parametrize(("version", "expected"), [("1.14", (5, 5)), ("1.17", (50, 50)), ("1.19", (50, 50))])
def test_least_and_most_requested(version: str, expected: tuple[int, int]) -> None:
    node, pod = make.node("a", cpu="4", memory="4Gi"), make.pod("new", cpu="2", memory="2Gi")
    found = []
    for priority in ("LeastRequestedPriority", "MostRequestedPriority"):
        answer = asked(version, node, pod, policy=only({"name": priority, "weight": 1}))
        found.append(answer["nodes"]["a"]["total"])
    assert tuple(found) == expected


@pytest.mark.parametrize(("version", "expected"), [("1.18", 0), ("1.19", 100)])
def test_an_overfull_node_by_most_requested(version: str, expected: int) -> None:
    node = make.node("a", cpu="50m", memory="10Mi")
    answer = asked(version, node, make.pod("new"), policy=only({"name": "MostRequestedPriority", "weight": 1}))
    assert answer["nodes"]["a"]["total"] == expected


def test_init_containers_count_on_nodes_from_1_17_on() -> None:
    heavy = {"name": "init", "resources": {"requests": {"cpu": "3"}}}
    objects = (
        make.node("a", cpu="4"),
        make.pod("old", on="a", cpu="1", spec={"initContainers": [heavy]}),
        make.pod("new", cpu="2"),
    )
    assert asked("1.14", *objects)["nodes"]["a"]["fit"]
    assert not asked("1.17", *objects)["nodes"]["a"]["fit"]


@pytest.mark.parametrize(
    ("version", "expected"), [("1.14", {"a": 6, "b": 5, "c": 0}), ("1.19", {"a": 66, "b": 50, "c": 0})]
)
def test_pods_of_a_service_are_spread_over_nodes_and_zones(version: str, expected: dict[str, int]) -> None:
    """Zone x has one of three pods, y has two; node a none, b one, c two: two thirds by zone, one by node."""
    nodes = [make.node(name, labels={BETA_ZONE: zone}) for name, zone in (("a", "x"), ("b", "x"), ("c", "y"))]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }
    labels = {"app": "web"}
    pods = [make.pod(f"old-{n}", on=node, labels=labels) for n, node in enumerate("bcc")]
    priority = {"name": "SelectorSpreadPriority", "weight": 1}
    answer = asked(version, *nodes, service, *pods, make.pod("new", labels=labels), policy=only(priority))
    assert {name: node["total"] for name, node in answer["nodes"].items()} == expected


@pytest.mark.parametrize(("version", "top"), [("1.14", 10), ("1.17", 100)])
def test_nodes_may_ask_to_be_avoided(version: str, top: int) -> None:
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "u", "apiVersion": "apps/v1", "controller": True}
    avoided = make.node("a")
    signature = '{"preferAvoidPods":[{"podSignature":{"podController":{"kind":"ReplicaSet","uid":"u"}}}]}'
    avoided["metadata"]["annotations"] = {"scheduler.alpha.kubernetes.io/preferAvoidPods": signature}
    pod = make.pod("new", metadata={"ownerReferences": [owner]})
    priority = {"name": "NodePreferAvoidPodsPriority", "weight": 1}
    answer = asked(version, avoided, make.node("b"), pod, policy=only(priority))
    assert {name: node["total"] for name, node in answer["nodes"].items()} == {"a": 0, "b": top}


@pytest.mark.parametrize(("version", "expected"), [("1.14", [0, 10]), ("1.19", [0, 100])])
def test_label_preferences(version: str, expected: list[int]) -> None:
    nodes = (make.node("a"), make.node("b", labels={"disk": "ssd"}))
    preference = {"labelPreference": {"label": "disk", "presence": True}}
    answer = asked(version, *nodes, make.pod("new"), policy=only({"name": "disk", "weight": 1, "argument": preference}))
    assert [answer["nodes"][name]["total"] for name in "ab"] == expected


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_without_priorities_every_node_has_one_point(version: str) -> None:
    answer = asked(version, make.node("a"), make.node("b"), make.pod("new"), policy=only())
    assert answer["nodes"] == {"a": {"fit": True, "total": 1}, "b": {"fit": True, "total": 1}}
    assert answer["best"] == ["a", "b"]


@pytest.mark.parametrize(
    ("version", "fits"),
    [pytest.param("1.18", True, id="even without the label until 1.18"), pytest.param("1.19", False, id="not in 1.19")],
)
def test_the_first_pod_of_a_group_may_go_anywhere(version: str, fits: bool) -> None:
    term = make.affinity_term("rack", {"app": "web"})
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = make.pod("new", labels={"app": "web"}, spec={"affinity": affinity})
    assert asked(version, make.node("a"), pod)["nodes"]["a"]["fit"] is fits


def test_inter_pod_affinity_gives_two_reasons_but_in_1_17_one() -> None:
    term = make.affinity_term("kubernetes.io/hostname", {"app": "db"})
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    objects = (make.node("a"), make.pod("new", spec={"affinity": affinity}))
    both = ["node(s) didn't match pod affinity rules", "node(s) didn't match pod affinity/anti-affinity"]
    assert asked("1.18", *objects)["nodes"]["a"]["reasons"] == both
    assert asked("1.17", *objects)["nodes"]["a"]["reasons"] == both[:1]


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_a_missing_claim_ends_the_cycle(version: str) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}
    answer = asked(version, make.node("a"), make.pod("new", spec={"volumes": [volume]}))
    assert (answer["error"], answer["nodes"]) == (True, {})
    assert answer["message"] == 'persistentvolumeclaim "gone" not found'


@pytest.mark.parametrize(("kind", "limit"), [("awsElasticBlockStore", 39), ("gcePersistentDisk", 16)])
def test_a_node_holds_so_many_disks(kind: str, limit: int) -> None:
    field = "volumeID" if kind == "awsElasticBlockStore" else "pdName"
    volumes = [{"name": f"v{n}", kind: {field: f"d{n}"}} for n in range(limit)]
    one_more = [{"name": "v", kind: {field: "other"}}]
    objects = (make.node("a"), make.pod("old", on="a", spec={"volumes": volumes}))
    full = asked("1.19", *objects, make.pod("new", spec={"volumes": one_more}))["nodes"]["a"]
    assert full["reasons"] == ["node(s) exceed max volume count"]
    known = asked("1.14", make.node("a"), make.pod("new", spec={"volumes": volumes}))["nodes"]["a"]
    assert known["fit"]


def test_a_refused_policy_is_explained_as_that() -> None:
    policy = {**POLICY, "priorities": [{"name": "LeastRequestedPriority", "weight": 0}]}
    explanation = kubesched.explain([make.node("a"), make.pod("new")], "default/new", policy=policy, emulate="1.19")
    assert explanation.to_dict()["configError"].startswith("couldn't create scheduler from policy")
    assert "couldn't create scheduler from policy" in str(explanation)


def test_emulating_the_present_is_deciding_as_today() -> None:
    objects = [make.node("a"), make.pod("new")]
    assert kubesched.explain(objects, "default/new", emulate="1.36").to_dict() == (
        kubesched.explain(objects, "default/new").to_dict()
    )


def test_an_unknown_version_cannot_be_emulated() -> None:
    with pytest.raises(ConfigError, match=r'version "1\.2" is not known'):
        kubesched.explain([make.node("a"), make.pod("new")], "default/new", emulate="1.2")
