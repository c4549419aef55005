"""One object that is damaged, in whatever way, never stops its kind: the others are read, and pods are scheduled.

`damage` has the catalogue. Each damage alone is tried on the decoder and on the loop, all together on the live
scheduler; a sample of them alone there, too.
"""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from damage import Damage, catalogue
from live_copies import Copy, put_nodes, put_pods, scheduling, tell
from still_shell import StillShell

from harness.scripted_server import ScriptedServer, until
from kubesched.k8s.client.list_watch import SharedInformer
from kubesched.k8s.client.list_watch.exchange import KindDecoder, Unread
from kubesched.k8s.client.resources import RESOURCES, Resource
from kubesched.k8s.model.meta import KubeObject
from kubesched.testing import make

CATALOGUE = catalogue()
KINDS = [pytest.param(resource, id=resource.full_name) for resource in RESOURCES]
HEALTHY = b'{"metadata":{"name":"good","namespace":"default","resourceVersion":"1"}}'


def of(resource: Resource) -> list[Damage]:
    return [damage for damage in CATALOGUE if damage.resource is resource]


def sent(damage: Damage, version: str) -> bytes:
    good = damage.manifest()
    good["metadata"] |= {"resourceVersion": version, "uid": f"uid-{damage.object_name}"}
    return damage.encode(good)


