"""Waiting for caches, pacing of retries, and the set of all informers."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from harness.scripted_server import ScriptedServer, following, until
from harness.virtual_asyncio import run_virtually
from kubesched.k8s.client.list_watch import (
    Pace,
    SharedInformer,
    wait_for_cache_sync,
    wait_for_named_cache_sync,
)
from kubesched.k8s.client.list_watch.exchange import AnswerSignal, Listing, RetryBackoff
from kubesched.k8s.client.resources import RESOURCES, resource_of
from kubesched.k8s.model.core import Node, Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolume


def informer_of(kind: type[KubeObject]) -> SharedInformer[KubeObject]:
    return SharedInformer(resource_of(kind))


def test_a_cache_that_is_not_synced_in_time_is_told() -> None:
    assert asyncio.run(wait_for_cache_sync([informer_of(Node)], timeout_s=0.001)) is False


def test_all_caches_synced() -> None:
    async def run() -> bool:
        informers = [informer_of(Node), informer_of(Pod)]
        await informers[0].replace(Listing([]))
        informers[1].kind_is_missing()
        return await wait_for_cache_sync(informers, timeout_s=5)

    assert asyncio.run(run()) is True


def test_the_named_wait_says_who_is_still_missing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def run() -> None:
        informers = [informer_of(Node), informer_of(PodDisruptionBudget)]
        await informers[0].replace(Listing([]))
        waiting = asyncio.create_task(wait_for_named_cache_sync("scheduler", informers, remind_every_s=0.001))
        await until(lambda: len(caplog.records) >= 2)
        await informers[1].replace(Listing([]))
        await waiting

    asyncio.run(run())
    assert [record.getMessage() for record in (*caplog.records[:2], caplog.records[-1])] == [
        "Waiting for caches to sync",
        "Still waiting for caches to sync",
        "Caches are synced",
    ]
    told = [record.__dict__["fields"] for record in caplog.records]
    assert {one["controller"] for one in told} == {"scheduler"}
    assert told[1]["waitingFor"] == ["poddisruptionbudgets.policy"]


@pytest.mark.parametrize("ends_by", ["stop", "cancel"])
def test_who_is_stopped_before_the_caches_are_synced_says_so(ends_by: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def run() -> None:
        async with ScriptedServer() as server:
            server.refuse("list", "nodes")
            server.refuse("watch", "nodes")
            async with following(server, Node) as listened:
                waiting = asyncio.create_task(listened.informers.wait_for_sync("my-controller"))
                await until(lambda: bool(server.requests))
                if ends_by == "stop":
                    await listened.informers.stop()
                    assert await waiting is False
                else:
                    waiting.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await waiting

    asyncio.run(run())
    (record,) = [record for record in caplog.records if record.getMessage() == "Unable to sync caches"]
    assert (record.levelname, record.__dict__["fields"]) == ("ERROR", {"controller": "my-controller"})


class SteppedClock:
    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


class LowestDice(random.Random):
    def random(self) -> float:
        return 0.0


def test_pauses_double_up_to_thirty_seconds_and_begin_anew_after_two_minutes() -> None:
    clock = SteppedClock()
    backoff = RetryBackoff(Pace(now_s=clock, dice=LowestDice()))
    assert [backoff.delay_s() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    clock.at_s = 120.0
    assert backoff.delay_s() == 30.0
    clock.at_s = 240.1
    assert backoff.delay_s() == 0.8


def test_pauses_are_stretched_by_chance_up_to_double() -> None:
    delays = {RetryBackoff(Pace(dice=random.Random(seed))).delay_s() for seed in range(50)}
    assert len(delays) > 40
    assert all(0.8 <= delay_s < 1.6 for delay_s in delays)


def test_who_waits_for_a_server_goes_on_when_it_has_answered_another() -> None:
    """Else the last of many kinds would come back a minute after the first."""

    async def scene() -> None:
        signal, now_s = AnswerSignal(), asyncio.get_running_loop().time
        backoff = RetryBackoff(Pace(dice=LowestDice()))
        for _ in range(7):
            backoff.delay_s()
        waiting = asyncio.create_task(backoff.wait_for(signal))
        await asyncio.sleep(2)
        assert not waiting.done()
        signal.answered()
        await waiting
        assert now_s() == 2
        await backoff.wait_for(signal)
        assert now_s() == 32, "what was answered before is nothing to go by"

    run_virtually(scene())


def test_a_scheduler_watches_these_kinds() -> None:
    assert sorted(resource.full_name for resource in RESOURCES) == [
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "deviceclasses.resource.k8s.io",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "poddisruptionbudgets.policy",
        "pods",
        "replicasets.apps",
        "replicationcontrollers",
        "resourceclaims.resource.k8s.io",
        "resourceslices.resource.k8s.io",
        "services",
        "statefulsets.apps",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    ]


@pytest.mark.parametrize(
    ("kind", "asked", "path"),
    [
        pytest.param(Pod, (), "/api/v1/pods", id="all of a kind"),
        pytest.param(Pod, ("x",), "/api/v1/namespaces/x/pods", id="those of a namespace"),
        pytest.param(Pod, ("x", "p", "binding"), "/api/v1/namespaces/x/pods/p/binding", id="a subresource"),
        pytest.param(Node, (None, "n"), "/api/v1/nodes/n", id="a cluster-wide object"),
        pytest.param(PersistentVolume, ("x", "v"), "/api/v1/persistentvolumes/v", id="a namespace is not needed"),
        pytest.param(
            PodDisruptionBudget,
            ("x", "b", "status"),
            "/apis/policy/v1/namespaces/x/poddisruptionbudgets/b/status",
            id="in a group",
        ),
    ],
)
def test_the_path_of_a_resource(kind: type[KubeObject], asked: tuple[str, ...], path: str) -> None:
    assert resource_of(kind).path(*asked) == path


def test_all_kinds_sync_against_a_server_and_stop_cleanly() -> None:
    async def run() -> None:
        kinds = [resource.type for resource in RESOURCES]
        async with ScriptedServer() as server, following(server, *kinds) as listened:
            await listened.informers.wait_for_sync("test")
            assert not any(informer.is_missing for informer in listened.informers.all())
            await listened.informers.stop()
            server.put({"kind": "Node", "metadata": {"name": "late"}})
            await until(lambda: not server.watches.of())
            assert listened.heard == []

    asyncio.run(run())


def test_a_resync_period_tells_everything_again_and_again() -> None:
    async def run() -> None:
        async with ScriptedServer() as server, following(server, Node, resync_s=10) as listened:
            server.put({"kind": "Node", "metadata": {"name": "a"}})
            await until(lambda: listened.heard.count(("put", "a")) > 3)
            assert 10 in listened.sleeps.delays_s

    asyncio.run(run())
