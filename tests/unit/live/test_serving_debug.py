"""Looks inside: the queue, the cache, and why a pod waits. None of them leaves a trace."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from secured_port import MASTERS, Answered, ReviewingServer, serving

from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.live.serving.debug_pages import cache_report, cache_text, queue_report, queue_text
from kubesched.live.serving.live_sources import Surroundings, capture, explain_captured, live_sources
from kubesched.live.serving.sources import HealthChecks
from kubesched.scheduler import config
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.cluster.self_check import self_check
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make
from kubesched.testing.world import World

CONFIG = config.default()


class LiveWorld(World):
    """With all that informers would hold."""

    def __init__(self, *items: make.Manifest) -> None:
        super().__init__(build_loop(CONFIG, ByName()))
        self.take(*items)

    def take(self, *items: make.Manifest) -> None:
        self.add(*manifests.from_dicts(items).objects)
        self.run()

    def informed(self) -> list[KubeObject]:
        cluster = self.loop.cluster
        return [*cluster.table.nodes, *cluster.objects, *self.pods.values()]

    def ask(self, path: str, headers: dict[str, str] | None = None) -> Answered:
        around = Surroundings(checks=HealthChecks(), now_s=lambda: self.now_s, informed=self.informed)

        async def run() -> Answered:
            async with serving(live_sources(self.loop, CONFIG, around), ReviewingServer()) as port:
                return await port.get(path, MASTERS | (headers or {}))

        return asyncio.run(run())


def filled_world() -> LiveWorld:
    gated = make.pod("held", cpu="1")
    gated["spec"]["schedulingGates"] = [{"name": "later"}]
    zones = [make.node(name, cpu="2", labels={make.ZONE: zone}) for name, zone in (("a", "x"), ("b", "y"), ("c", "x"))]
    return LiveWorld(*zones, make.pod("web", cpu="1"), make.pod("big", cpu="9", priority=7), gated)


@pytest.fixture
def world() -> LiveWorld:
    return filled_world()


def test_the_queue_shows_who_waits_and_why(world: LiveWorld) -> None:
    report = json.loads(world.ask("/debug/queue").body)
    assert report["summary"] == "activeQ:0; backoffQ:0; unschedulablePods:2"
    (big,) = report["unschedulable"]
    assert {key: big[key] for key in ("pod", "priority", "attempts", "unschedulablePlugins")} == {
        "pod": "default/big",
        "priority": 7,
        "attempts": 1,
        "unschedulablePlugins": ["NodeResourcesFit"],
    }
    (held,) = report["gated"]
    assert (held["pod"], held["gatingPlugin"]) == ("default/held", "SchedulingGates")
    assert report["active"] == report["backoff"] == report["inFlight"] == report["hintFailures"] == []


def test_the_queue_as_text(world: LiveWorld) -> None:
    answer = world.ask("/debug/queue", {"Accept": "text/plain"})
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    lines = answer.body.splitlines()
    assert lines[0] == "Dump of scheduling queue: activeQ:0; backoffQ:0; unschedulablePods:2"
    assert lines[1:3] == ["unschedulable (1):", f"  {lines[2].strip()}"]
    assert lines[2].startswith("  default/big, priority 7, attempts 1, for ")
    assert "rejected by NodeResourcesFit" in lines[2]
    assert "gated by SchedulingGates" in lines[4]


def test_times_are_told_as_durations(world: LiveWorld) -> None:
    queue = world.loop.queue
    since_s = queue.contents.unschedulable[0].queued_at_s
    assert queue_report(queue, since_s + 2.5)["unschedulable"][0]["waitingSeconds"] == 2.5
    backing_off = queue_report(queue, since_s)["unschedulable"][0]
    assert backing_off["backoffSeconds"] > 0
    assert f"backoff {backing_off['backoffSeconds']:g}s" in queue_text(queue_report(queue, since_s))


def test_the_cache_shows_nodes_and_finds_nothing_wrong(world: LiveWorld) -> None:
    report = json.loads(world.ask("/debug/cache?check").body)
    assert report["counts"] == {"nodes": 3, "pods": 1, "assumedPods": 0, "pendingPods": 2}
    assert report["findings"] == []
    node = next(node for node in report["nodes"] if node["pods"])
    assert node["pods"] == ["default/web"]
    assert node["requested"] == {"cpuMilli": 1000}
    assert node["allocatable"] == {"cpuMilli": 2000, "memory": 8 * 2**30, "pods": 110}


def test_the_cache_is_compared_only_on_request(world: LiveWorld) -> None:
    assert "findings" not in json.loads(world.ask("/debug/cache").body)


def test_the_cache_names_what_it_missed(world: LiveWorld) -> None:
    missed = manifests.from_dicts([make.node("d")]).objects
    report = cache_report(world.loop.cluster, [*world.informed(), *missed])
    assert report["findings"] == [{"problem": "missed", "subject": "node d", "detail": ""}]
    assert cache_text(report).endswith("Cache comparer: 1 findings\n  missed node d\n")


def test_the_cache_as_text(world: LiveWorld) -> None:
    lines = world.ask("/debug/cache?check", {"Accept": "text/plain"}).body.splitlines()
    assert lines[0] == "Dump of cached NodeInfo: nodes 3, pods 1, assumedPods 0, pendingPods 2"
    assert lines[1:4] == [
        "Node name: a",
        "  Requested: cpuMilli:1000",
        "  Allocatable: cpuMilli:2000 memory:8589934592 pods:110",
    ]
    assert lines[-1] == "Cache comparer: 0 findings"


def test_a_pod_that_waits_is_explained(world: LiveWorld) -> None:
    report = json.loads(world.ask("/explain/default/big").body)
    assert report["pod"] == "default/big"
    assert report["explanation"]["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert report["changes"]
    text = world.ask("/explain/default/big", {"Accept": "text/plain"}).body
    assert "Insufficient cpu" in text


def test_a_pod_that_is_held_back_is_explained(world: LiveWorld) -> None:
    report = json.loads(world.ask("/explain/default/held").body)
    assert report["explanation"]["gated"]["plugin"] == "SchedulingGates"


def test_a_pod_that_has_its_node_is_explained_with_what_would_win_today(world: LiveWorld) -> None:
    report = json.loads(world.ask("/explain/default/web").body)
    assert (report["node"], report["cause"]["kind"]) == ("a", "bound")
    assert report["headline"].startswith("Pod default/web is on a")


def test_what_is_not_there_is_not_explained(world: LiveWorld) -> None:
    answer = world.ask("/explain/default/none")
    status = json.loads(answer.body)
    message = "pod default/none is not known to the scheduler"
    assert (answer.status, status["reason"], status["message"]) == (404, "NotFound", message)


def test_looks_are_for_who_may_see_them(world: LiveWorld) -> None:
    for path in ("/debug/queue", "/debug/cache", "/explain/default/big"):
        assert world.ask(path, {"Authorization": ""}).status == 403


def state_of(world: LiveWorld) -> dict[str, Any]:
    cluster, scheduler = world.loop.cluster, world.loop.schedulers["default-scheduler"]
    return {
        "cache": cache_report(cluster),
        "queue": queue_report(world.loop.queue, 0.0),
        "names": list(cluster.table.names),
        "by class": scheduler.n_decided_by_class,
        "next": scheduler.next_start,
        "bound": world.bound,
    }


def test_looking_leaves_no_trace(world: LiveWorld) -> None:
    """Neither in what is known, nor in what is kept for pods with the same signature: later decisions come from it as
    if none looked."""
    unseen = filled_world()
    for path in ("/debug/queue", "/debug/cache?check", "/explain/default/big", "/metrics", "/metrics/resources"):
        assert world.ask(path).status == 200
        assert state_of(world) == state_of(unseen)
    assert self_check(world.loop.cluster, world.informed()) == []
    for each in (world, unseen):
        each.take(make.pod("web-2", cpu="1"), make.pod("web-3", cpu="1"), make.pod("big-2", cpu="9"))
    assert state_of(world) == state_of(unseen)
    assert world.loop.schedulers["default-scheduler"].n_decided_by_class > 0


def test_the_copy_knows_what_the_cluster_knows(world: LiveWorld) -> None:
    cluster = world.loop.cluster
    big = cluster.pending[PodKey("default/big")]
    cluster.nominations.add(big, "b")
    copy = capture(cluster).rebuilt()
    names, copied = cluster.table.names, copy.table.names
    assert [copied[row] for row in copy.rows_in_order] == [names[row] for row in cluster.rows_in_order]
    assert cache_report(copy) == cache_report(cluster)
    assert copy.nominations.node_of(copy.pending[big.key]) == "b"
    assert self_check(copy, world.informed()) == []


def test_an_assumed_pod_counts_in_the_copy(world: LiveWorld) -> None:
    cluster = world.loop.cluster
    cluster.put(manifests.from_dicts([make.pod("next", cpu="2")]).objects[0])
    cluster.assume(cluster.pending[PodKey("default/next")], "b")
    cluster.put(manifests.from_dicts([make.pod("after", cpu="2")]).objects[0])
    explanation = explain_captured(capture(cluster), PodKey("default/after"), CONFIG)
    assert explanation.to_dict()["best"] == ["c"]


def test_a_pod_that_has_its_node_is_explained_as_if_it_came_now(world: LiveWorld) -> None:
    cluster = world.loop.cluster
    cluster.put(manifests.from_dicts([make.pod("next", cpu="2")]).objects[0])
    cluster.assume(cluster.pending[PodKey("default/next")], "b")
    key = PodKey("default/next")
    explanation = explain_captured(capture(cluster).without_place_of(key), key, CONFIG)
    assert "b" in explanation.to_dict()["best"]
    assert key in cluster.placed