def test_there_are_hundreds_of_kinds_of_damage() -> None:
    assert len(CATALOGUE) >= 299
    assert {damage.resource for damage in CATALOGUE} == set(RESOURCES)
    assert len({(damage.kind, damage.object_name) for damage in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("resource", KINDS)
def test_each_alone_leaves_the_others_of_a_list_and_of_a_watch(resource: Resource) -> None:
    decoder = KindDecoder(resource.type)
    n_damaged = 0
    for damage in of(resource):
        data = sent(damage, "5")
        listing = decoder.page(b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b,%b]}' % (HEALTHY, data, HEALTHY))
        assert listing.version == "9"
        assert [item.name for item in listing.items].count("good") == 2, damage
        assert len(listing.items) + len(listing.unread) == 3, damage
        event = decoder.event(b'{"type":"ADDED","object":%b}' % data)
        told = [unread.read().problems for unread in listing.unread]
        assert ([event.read().problems] if isinstance(event, Unread) else []) == told or told == [], damage
        n_damaged += any(told)
    assert n_damaged >= 20


@pytest.mark.parametrize("resource", KINDS)
def test_each_alone_leaves_the_loop_sound(resource: Resource) -> None:
    """Good, then damaged, then gone; and new, damaged from the first. A healthy pod is scheduled each time."""
    around = StillShell()
    decoder = KindDecoder(resource.type)
    informer: SharedInformer[KubeObject] = SharedInformer(resource, set_aside=around.aside)
    informer.add_handler(around.shell)

    def hear(change: str, data: bytes) -> None:
        event = decoder.event(b'{"type":"%b","object":%b}' % (change.encode(), data))
        if isinstance(event, Unread):
            informer.put_aside(event)
        elif change == "DELETED":
            informer.remove(event.object)
        else:
            informer.put(event.object)

    async def story() -> None:
        around.put(make.node("healthy", cpu="64", pods=10_000))
        around.shell.lead()
        for index, damage in enumerate(of(resource)):
            good = damage.manifest()
            good["metadata"] |= {"resourceVersion": "1", "uid": f"uid-{damage.object_name}"}
            for first in (good, None):
                if first is not None:
                    hear("ADDED", msgspec.json.encode(first))
                hear("MODIFIED" if first else "ADDED", sent(damage, "2"))
                around.now_s += 30.0
                healthy = make.pod(f"healthy-{index}-{first is None}", cpu="1m", spec={"nodeSelector": HOST})
                around.put(healthy)
                for _ in range(4):
                    await asyncio.sleep(0)
                assert around.bound.pop(f"default/{healthy['metadata']['name']}", "") == "healthy", damage
                hear("DELETED", msgspec.json.encode(good))
                assert informer.lister.get_by_key(key_of(damage)) is None
                assert key_of(damage) not in around.aside.of(damage.kind)
            assert around.shell.failures == {}, damage
        around.shell.stop()

    asyncio.run(story())
    cluster = around.shell.loop.cluster
    assert list(cluster.objects) == []
    assert set(cluster.table.rows) == {"healthy"}
    assert [key for key in (*cluster.placed, *cluster.pending) if not key.startswith("default/healthy-")] == []


HOST = {"kubernetes.io/hostname": "healthy"}


def key_of(damage: Damage) -> str:
    return f"default/{damage.object_name}" if damage.resource.namespaced else damage.object_name


def test_preemption_looks_at_damaged_pods_without_breaking() -> None:
    """Each alone on a node that it fills; a pod of higher priority wants to go there."""
    around = StillShell()
    informer: SharedInformer[KubeObject] = SharedInformer(RESOURCES[0], set_aside=around.aside)
    informer.add_handler(around.shell)
    decoder = KindDecoder(RESOURCES[0].type)
    node = make.node("full", cpu=1)

    async def story() -> None:
        around.shell.lead()
        around.put(node)
        for index, damage in enumerate(of(RESOURCES[0])):
            good = damage.manifest()
            good["metadata"] |= {"resourceVersion": "1", "uid": f"uid-{index}"}
            good["spec"] |= {"nodeName": "full", "priority": 1}
            good["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "900m"
            event = decoder.event(b'{"type":"ADDED","object":%b}' % damage.encode(good))
            if isinstance(event, Unread):
                informer.put_aside(event)
            else:
                informer.put(event.object)
            around.now_s += 30.0
            around.put(preemptor := make.pod(f"wants-{index}", cpu="500m", priority=10))
            for _ in range(4):
                await asyncio.sleep(0)
            assert around.shell.failures == {}, damage
            around.forget(preemptor)
            informer.put_aside(Unread(RESOURCES[0].type, good, "", "DELETED"))
        around.shell.stop()

    asyncio.run(story())


# -- live --------------------------------------------------------------------------------------------------------------

N_PODS = 20


def put_damaged(server: ScriptedServer, damages: list[Damage]) -> None:
    for damage in damages:
        server.put(damage.manifest(), damage.encode)


def put_good(server: ScriptedServer, damages: list[Damage]) -> None:
    for damage in damages:
        server.put(damage.manifest())


async def healthy_pods_are_bound(server: ScriptedServer, copy: Copy) -> None:
    """And none of them to a node that cannot be read."""

    def nodes() -> list[str]:
        pods = [pod for pod in server.objects("Pod") if pod["metadata"]["name"].startswith("pod-")]
        return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]

    put_pods(server, 0, N_PODS, cpu="10m")
    await until(lambda: len(nodes()) == N_PODS, 60.0)
    assert set(nodes()) & copy.scheduler.informers.set_aside.of("Node").keys() == set()
    assert copy.scheduler.shell.failures == {}


def lines_about(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    told = [record.__dict__["fields"] for record in caplog.records if "set aside" in record.getMessage()]
    return [(fields["kind"], fields["object"]) for fields in told]


def unnamed(damage: Damage, server: ScriptedServer) -> bool:
    good = server.get(damage.kind, damage.object_name, "default" if damage.resource.namespaced else None)
    assert good is not None
    unread = KindDecoder(damage.resource.type).event(b'{"type":"ADDED","object":%b}' % damage.encode(good))
    return isinstance(unread, Unread) and not unread.key(is_namespaced=damage.resource.namespaced)


@pytest.mark.parametrize("streams_lists", [pytest.param(True, id="streamed"), pytest.param(False, id="plain")])
def test_all_together_in_lists(streams_lists: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 3)
        put_damaged(server, CATALOGUE)
        async with scheduling(server) as copy:
            await healthy_pods_are_bound(server, copy)
            assert_named_once(server, caplog)

    tell(story, streams_lists=streams_lists)


def test_all_together_in_watches(caplog: pytest.LogCaptureFixture) -> None:
    """First good, then damaged, then good again, then gone."""

    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 3)
        async with scheduling(server) as copy:
            aside = copy.scheduler.informers.set_aside
            put_good(server, [damage for damage in CATALOGUE if damage.kind != "Pod"])
            put_damaged(server, CATALOGUE)
            await healthy_pods_are_bound(server, copy)
            assert_named_once(server, caplog)
            put_good(server, CATALOGUE)
            await until(lambda: not any("(" not in key for kind in aside.counts() for key in aside.of(kind)), 60.0)
            put_damaged(server, CATALOGUE)
            await until(lambda: sum(aside.counts().values()) > 2000, 60.0)
            for damage in CATALOGUE:
                server.delete(damage.kind, damage.object_name, "default" if damage.resource.namespaced else None)
            await until(lambda: not any("(" not in key for kind in aside.counts() for key in aside.of(kind)), 60.0)
            assert copy.scheduler.shell.failures == {}

    tell(story)


def assert_named_once(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    lines = lines_about(caplog)
    assert len(lines) == len(set(lines))
    named = set(lines)
    for damage in CATALOGUE:
        if damage.is_damage and not unnamed(damage, server):
            assert (damage.kind, key_of(damage)) in named, damage


SAMPLE = [CATALOGUE[index] for index in range(7, len(CATALOGUE), len(CATALOGUE) // 12)]


@pytest.mark.parametrize("damage", SAMPLE, ids=lambda damage: f"{damage.kind} {damage.name}")
def test_a_sample_alone_live(damage: Damage) -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 2)
        put_good(server, [damage])
        async with scheduling(server) as copy:
            put_damaged(server, [damage])
            await healthy_pods_are_bound(server, copy)

    tell(story)
