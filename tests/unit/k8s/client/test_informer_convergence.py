"""Whatever happens to the connection: when it is quiet again the informers know what the server has, and no handler was
told anything that does not follow from what it was told before."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harness.scripted_server import Fault, Listened, RecordedRequest, ScriptedServer, following, until
from kubesched.k8s.client.list_watch import SharedInformer
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject

NAMES = ("a", "b", "c", "d")
PHASES = ("Pending", "Running", "Succeeded")
Step = tuple[str, Any]

CHANGES = st.one_of(
    st.tuples(st.just("put pod"), st.tuples(st.sampled_from(NAMES), st.sampled_from(PHASES))),
    st.tuples(st.just("put node"), st.sampled_from(NAMES)),
    st.tuples(st.just("delete pod"), st.sampled_from(NAMES)),
    st.tuples(st.just("delete node"), st.sampled_from(NAMES)),
    st.tuples(st.just("make pod anew"), st.sampled_from(NAMES)),
)
INTERRUPTIONS = st.one_of(
    st.tuples(st.just("let run"), st.integers(1, 200)),
    st.tuples(st.sampled_from(["cut", "end", "expire", "forget", "bookmark", "restart", "forget and cut"]), st.none()),
    st.tuples(st.just("faults"), st.integers(0, 1000)),
)
STORIES = st.lists(st.one_of(CHANGES, INTERRUPTIONS), min_size=4, max_size=25)


class RandomFaults:
    """Every third request fails, each in one of many ways."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def __call__(self, request: RecordedRequest) -> Fault | None:
        if self._dice.random() > 0.34:
            return None
        status = self._dice.choice([0, 403, 404, 410, 422, 429, 500, 503])
        return Fault(status=status, drop=status == 0)


class World:
    """The server, and what the steps of a story do to it."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server

    def put_pod(self, name: str, phase: str) -> None:
        self.server.put({"kind": "Pod", "metadata": {"name": name}, "status": {"phase": phase}})

    def delete(self, kind: str, name: str) -> None:
        namespace = "default" if kind == "pods" else None
        if self.server.get(kind, name, namespace) is not None:
            self.server.delete(kind, name, namespace)

    async def step(self, what: str, how: Any) -> None:
        match what:
            case "put pod":
                self.put_pod(*how)
            case "put node":
                self.server.put({"kind": "Node", "metadata": {"name": how}})
            case "delete pod":
                self.delete("pods", how)
            case "delete node":
                self.delete("nodes", how)
            case "make pod anew":
                self.delete("pods", how)
                self.put_pod(how, "Pending")
            case "let run":
                for _ in range(how):
                    await asyncio.sleep(0)
            case _:
                await self.interrupt(what, how)

    async def interrupt(self, what: str, how: Any) -> None:
        match what:
            case "cut":
                self.server.cut_watches()
            case "end":
                self.server.end_watches()
            case "expire":
                self.server.expire_watches()
            case "forget":
                self.server.forget_history()
            case "bookmark":
                self.server.send_bookmarks()
            case "forget and cut":
                self.server.forget_history()
                self.server.cut_watches()
            case "faults":
                self.server.faults.rule = RandomFaults(how)
            case "restart":
                await self.server.stop()
                await self.server.start()

    def has(self) -> dict[tuple[type, str], str]:
        """What an informer should know: unfinished pods and all nodes, each with its version."""
        found: dict[tuple[type, str], str] = {}
        for pod in self.server.objects("pods"):
            if pod["status"]["phase"] != "Succeeded":
                found[Pod, f"default/{pod['metadata']['name']}"] = pod["metadata"]["resourceVersion"]
        for node in self.server.objects("nodes"):
            found[Node, node["metadata"]["name"]] = node["metadata"]["resourceVersion"]
        return found


def known_to_lister(listened: Listened) -> dict[tuple[type, str], str]:
    items = [*listened.informers.of(Pod).lister, *listened.informers.of(Node).lister]
    return {(type(item), item.key): item.metadata.resource_version for item in items}


class OldAndNew:
    """A handler with client-go's calls, that complains of an old object which it was never told of."""

    def __init__(self) -> None:
        self.known: dict[tuple[type, str], KubeObject] = {}
        self.complaints: list[str] = []

    def on_add(self, item: KubeObject, is_in_initial_list: bool) -> None:
        if (type(item), item.key) in self.known:
            self.complaints.append(f"{item.key} was added twice ({is_in_initial_list=})")
        self.known[type(item), item.key] = item

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        if self.known.get((type(old), old.key)) is not old or old.metadata.uid != new.metadata.uid:
            self.complaints.append(f"{old.key} was updated from something else than what was told")
        self.known[type(new), new.key] = new

    def on_delete(self, item: KubeObject, is_final_state_unknown: bool) -> None:
        last = self.known.pop((type(item), item.key), None)
        if last is None or (is_final_state_unknown and last is not item):
            self.complaints.append(f"{item.key} was deleted, and is not what was last told")


def known_to_handler(listened: Listened) -> dict[tuple[type, str], str]:
    return {at: item.metadata.resource_version for at, item in listened.handler.known.items()}


async def live_through(story: list[Step], streams_lists: bool, within_s: float = 20.0) -> Listened:
    async with ScriptedServer(streams_lists=streams_lists) as server:
        world = World(server)
        async with following(server, Pod, Node, page_size=2, longest_skipped_s=1000) as listened:
            detailed = OldAndNew()
            for informer in listened.informers.all():
                informer.add_event_handler(detailed)
            for name in NAMES[:2]:
                await world.step("put pod", (name, "Running"))
            await until(lambda: listened.informers.has_synced)
            for what, how in story:
                await world.step(what, how)
            server.faults.clear()
            await until(
                lambda: listened.informers.has_synced and known_to_lister(listened) == world.has(), within_s=within_s
            )
            assert known_to_handler(listened) == world.has()
            assert {at: item.metadata.resource_version for at, item in detailed.known.items()} == world.has()
            assert detailed.complaints == []
            return listened


@settings(max_examples=40)
@given(STORIES, st.booleans())
def test_when_quiet_again_informers_know_what_the_server_has(story: list[Step], streams_lists: bool) -> None:
    listened = asyncio.run(live_through(story, streams_lists))
    assert listened.handler.complaints == []
    event(f"removed something: {any(what == 'remove' for what, _ in listened.heard)}")


MISSED_DELETION: list[Step] = [
    ("put node", "a"),
    ("let run", 3000),
    ("delete node", "a"),
    ("forget and cut", None),
]


def test_the_property_holds_for_a_missed_deletion() -> None:
    asyncio.run(live_through(MISSED_DELETION, True))


def test_the_property_notices_who_forgets_missed_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedInformer, "_vanished", lambda self, key: None)
    with pytest.raises(TimeoutError):
        asyncio.run(live_through(MISSED_DELETION, True, within_s=0.5))
