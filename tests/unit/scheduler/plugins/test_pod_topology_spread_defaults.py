"""PodTopologySpread: the constraints of pods that have none, and the pods these are spread among."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from crowds import HOST, ZONE, Crowd, Json, bare_node, node, pod, rejections, scores

from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController, Service, TopologySpreadConstraint
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.config import PodTopologySpreadArgs
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.constraints import default_selector

WEB = {"app": "web"}
LABELS = {"app": "web", "tier": "front", "hash": "1"}


def made(kind: type[Any], name: str, selector: Json | None, namespace: str = "default") -> Any:
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}, kind)


def service(name: str, selector: Json | None, namespace: str = "default") -> Service:
    found: Service = made(Service, name, selector, namespace)
    return found


def owned_by(api_version: str, kind: str, *, controller: bool = True) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": "owner", "controller": controller}


BY_REPLICA_SET = owned_by("apps/v1", "ReplicaSet")
TIER = {"matchLabels": {"tier": "front"}}
HASH = {"matchExpressions": [{"key": "hash", "operator": "In", "values": ["1", "2"]}]}
BROKEN = {"matchExpressions": [{"key": "hash", "operator": "Like"}]}


@pytest.mark.parametrize(
    ("objects", "owner", "expected"),
    [
        pytest.param([], None, "", id="neither service nor owner"),
        pytest.param([service("s", WEB)], None, "app=web", id="a service that selects the pod"),
        pytest.param([service("s", {"app": "db"})], None, "", id="a service that selects others"),
        pytest.param([service("s", {**WEB, "x": "y"})], None, "", id="a service that asks for a label it lacks"),
        pytest.param([service("s", WEB, "other")], None, "", id="a service of another namespace"),
        pytest.param([service("s", None)], None, "", id="a service without a selector"),
        pytest.param(
            [service("s", WEB), service("t", {"tier": "front"})], None, "app=web,tier=front", id="services are joined"
        ),
        pytest.param([made(ReplicaSet, "owner", TIER)], BY_REPLICA_SET, "tier=front", id="a replica set"),
        pytest.param(
            [made(ReplicaSet, "owner", HASH), service("s", WEB)],
            BY_REPLICA_SET,
            "app=web,hash in (1,2)",
            id="a replica set with expressions, and a service",
        ),
        pytest.param(
            [made(ReplicaSet, "owner", BROKEN), service("s", WEB)],
            BY_REPLICA_SET,
            "app=web",
            id="a replica set whose selector nobody understands",
        ),
        pytest.param([made(ReplicaSet, "owner", None)], BY_REPLICA_SET, "", id="a replica set without a selector"),
        pytest.param([made(ReplicaSet, "owner", TIER, "other")], BY_REPLICA_SET, "", id="one of another namespace"),
        pytest.param(
            [made(ReplicaSet, "owner", TIER)],
            owned_by("apps/v1", "ReplicaSet", controller=False),
            "",
            id="an owner that does not control the pod",
        ),
        pytest.param(
            [made(ReplicaSet, "owner", TIER)],
            owned_by("extensions/v1beta1", "ReplicaSet"),
            "",
            id="an API that is no longer known",
        ),
        pytest.param([], BY_REPLICA_SET, "", id="an owner that is gone"),
        pytest.param(
            [made(StatefulSet, "owner", TIER)], owned_by("apps/v1", "StatefulSet"), "tier=front", id="a stateful set"
        ),
        pytest.param(
            [made(ReplicationController, "owner", WEB), service("s", {"tier": "front"})],
            owned_by("v1", "ReplicationController"),
            "app=web,tier=front",
            id="a replication controller, and a service",
        ),
        pytest.param(
            [service("s", WEB)],
            owned_by("v1", "ReplicationController"),
            "app=web",
            id="a replication controller that is gone",
        ),
        pytest.param([service("s", WEB)], owned_by("batch/v1", "Job"), "app=web", id="a controller of another kind"),
    ],
)
def test_the_selector_is_that_of_the_pods_services_and_controller(
    objects: list[KubeObject], owner: Json | None, expected: str
) -> None:
    crowd = Crowd(*objects)
    assert str(default_selector(pod(labels=LABELS, owner=owner), crowd.objects)) == expected


def web(n: int, on: str) -> list[Pod]:
    return [pod(f"web-{on}-{i}", labels=WEB, on=on) for i in range(n)]


def args(*constraints: Json) -> PodTopologySpreadArgs:
    given = tuple(msgspec.convert(constraint, TopologySpreadConstraint) for constraint in constraints)
    return PodTopologySpreadArgs(default_constraints=given, defaulting_type="List")


ZONES = (node("a1", "a"), node("a2", "a"), node("b1", "b"))
SERVICE = service("s", WEB)
INCOMING = pod(labels=WEB)
SKEWED = "Unschedulable: node(s) didn't match pod topology spread constraints"
HARD_ZONE = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
SOFT_ZONE = {**HARD_ZONE, "whenUnsatisfiable": "ScheduleAnyway"}


def test_the_built_in_constraints_spread_over_hosts_and_zones() -> None:
    crowd = Crowd(*ZONES, SERVICE, *web(2, "a1"))
    found = scores(PodTopologySpread(PodTopologySpreadArgs(), crowd), crowd, INCOMING)
    by_host, by_zone = math.log(3 + 2), math.log(2 + 2)
    raw = {"a1": 2 * by_host + 2 + 2 * by_zone + 4, "a2": 2 + 2 * by_zone + 4, "b1": 2 + 4}
    assert found is not None
    assert {name: score[0] for name, score in found.items()} == {name: round(score) for name, score in raw.items()}


def test_the_built_in_constraints_reject_no_node() -> None:
    crowd = Crowd(*ZONES, SERVICE, *web(9, "a1"))
    assert rejections(PodTopologySpread(PodTopologySpreadArgs(), crowd), crowd, INCOMING) is None


@pytest.mark.parametrize(
    ("zone_of_third", "n_zones"),
    [
        pytest.param("b", 3, id="no label is a domain of its own"),
        pytest.param("", 2, id="no label is the same domain as an empty one"),
    ],
)
def test_the_built_in_constraints_score_nodes_without_a_zone(zone_of_third: str, n_zones: int) -> None:
    nodes = (node("a1", "a"), bare_node("none", **{HOST: "none"}), node("c1", zone_of_third))
    crowd = Crowd(*nodes, SERVICE, *web(1, "a1"), *web(2, "none"))
    found = scores(PodTopologySpread(PodTopologySpreadArgs(), crowd), crowd, INCOMING)
    by_host, by_zone = math.log(3 + 2), math.log(n_zones + 2)
    around_c1 = 2 if zone_of_third == "" else 0
    raw = {"a1": by_host + 2 + by_zone + 4, "none": 2 * by_host + 2, "c1": 2 + around_c1 * by_zone + 4}
    assert found is not None
    assert {name: score[0] for name, score in found.items()} == {name: round(score) for name, score in raw.items()}


def test_default_constraints_of_a_list_can_be_hard() -> None:
    crowd = Crowd(*ZONES, SERVICE, *web(1, "a1"))
    plugin = PodTopologySpread(args(HARD_ZONE), crowd)
    assert rejections(plugin, crowd, INCOMING) == {"a1": SKEWED, "a2": SKEWED}
    assert scores(plugin, crowd, INCOMING) is None


def test_default_constraints_of_a_list_score_only_nodes_with_all_labels() -> None:
    crowd = Crowd(*ZONES, bare_node("none"), SERVICE, *web(2, "a1"))
    found = scores(PodTopologySpread(args(SOFT_ZONE), crowd), crowd, INCOMING)
    assert found == {"a1": (3, 0), "a2": (3, 0), "b1": (0, 100), "none": (0, 0)}


@pytest.mark.parametrize(
    "incoming",
    [
        pytest.param(pod(labels=WEB, topologySpreadConstraints=[HARD_ZONE]), id="a pod with constraints of its own"),
        pytest.param(pod(labels={"app": "db"}), id="a pod that nothing selects"),
    ],
)
def test_default_constraints_are_for_other_pods(incoming: Pod) -> None:
    crowd = Crowd(*ZONES, SERVICE, *web(2, "a1"))
    assert scores(PodTopologySpread(PodTopologySpreadArgs(), crowd), crowd, incoming) is None
