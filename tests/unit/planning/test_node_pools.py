"""Karpenter's NodePools, NodeOverlays and NodeClaims: what may be bought, at which price, and which nodes there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import kubesched
from kubesched.cli.main import main
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Node
from kubesched.planning.catalogue import Option, price_text
from kubesched.planning.catalogue_files import catalogue_from
from kubesched.simulator.loading import load

Document = dict[str, Any]


def machines(**fields: Any) -> Document:
    shapes = [
        {
            "name": f"m{generation}.{size}",
            "capacity": {"cpu": cpus, "memory": f"{4 * cpus}Gi"},
            "labels": {"kubernetes.io/arch": "amd64"},
            "price": cpus * 0.1,
        }
        for generation in (5, 7)
        for size, cpus in (("large", 2), ("xlarge", 4))
    ]
    return {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": shapes, **fields}


def node_pool(name: str = "p", *requirements: Document, labels: Document | None = None, **spec: Any) -> Document:
    within = {"requirements": list(requirements), "nodeClassRef": {"group": "g", "kind": "K", "name": "n"}}
    within |= spec.pop("template", {})
    template = {"metadata": {"labels": labels or {}}, "spec": within}
    about = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}}
    return {**about, "spec": {"template": template, **spec}}


def overlay(name: str = "o", *requirements: Document, **spec: Any) -> Document:
    about = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name}}
    return {**about, "spec": {"requirements": list(requirements), **spec}}


def one_of(key: str, *values: str, operator: str = "In", **more: Any) -> Document:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **more}


def bought(*documents: Document) -> list[Option]:
    return list(catalogue_from([machines(), *documents], "c.yaml").options())


GENERATION = "karpenter.k8s.aws/instance-generation"


def test_a_pool_takes_the_machines_that_it_requires() -> None:
    taint = {"key": "t", "effect": "NoSchedule"}
    pool = node_pool(
        "p",
        one_of("karpenter.sh/capacity-type", "on-demand"),
        one_of(GENERATION, "6", operator="Gt"),
        one_of("topology.kubernetes.io/zone", "a", "b"),
        one_of("kubernetes.io/os", "linux"),
        labels={"team": "shop"},
        template={"taints": [taint], "startupTaints": [{"key": "s", "effect": "NoExecute"}]},
        limits={"cpu": 40, "nodes": 9},
        weight=3,
    )
    found = bought(pool)
    assert [one.name for one in found] == [
        "p/m7.large/a/on-demand",
        "p/m7.large/b/on-demand",
        "p/m7.xlarge/a/on-demand",
        "p/m7.xlarge/b/on-demand",
    ]
    first = found[0]
    assert (first.labels["team"], first.labels["karpenter.sh/nodepool"]) == ("shop", "p")
    assert [one.key for one in first.taints] == ["t"]
    assert (first.pool.most_nodes, first.pool.limits, first.pool.weight) == (9, {"cpu": "40"}, 3)


def test_heavier_pools_come_first() -> None:
    found = bought(node_pool("a", weight=1), node_pool("b", weight=50), node_pool("c"))
    assert list(dict.fromkeys(one.pool.name for one in found)) == ["b", "a", "c"]


def test_a_label_of_ones_own_is_given_to_the_nodes() -> None:
    found = bought(node_pool("p", one_of("example.com/team", "shop"), one_of("example.com/x", operator="Exists")))
    assert {one.labels.get("example.com/team") for one in found} == {"shop"}
    assert not any("example.com/x" in one.labels for one in found)


def test_where_it_may_have_several_values_each_can_be_bought() -> None:
    asked = one_of("example.com/team", "shop", "bank"), one_of("example.com/team", "bank", operator="NotIn")
    assert {one.labels["example.com/team"] for one in bought(node_pool("p", *asked))} == {"shop"}
    found = bought(node_pool("p", asked[0], limits={"nodes": 3}))
    assert {(one.pool.name, one.labels["example.com/team"]) for one in found} == {("p", "shop"), ("p", "bank")}
    assert len({one.name for one in found}) == len(found) == 8
    whole = catalogue_from([machines(), node_pool("p", asked[0])], "c.yaml")
    assert list(catalogue_from(json.loads(json.dumps(whole.to_dict()))).options()) == list(whole.options())


def test_an_overlay_picks_by_pool_and_labels() -> None:
    cheap = overlay("o", one_of("karpenter.sh/nodepool", "b"), one_of("team", "shop"), priceAdjustment="-50%")
    found = bought(node_pool("a"), node_pool("b", labels={"team": "shop"}), cheap)
    prices = {one.name: price_text(one.offer.price or 0) for one in found if one.shape.name == "m5.large"}
    assert prices == {"a/m5.large/on-demand": "0.2", "b/m5.large/on-demand": "0.1"}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            node_pool("p", one_of("a", "1", operator="Near")),
            "NodePool p: spec.template.spec.requirements[0].operator: one",
        ),
        (
            node_pool("p", one_of("node.kubernetes.io/gpu", "x")),
            "NodePool p: spec.template.spec.requirements[0].key: no machine of the catalogue has the label node.k",
        ),
        (
            node_pool("p", one_of("karpenter.sh/nodepool", "x")),
            "NodePool p: spec.template.spec.requirements[0].key: karpenter.sh/nodepool cannot be required",
        ),
        (
            node_pool("p", one_of(GENERATION, operator="Exists", minValues=3)),
            f"pool p: minValues: 3 values of {GENERATION} are expected, its machines have 2",
        ),
        (
            node_pool("p", *(one_of(f"example.com/{n}", *"abcde") for n in "xy")),
            "NodePool p: spec.template.spec.requirements: more than 16 combinations of labels",
        ),
        (node_pool("p", limits={"cpu": "many"}), "NodePool p: spec.limits.cpu: "),
        (node_pool("p", limits={"cpu": -1}), "NodePool p: spec.limits.cpu: -1 is negative"),
        (node_pool("p", weight=101), "NodePool p: spec.weight: 101 is not between 1 and 100"),
        (node_pool("p", replicas=-1), "NodePool p: spec.replicas: -1 is negative"),
        (
            node_pool("p", replicas=2, limits={"cpu": 1}),
            "NodePool p: spec.limits.cpu: a pool with replicas has no limit",
        ),
        (node_pool("p", replicas="2"), "NodePool p: spec.replicas: expected int"),
        (node_pool("p", labels={"a b": "c"}), "NodePool p: spec.template.metadata.labels.a b: "),
        (
            node_pool("p", template={"taints": [{"key": "t", "effect": "Never"}]}),
            "NodePool p: spec.template.spec.taints[0].effect: one of NoSchedule",
        ),
        (
            node_pool("p", disruption={"consolidateAfter": "soon"}),
            "NodePool p: spec.disruption.consolidateAfter: 'soon'",
        ),
        (
            node_pool("p", disruption={"consolidationPolicy": "x"}),
            "NodePool p: spec.disruption.consolidationPolicy: one",
        ),
        (
            node_pool("p", disruption={"budgets": [{"nodes": "101%"}]}),
            "NodePool p: spec.disruption.budgets[0].nodes: '101%' is neither",
        ),
        (
            node_pool("p", disruption={"budgets": [{"nodes": "1", "schedule": "@daily"}]}),
            "NodePool p: spec.disruption.budgets[0]: schedule and duration belong together",
        ),
        (
            node_pool("p", disruption={"budgets": [{"nodes": "1", "schedule": "0 25 * * *", "duration": "1h"}]}),
            'NodePool p: spec.disruption.budgets[0].schedule "0 25 * * *": ',
        ),
        (
            node_pool("p", disruption={"budgets": [{"nodes": "1", "schedule": "@daily", "duration": "90s"}]}),
            "NodePool p: spec.disruption.budgets[0].duration: '90s' is not",
        ),
        (
            node_pool("p", disruption={"budgets": [{"nodes": "1", "reasons": ["Old"]}]}),
            "NodePool p: spec.disruption.budgets[0].reasons: one of Underutilized, Empty, Drifted is expected, not Old",
        ),
        (overlay("o", price="1", priceAdjustment="+1"), "NodeOverlay o: spec.price: cannot be set together"),
        (overlay("o", priceAdjustment="10%"), "NodeOverlay o: spec.priceAdjustment: an amount such as +0.1"),
        (overlay("o", capacity={"memory": "1Gi"}), "NodeOverlay o: spec.capacity.memory: an overlay adds"),
        (overlay("o", weight=0), "NodeOverlay o: spec.weight: 0 is not between 1 and 10000"),
    ],
)
def test_what_is_wrong_is_told_with_file_object_and_field(document: Document, problem: str) -> None:
    with pytest.raises(KubeschedError) as caught:
        bought(document)
    expected = f"c.yaml: {problem}"
    assert str(caught.value)[: len(expected)] == expected


def test_pools_alone_are_no_catalogue() -> None:
    with pytest.raises(KubeschedError, match=r"c\.yaml: no machine in it; a NodePool belongs beside"):
        catalogue_from(node_pool(), "c.yaml")


_ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["-1", "10%", "In"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=4,
)
_WHOLE = (
    node_pool(
        "p",
        one_of(GENERATION, "4", operator="Gte", minValues=1),
        one_of("example.com/team", "shop", "bank"),
        labels={"x": "y"},
        limits={"cpu": 40, "nodes": 3},
        weight=3,
        template={"taints": [{"key": "t", "effect": "NoSchedule", "value": "v"}]},
        disruption={
            "consolidationPolicy": "Balanced",
            "consolidateAfter": "1h30m",
            "budgets": [{"nodes": "10%", "reasons": ["Empty"], "schedule": "0 9 * * mon-fri", "duration": "8h"}],
        },
    ),
    overlay("o", one_of("example.com/team", "shop"), priceAdjustment="+1%", capacity={"x.io/a": 1}, weight=2),
    overlay("q", price="0.5"),
    machines(
        reserve={"formula": "eks", "cpu": [{"upTo": 1, "percent": 6}, {"percent": 1}], "memory": "100Mi"},
        pools=[{"name": "own", "min": {"a": 1}, "limits": {"cpu": 5}, "requirements": [one_of("a", "b", minValues=1)]}],
        overlays=[{"name": "mine", "priceAdjustment": "-0.01", "weight": 3}],
    ),
)


@given(st.sampled_from(_WHOLE), st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_objects_are_read_or_told_about_in_a_line(whole: Document, data: st.DataObject) -> None:
    damaged: Any = json.loads(json.dumps(whole))
    inside = damaged
    while True:
        key = data.draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
        if not isinstance(inside[key], dict | list) or not inside[key] or data.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = data.draw(_ANYTHING)
    documents = [damaged] if whole.get("kind") == "Catalogue" else [machines(), damaged]
    try:
        found = catalogue_from(documents if len(documents) > 1 else damaged, "c.yaml")
        assert list(found.options()) is not None
        json.dumps(found.to_dict())
    except KubeschedError as problem:
        assert "\n" not in str(problem)


# -- nodes and claims --------------------------------------------------------------------------------------------------


def claim(name: str = "c", node_name: str = "", **fields: Any) -> Document:
    labels = {"karpenter.sh/nodepool": "p", "topology.kubernetes.io/zone": "a"}
    chosen = one_of("node.kubernetes.io/instance-type", "m5.large")
    about = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": labels, "annotations": {"kubesched.dev/price": "0.2"}},
        "spec": {"requirements": [chosen], "taints": [{"key": "t", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}, "nodeName": node_name},
    }
    return {**about, **fields}


def bare_node(name: str = "w", **labels: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}},
    }


def nodes_of(*documents: Document) -> list[Node]:
    objects = load(kubesched.load(list(documents)).found).objects
    return [item for item in objects if isinstance(item, Node)]


def test_a_claim_says_what_its_node_leaves_out() -> None:
    (node,) = nodes_of(bare_node("w", **{"topology.kubernetes.io/zone": "b"}), claim("c", "w"))
    assert node.labels["topology.kubernetes.io/zone"] == "b"
    assert node.labels["node.kubernetes.io/instance-type"] == "m5.large"
    assert node.labels["karpenter.sh/nodepool"] == "p"
    assert (node.metadata.annotations or {})["kubesched.dev/price"] == "0.2"
    assert not node.spec.taints


def test_a_claim_without_a_node_is_a_node_on_its_way() -> None:
    _, node = nodes_of(bare_node(), claim())
    assert (node.name, node.labels["kubernetes.io/hostname"]) == ("c", "c")
    assert [one.key for one in node.spec.taints or ()] == ["t"]
    unlaunched = claim("u", status={})
    leaving = claim("l")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert [one.name for one in nodes_of(bare_node(), unlaunched, leaving)] == ["w"]


def test_derive_takes_prices_of_claims(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(yaml.safe_dump_all([bare_node(), claim("c", "w")]))
    result = CliRunner().invoke(main, ["catalogue", "derive", "-f", str(path)])
    (shape,) = yaml.safe_load(result.stdout)["shapes"]
    assert (shape["name"], shape["offers"], result.stderr) == ("m5.large", [{"zone": "a", "price": "0.2"}], "")


# -- plans -------------------------------------------------------------------------------------------------------------


def pods(n: int, cpu: str = "1500m") -> list[Document]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    about = {"apiVersion": "v1", "kind": "Pod"}
    return [{**about, "metadata": {"name": f"p{i}"}, "spec": spec} for i in range(n)]


def planned(tmp_path: Path, cluster: list[Document], *arguments: str) -> tuple[int, Any, str]:
    given, catalogue = tmp_path / "cluster.yaml", tmp_path / "c.yaml"
    given.write_text(yaml.safe_dump_all(cluster))
    catalogue.write_text(yaml.safe_dump(machines()))
    asked = ["plan", "-f", str(given), "--catalogue", str(catalogue), "-o", "json", *arguments]
    result = CliRunner().invoke(main, asked)
    return result.exit_code, json.loads(result.stdout) if result.stdout else None, result.stderr


def test_a_plan_buys_for_the_pools_of_the_cluster(tmp_path: Path) -> None:
    code, report, err = planned(tmp_path, [bare_node(), node_pool("p", one_of(GENERATION, "7")), *pods(3)])
    assert (code, err) == (0, "")
    assert {one["pool"] for one in report["mix"]} == {"p"}
    assert all(one["shape"].startswith("m7.") for one in report["mix"])


def test_nodes_that_are_there_count_towards_the_limits_of_their_pool(tmp_path: Path) -> None:
    there = bare_node("w", **{"karpenter.sh/nodepool": "p"})
    limited = node_pool("p", limits={"cpu": "5"})
    assert planned(tmp_path, [there, limited, *pods(2)])[0] == 0
    assert planned(tmp_path, [there, limited, *pods(3)])[0] == 1


def test_a_static_pool_has_as_many_nodes_as_it_says(tmp_path: Path) -> None:
    there = bare_node("w", **{"karpenter.sh/nodepool": "p"})
    code, report, _ = planned(tmp_path, [there, node_pool("p", replicas=3), *pods(1)])
    assert (code, sum(one["count"] for one in report["mix"])) == (0, 2)
    assert planned(tmp_path, [there, node_pool("p", replicas=1), *pods(2)])[0] == 1


def test_a_damaged_pool_of_a_cluster_is_told_with_its_file(tmp_path: Path) -> None:
    code, _, err = planned(tmp_path, [bare_node(), node_pool("p", weight=1000), *pods(1)])
    problem = "NodePool p: spec.weight: 1000 is not between 1 and 100"
    assert (code, err) == (2, f"error: {tmp_path}/cluster.yaml: {problem}\n")


# -- requests for room -------------------------------------------------------------------------------------------------


def room(count: int, template: str = "t") -> list[Document]:
    (pod,) = pods(1)
    return [
        {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": {"name": "r", "namespace": "x"},
            "spec": {
                "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
                "podSets": [{"count": count, "podTemplateRef": {"name": template}}],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "t", "namespace": "x"},
            "template": {"metadata": {"labels": {"app": "r"}}, "spec": pod["spec"]},
        },
    ]


def test_a_plan_has_room_for_what_is_requested(tmp_path: Path) -> None:
    code, report, err = planned(tmp_path, [bare_node(), *room(3)])
    assert (code, err, sum(one["count"] for one in report["mix"])) == (0, "", 1)


def test_a_request_whose_pods_are_there_asks_for_nothing_more(tmp_path: Path) -> None:
    (pod,) = pods(1)
    pod["metadata"] |= {"namespace": "x", "annotations": {"autoscaling.x-k8s.io/consume-provisioning-request": "r"}}
    code, report, _ = planned(tmp_path, [bare_node(), *room(3), pod])
    assert (code, report["mix"]) == (0, [])


def test_capacity_says_how_often_a_request_fits(tmp_path: Path) -> None:
    cluster, app = tmp_path / "cluster.yaml", tmp_path / "app.yaml"
    cluster.write_text(yaml.safe_dump_all([bare_node(f"n{i}") for i in range(7)]))
    app.write_text(yaml.safe_dump_all(room(3)))
    result = CliRunner().invoke(main, ["capacity", "-f", str(cluster), "--app", str(app), "-o", "json"])
    assert (result.exit_code, json.loads(result.stdout)["capacity"][0]["fits"]) == (0, 2)


def test_a_request_for_pods_of_no_template_is_told(tmp_path: Path) -> None:
    code, _, err = planned(tmp_path, [bare_node(), *room(3, "other")])
    expected = "ProvisioningRequest x/r: spec.podSets[0].podTemplateRef.name: there is no PodTemplate x/other beside it"
    assert (code, err) == (2, f"error: {tmp_path}/cluster.yaml: {expected}\n")
