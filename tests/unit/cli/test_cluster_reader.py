"""Reading a whole cluster: page by page, in the versions the server has, by GET alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from harness.scripted_server import ScriptedServer
from harness.scripted_server.routing import ServedKind
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.dumped_kinds import ALL_RESOURCES, AUTOSCALING_RESOURCES
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.manifests import CLUSTER_KINDS
from kubesched.live.cluster_reader import ClusterReader, ClusterReadError, ClusterReading
from kubesched.simulator.loading import LOADED_KINDS
from kubesched.testing import make


def read(server: ScriptedServer, page_size: int = 500) -> ClusterReading:
    async def scenario() -> ClusterReading:
        async with server:
            client = RestClient(ServerTarget(url=server.url), qps=0)
            try:
                return await ClusterReader(client, "test", page_size=page_size).read()
            finally:
                await client.close()

    return asyncio.run(scenario())


def keys(reading: ClusterReading, kind: str) -> list[str]:
    return [item.key for item in reading.objects if type(item).__name__ == kind]


def test_every_kind_that_can_be_read_from_files_is_read_from_servers() -> None:
    assert {(known.group, known.type.__name__) for known in ALL_RESOURCES} == set(CLUSTER_KINDS)


def test_the_role_of_the_guide_is_just_enough() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "live-cluster.md").read_text()
    role = yaml.safe_load(guide.partition("```yaml\n")[2].partition("```")[0])
    granted = [(rule["apiGroups"][0], resource) for rule in role["rules"] for resource in rule["resources"]]
    assert sorted(granted) == sorted((known.group, known.plural) for known in ALL_RESOURCES)
    assert all(rule["verbs"] == ["list"] for rule in role["rules"])
    further = yaml.safe_load(guide.split("```yaml\n")[2].partition("```")[0])
    granted = [(rule["apiGroups"][0], resource) for rule in further for resource in rule["resources"]]
    assert sorted(granted) == sorted((known.group, known.plural) for known in AUTOSCALING_RESOURCES)


def test_a_long_list_is_read_in_pages() -> None:
    server = ScriptedServer()
    for number in range(7):
        server.put(make.node(f"n{number}"))
    assert keys(read(server, page_size=3), "Node") == [f"n{number}" for number in range(7)]
    asked = server.asked("list", "/nodes")
    assert [request.query.get("limit") for request in asked] == ["3", "3", "3"]
    assert ["continue" in request.query for request in asked] == [False, True, True]


def test_a_list_that_cannot_be_continued_is_read_anew_as_a_whole() -> None:
    server = ScriptedServer()
    for number in range(7):
        server.put(make.node(f"n{number}"))
    fault = server.hold_next("list", "/nodes", after=True)
    server.fail_next("list", "/nodes", status=410, reason="Expired")
    fault.release()
    assert keys(read(server, page_size=3), "Node") == [f"n{number}" for number in range(7)]
    assert [dict(request.query) for request in server.asked("list", "/nodes")][-1] == {}


def test_finished_pods_are_left_to_the_server() -> None:
    server = ScriptedServer()
    for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
        server.put(make.pod(phase.lower(), status={"phase": phase}))
    assert keys(read(server), "Pod") == ["default/pending", "default/running", "default/unknown"]


def test_an_older_version_is_read_where_the_server_has_no_newer_one() -> None:
    server = ScriptedServer()
    server.routes.remove("deviceclasses")
    server.routes.add(ServedKind("resource.k8s.io", "v1beta2", "deviceclasses", "DeviceClass", False))
    server.put({"kind": "DeviceClass", "metadata": {"name": "gpu"}})
    reading = read(server)
    assert keys(reading, "DeviceClass") == ["gpu"]
    assert reading.warnings == []


def test_an_object_that_cannot_be_read_does_not_hide_the_others() -> None:
    server = ScriptedServer()
    server.put(make.node("good"))
    server.put({**make.node("odd"), "spec": {"taints": "none"}})
    server.put({**make.pod("fast"), "spec": {"priority": "high"}})
    reading = read(server)
    assert keys(reading, "Node") == ["good", "odd"]
    assert keys(reading, "Pod") == []
    assert [item.spec.unschedulable for item in reading.objects if isinstance(item, Node)] == [False, True]
    assert reading.warnings == [
        "test: Node odd cannot be read and counts as far as it can be: spec.taints: expected array | null, got str",
        "test: Pod default/fast cannot be read and is left out: spec.priority: expected int | null, got str",
    ]


def test_a_read_that_fails_for_a_moment_is_repeated() -> None:
    server = ScriptedServer()
    server.put(make.node("a"))
    server.fail_next("list", "/nodes", status=503, retry_after_s=0)
    assert keys(read(server), "Node") == ["a"]


class OneAnswer:
    """Answers everything with the same text."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
        gzip: bool = False,
    ) -> bytes:
        return self._body


