"""Hollow nodes on a server: nodes come alive, and pods live and end on them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.scripted_server import ScriptedServer
from harness.scripted_server.faults import until
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.playground.hollow_nodes import fleet as fleet_module
from kubesched.playground.hollow_nodes.fleet import FleetSettings, KubeletFleet, NodeShape, registered
from kubesched.playground.hollow_nodes.pod_plays import Delays
from kubesched.testing import make

AT_ONCE = Delays(0.0, 0.0)


def _play(
    scenario: Callable[[ScriptedServer, KubeletFleet], Awaitable[None]], settings: FleetSettings | None = None
) -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            client = RestClient(ServerTarget(url=server.url), qps=0)
            fleet = KubeletFleet(client, settings or FleetSettings(AT_ONCE))
            try:
                await scenario(server, fleet)
            finally:
                await fleet.stop()
                await client.close()

    asyncio.run(run())


def _phase(server: ScriptedServer, name: str) -> str:
    found = server.get("pods", name, "default")
    return "" if found is None else str((found.get("status") or {}).get("phase"))


def _bound(name: str, node: str, **annotations: str) -> make.Manifest:
    notes = {f"kubesched.dev/{key}": value for key, value in annotations.items()}
    return make.pod(name, on=node, metadata={"annotations": notes}, status={"phase": "Pending"})


def test_nodes_register_with_what_every_node_has_and_a_lease() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        assert await fleet.start(NodeShape(zones=2).bodies(2)) == 2
        node = server.get("nodes", "node-1")
        assert node is not None
        assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-1"
        assert node["status"]["allocatable"] == node["status"]["capacity"]
        lease = server.get("leases", "node-1", "kube-node-lease")
        assert lease is not None and lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]

    _play(scenario)


def test_a_bound_pod_runs_and_ends_when_its_time_is_over() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        await fleet.start(NodeShape().bodies(1))
        server.put(_bound("on", "node-0"))
        server.put(_bound("off", "node-0", duration="0s", result="Failed"))
        server.put(_bound("elsewhere", "other"))
        await until(lambda: (_phase(server, "on"), _phase(server, "off")) == ("Running", "Failed"))
        assert _phase(server, "elsewhere") == "Pending"

    _play(scenario)


def test_a_pod_whose_node_was_taken_for_lost_is_ready_again() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        await fleet.start(NodeShape().bodies(1))
        for _ in range(2):
            unready = [{"type": "Ready", "status": "False"}]
            server.put(make.pod("p", on="node-0", status={"phase": "Running", "conditions": unready}))
            await until(lambda: _ready_of(server, "p") == "True")

    _play(scenario)


def test_a_deleted_pod_is_gone_when_it_has_stopped() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        await fleet.start(NodeShape().bodies(1))
        pod = _bound("p", "node-0")
        pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
        server.put(pod)
        await until(lambda: server.get("pods", "p", "default") is None)

    _play(scenario)


def test_a_deleted_pod_that_is_held_says_how_it_ended() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        await fleet.start(NodeShape().bodies(1))
        server.put(_bound("p", "node-0"))
        await until(lambda: _phase(server, "p") == "Running")
        pod = server.get("pods", "p", "default")
        assert pod is not None
        pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
        server.put({**pod, "kind": "Pod", "metadata": {**pod["metadata"], "finalizers": ["a.com/held"]}})
        await until(lambda: bool(server.asked("DELETE", "/pods/p")))
        statuses = [request.body for request in server.asked("PATCH", "/pods/p/status")]
        assert b'"exitCode":143' in statuses[-1]

    _play(scenario)


def test_extended_resources_become_allocatable_and_stay_so() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        await fleet.start(NodeShape().bodies(1))
        node = server.get("nodes", "node-0")
        assert node is not None
        status = {**node["status"], "capacity": {**node["status"]["capacity"], "a.com/fake": "3"}}
        server.put({**node, "kind": "Node", "status": status})
        await until(lambda: _allocatable(server).get("a.com/fake") == "3")
        unready = {**status, "allocatable": _allocatable(server), "conditions": [{"type": "Ready", "status": "False"}]}
        server.put({**node, "kind": "Node", "status": unready})
        await until(lambda: _is_ready(server, "node-0"))
        assert _allocatable(server)["a.com/fake"] == "3"

    _play(scenario)


def test_a_node_lists_the_images_of_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "_IMAGES_TOLD_AFTER_S", 0.0)

    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        await fleet.start(NodeShape().bodies(1))
        pod = _bound("p", "node-0")
        pod["spec"]["containers"][0]["image"] = "nginx"
        server.put(pod)
        await until(lambda: _images(server) == ["nginx:latest"])

    _play(scenario)


def test_a_stopped_kubelet_does_nothing_until_it_is_started_again() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        body = make.node("a")
        body["metadata"]["annotations"] = {"kubesched.dev/kubelet": "stopped"}
        server.put(body)
        await fleet.start()
        server.put(_bound("p", "a"))
        await server.watched("pods", "nodes")
        assert _phase(server, "p") == "Pending"
        server.put(make.node("a"))
        await until(lambda: _phase(server, "p") == "Running")
        await until(lambda: _is_ready(server, "a"))

    _play(scenario, FleetSettings(AT_ONCE, adopts_all=True))


def test_a_write_that_failed_is_tried_again() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        await fleet.start(NodeShape().bodies(1))
        server.fail_next("PATCH", "/pods/p/status", status=500)
        server.put(_bound("p", "node-0"))
        await until(lambda: _phase(server, "p") == "Running")
        assert len(server.asked("PATCH", "/pods/p/status")) == 2

    _play(scenario)


def test_a_node_of_a_dump_is_registered_without_what_its_server_wrote() -> None:
    given: make.Manifest = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}, "status": {}}
    given["status"]["allocatable"] = {"cpu": "2"}
    body = registered(given, 0.0)
    assert body["metadata"] == {
        "name": "a",
        "labels": {"kubernetes.io/hostname": "a", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
    }
    assert body["status"]["capacity"] == {"cpu": "2"}
    assert given["metadata"]["uid"] == "u"


def _allocatable(server: ScriptedServer) -> dict[str, str]:
    found: dict[str, str] = (server.get("nodes", "node-0") or {})["status"].get("allocatable") or {}
    return found


def _images(server: ScriptedServer) -> list[str]:
    listed = (server.get("nodes", "node-0") or {})["status"].get("images") or ()
    return [name for image in listed for name in image["names"]]


def _ready_of(server: ScriptedServer, name: str) -> str:
    pod = server.get("pods", name, "default") or {}
    return next((known["status"] for known in pod["status"]["conditions"] if known["type"] == "Ready"), "")


def _is_ready(server: ScriptedServer, name: str) -> bool:
    node = server.get("nodes", name) or {}
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(known["type"] == "Ready" and known["status"] == "True" for known in conditions)


def test_a_pod_whose_host_port_is_taken_is_turned_away_until_it_is_free() -> None:
    async def scenario(server: ScriptedServer, fleet: KubeletFleet) -> None:
        await fleet.start(NodeShape().bodies(1))
        for name in ("first", "second"):
            pod = _bound(name, "node-0")
            pod["spec"]["containers"][0]["ports"] = [{"hostPort": 80, "containerPort": 80}]
            server.put(pod)
            await until(lambda name=name: _phase(server, name) in ("Running", "Failed"))  # type: ignore[misc]
        second = server.get("pods", "second", "default") or {}
        assert (second["status"]["phase"], second["status"]["reason"]) == ("Failed", "NodePorts")
        server.delete("pods", "first", "default")
        third = _bound("third", "node-0")
        third["spec"]["containers"][0]["ports"] = [{"hostPort": 80, "containerPort": 80}]
        server.put(third)
        await until(lambda: _phase(server, "third") == "Running")

    _play(scenario)
