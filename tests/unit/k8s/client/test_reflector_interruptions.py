"""A kind is followed through cuts, ends, errors and versions that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.scripted_server import Fault, Listened, ScriptedServer, following, until
from kubesched.k8s.model.core import Node, Pod

Story = Callable[[ScriptedServer, Listened], Awaitable[None]]


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def tell(story: Story, *, streams_lists: bool = True, **settings: Any) -> None:
    """Begin with the nodes a and b, synced and watched."""

    async def run() -> None:
        async with ScriptedServer(streams_lists=streams_lists) as server:
            server.put(node("a"))
            server.put(node("b"))
            async with following(server, Node, **settings) as listened:
                await until(lambda: listened.informers.has_synced)
                await server.watched("nodes")
                await story(server, listened)
                assert listened.handler.complaints == []

    asyncio.run(run())


BOTH_WAYS = pytest.mark.parametrize(
    "streams_lists", [pytest.param(True, id="lists are streamed"), pytest.param(False, id="lists are plain")]
)


@BOTH_WAYS
def test_changes_arrive_in_order(streams_lists: bool) -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        server.put(node("c"))
        server.put(node("a", zone="x"))
        server.delete("nodes", "b")
        await until(lambda: len(listened.heard) == 5)
        began, went_on = listened.heard[:2], listened.heard[2:]
        assert sorted(began) == [("put", "a"), ("put", "b")]
        assert went_on == [("put", "c"), ("put", "a"), ("remove", "b")]

    tell(story, streams_lists=streams_lists)


@BOTH_WAYS
def test_a_cut_watch_is_resumed_from_the_last_version(streams_lists: bool) -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        made = server.put(node("c"))
        await until(lambda: ("put", "c") in listened.heard)
        asked = len(server.requests)
        server.cut_watches()
        server.delete("nodes", "b")
        await until(lambda: ("remove", "b") in listened.heard)
        again = server.requests[asked:]
        assert [request.verb for request in again] == ["watch"]
        assert again[0].query["resourceVersion"] == made["metadata"]["resourceVersion"]

    tell(story, streams_lists=streams_lists)


@BOTH_WAYS
def test_what_vanished_while_the_version_was_gone_is_removed(streams_lists: bool) -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        asked = len(server.requests)
        server.cut_watches()
        server.delete("nodes", "b")
        server.put(node("c"))
        server.forget_history()
        await until(lambda: ("remove", "b") in listened.heard and ("put", "c") in listened.heard)
        relist = next(request for request in server.requests[asked + 1 :])
        assert relist.verb == ("watch" if streams_lists else "list")
        assert "resourceVersion" not in relist.query
        assert listened.heard.count(("put", "a")) == 1

    tell(story, streams_lists=streams_lists)


@BOTH_WAYS
def test_an_error_event_that_says_gone_leads_to_a_new_list(streams_lists: bool) -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        server.expire_watches()
        server.put(node("c"))
        await until(lambda: ("put", "c") in listened.heard)

    tell(story, streams_lists=streams_lists)


def test_an_object_made_anew_while_away_is_removed_and_put() -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        server.cut_watches()
        server.delete("nodes", "b")
        server.put(node("b"))
        server.forget_history()
        await until(lambda: len(listened.heard) == 4)
        assert listened.heard[2:] == [("remove", "b"), ("put", "b")]

    tell(story)


def test_a_bookmark_advances_the_version() -> None:
    async def story(server: ScriptedServer, _: Listened) -> None:
        server.put({"kind": "Namespace", "metadata": {"name": "elsewhere"}})
        now = server.storage.revision
        server.send_bookmarks()
        server.end_watches()
        await until(lambda: server.asked("watch")[-1].query.get("resourceVersion") == str(now))

    tell(story)


def test_a_server_that_restarts_is_followed_again() -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        await server.stop()
        server.put(node("c"))
        await until(lambda: len(listened.sleeps.delays_s) > 2)
        await server.start()
        await until(lambda: ("put", "c") in listened.heard)

    tell(story)


def test_a_watch_that_does_not_begin_is_given_up_and_asked_for_again() -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        server.hold_next("watch", "nodes")
        server.cut_watches()
        server.put(node("c"))
        await until(lambda: ("put", "c") in listened.heard)

    tell(story, answers_within_s=0.05)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 500}, id="an internal error"),
        pytest.param({"status": 429, "retry_after_s": 7}, id="too many requests"),
        pytest.param({"status": 403}, id="forbidden for a while"),
        pytest.param({"status": 410}, id="gone by status"),
        pytest.param({"status": 400}, id="a version that is not understood"),
        pytest.param({"drop": True}, id="a dropped connection"),
    ],
)
def test_a_watch_that_is_refused_is_tried_again(fault: dict[str, Any]) -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        server.fail_next("watch", "nodes", times=3, **{"status": 0, **fault})
        server.cut_watches()
        server.put(node("c"))
        await until(lambda: ("put", "c") in listened.heard)

    tell(story)


def test_too_many_requests_are_not_repeated_before_their_time() -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        server.fail_next("watch", "nodes", status=429, retry_after_s=7)
        server.cut_watches()
        server.put(node("c"))
        await until(lambda: ("put", "c") in listened.heard)
        assert any(delay_s >= 7 for delay_s in listened.sleeps.delays_s)

    tell(story)


def test_a_list_in_pages_that_becomes_too_old_is_asked_for_as_a_whole() -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        for index in range(7):
            server.put(node(f"n{index}"))
        server.forget_history()
        server.faults.rule = lambda request: Fault(status=410) if "continue" in request.query else None
        server.cut_watches()
        server.put(node("n7"))
        await until(lambda: ("put", "n7") in listened.heard)
        assert "limit" not in server.asked("list")[-1].query

    tell(story, streams_lists=False, page_size=3)


def test_a_consistent_list_comes_in_pages() -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        for index in range(7):
            server.put(node(f"n{index}"))
        asked = len(server.requests)
        server.forget_history()
        server.cut_watches()
        server.put(node("n7"))
        await until(lambda: ("put", "n7") in listened.heard)
        lists = [request for request in server.requests[asked:] if request.verb == "list"]
        assert len(lists) == 4
        assert [bool(request.query.get("continue")) for request in lists] == [False, True, True, True]

    tell(story, streams_lists=False, page_size=3)


def test_a_server_behind_what_we_saw_is_asked_for_what_it_has() -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        server.fail_next("watch", "nodes", status=400)
        server.faults.rule = lambda request: (
            Fault(status=504, causes=(cause,))
            if request.verb == "list" and request.query.get("resourceVersion")
            else None
        )
        server.cut_watches()
        server.put(node("c"))
        await until(lambda: ("put", "c") in listened.heard)

    tell(story, streams_lists=False)


def test_a_pod_that_finishes_looks_deleted() -> None:
    async def run() -> None:
        async with ScriptedServer() as server, following(server, Pod) as listened:
            server.put({"kind": "Pod", "metadata": {"name": "p"}})
            server.put({"kind": "Pod", "metadata": {"name": "done"}, "status": {"phase": "Failed"}})
            await until(lambda: listened.heard == [("put", "default/p")])
            server.put({"kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Succeeded"}})
            await until(lambda: listened.heard[1:] == [("remove", "default/p")])
            asked = server.asked("watch", "pods")[0].query["fieldSelector"]
            assert asked == "status.phase!=Succeeded,status.phase!=Failed"

    asyncio.run(run())