@pytest.mark.parametrize("body", [b"<html>please log in</html>", b"[]", b"", b'{"items": 3}'])
def test_an_answer_that_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(ClusterReadError, match="test: cannot list nodes: the answer is not one of an API server"):
        asyncio.run(ClusterReader(OneAnswer(body), "test").read())


def test_pods_of_a_name_are_found_in_all_namespaces() -> None:
    async def scenario() -> list[Pod]:
        async with ScriptedServer() as server:
            for namespace, name, phase in (("a", "p", "Running"), ("b", "p", "Failed"), ("b", "q", "Running")):
                server.put(make.pod(name, namespace=namespace, status={"phase": phase}))
            client = RestClient(ServerTarget(url=server.url))
            try:
                return await ClusterReader(client, "test").pods_named("p")
            finally:
                await client.close()

    assert [pod.key for pod in asyncio.run(scenario())] == ["a/p", "b/p"]


def test_pod_groups_are_read_in_the_version_that_the_server_has() -> None:
    for version in ("v1alpha2", "v1beta1"):
        server = ScriptedServer()
        server.routes.remove("podgroups")
        server.routes.add(ServedKind("scheduling.k8s.io", version, "podgroups", "PodGroup", True))
        head = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup"}
        server.put({**head, "metadata": {"name": "g", "namespace": "default"}})
        assert keys(read(server), "PodGroup") == ["default/g"]


def karpenters(*kinds: str, version: str = "v1") -> list[ServedKind]:
    known = {known.kind: known for known in AUTOSCALING_RESOURCES}
    served = []
    for kind in kinds:
        one = known[kind]
        served.append(ServedKind(one.group, version if one.group else "v1", one.plural, kind, one.namespaced))
    return served


def read_for_plans(server: ScriptedServer) -> ClusterReading:
    async def scenario() -> ClusterReading:
        async with server:
            client = RestClient(ServerTarget(url=server.url), qps=0)
            try:
                return await ClusterReader(client, "test").read(set(LOADED_KINDS.values()))
            finally:
                await client.close()

    return asyncio.run(scenario())


OF_A_POOL = make.node("n", labels={"karpenter.sh/nodepool": "p"})
A_POOL = {"kind": "NodePool", "metadata": {"name": "p"}, "spec": {"weight": 3}}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_plans_read_what_karpenter_works_by(version: str) -> None:
    server = ScriptedServer()
    for kind in karpenters("NodePool", "NodeClaim", version=version):
        server.routes.add(kind)
    server.put({"apiVersion": f"karpenter.sh/{version}", **A_POOL})
    server.put({"apiVersion": f"karpenter.sh/{version}", "kind": "NodeClaim", "metadata": {"name": "c"}})
    server.put(OF_A_POOL)
    reading = read_for_plans(server)
    assert (keys(reading, "NodePool"), keys(reading, "NodeClaim")) == (["p"], ["c"])
    assert reading.warnings == []


def test_a_server_without_karpenter_has_no_node_pools_and_that_is_told_if_a_node_is_of_one() -> None:
    server = ScriptedServer()
    server.put(make.node("plain"))
    assert read_for_plans(server).warnings == []
    server.put(OF_A_POOL)
    assert read_for_plans(server).warnings == ["test: the server has no NodePools, although node n is of one"]


def test_node_pools_that_may_not_be_listed_are_named() -> None:
    server = ScriptedServer()
    server.routes.add(karpenters("NodePool")[0])
    server.put(OF_A_POOL)
    server.refuse("list", "nodepools")
    (warning,) = read_for_plans(server).warnings
    assert warning.startswith("test: no right to list nodepools.karpenter.sh: none are assumed")


def test_whoever_does_not_plan_does_not_ask_for_them() -> None:
    server = ScriptedServer()
    read(server)
    assert not server.asked("list", "/apis/karpenter.sh/v1/nodepools")
