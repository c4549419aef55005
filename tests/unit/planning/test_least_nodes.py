"""Nodes that a pool must have stay, as with Cluster Autoscaler's least size of a node group: consolidated, and in a
run."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.testing import make

Manifest = dict[str, Any]
TYPE, POOL = "node.kubernetes.io/instance-type", "karpenter.sh/nodepool"


def catalogue(least: Any) -> Manifest:
    offers = [{"zone": zone, "price": 0.1} for zone in "ab"]
    machine = {"name": "small", "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"}, "offers": offers}
    about = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": [machine]}
    return {**about, "pools": [{"name": "p", "min": least}, {"name": "q"}]}


def nodes(n: int, *, of: str = "p") -> list[Manifest]:
    """In zones a and b in turn."""
    labels = {POOL: of, TYPE: "small"}
    return [make.node(f"{of}{k}", cpu="2", labels={**labels, make.ZONE: "ab"[k % 2]}) for k in range(n)]


@pytest.mark.parametrize("policy", ["best", "karpenter", "cluster-autoscaler"])
@pytest.mark.parametrize(
    ("least", "n_left", "zones"),
    [
        pytest.param(0, 0, 0, id="none"),
        pytest.param(3, 3, 2, id="three"),
        pytest.param(9, 5, 2, id="more than there are"),
        pytest.param({"a": 1}, 1, 1, id="one in a zone"),
        pytest.param({"a": 1, "b": 2}, 3, 2, id="some in each zone"),
    ],
)
def test_as_many_nodes_stay_as_the_pool_must_have(policy: str, least: Any, n_left: int, zones: int) -> None:
    given = [*nodes(5), *nodes(2, of="q")]
    report = kubesched.consolidate(given, catalogue(least), policy=policy, replaces=False)
    left = {item["metadata"]["name"] for item in given} - set(report.removed)
    assert len(left) == n_left
    assert len({"ab"[int(name[1:]) % 2] for name in left}) == zones
    reasons = {one.node: one.reason.identifier for one in report.kept}
    assert reasons == dict.fromkeys(left, "NodeGroupMinSizeReached")


def test_a_node_may_be_exchanged_for_another_of_its_pool() -> None:
    large = {"name": "large", "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}, "price": 0.9}
    given = catalogue(1)
    given["shapes"].append(large)
    node = make.node("p0", cpu="8", labels={POOL: "p", TYPE: "large", make.ZONE: "a"})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "o", "controller": True}
    owned = make.pod("x", on="p0", cpu="1", metadata={"ownerReferences": [owner]})
    exchanged = kubesched.consolidate([node, owned], given, policy="karpenter")
    assert [[one.option.pool.name for one in step.launch] for step in exchanged.steps] == [["p"]]


@pytest.mark.parametrize("policy", ["karpenter", "cluster-autoscaler"])
def test_an_autoscaler_leaves_as_many(policy: str) -> None:
    template: Manifest = {
        "metadata": {"annotations": {"kubesched.dev/duration": "10m"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]},
    }
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1500m"}}
    about = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    job = {**about, "spec": {"completions": 5, "parallelism": 5, "template": template}}
    autoscaler = kubesched.autoscaler(policy, catalogue({"a": 1, "b": 1}))
    report = kubesched.simulate([job], autoscaler=autoscaler, tie_break="name")
    assert report.autoscaling is not None
    assert report.autoscaling.nodes_at_end == 2
