"""What a server cannot do, or does not let us do: streamed lists, missing kinds, missing rights, unreadable objects."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from harness.scripted_server import ScriptedServer, following, until
from harness.scripted_server.routing import ServedKind
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.partial_reading import UnreadPod
from kubesched.k8s.model.resource import DeviceClass

LOGGER = "kubesched.k8s.client.list_watch"


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level and record.name == LOGGER]


def test_a_streamed_list_goes_on_as_the_watch() -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            server.put({"kind": "Node", "metadata": {"name": "a"}})
            async with following(server, Node) as listened:
                await until(lambda: listened.informers.has_synced)
                server.put({"kind": "Node", "metadata": {"name": "b"}})
                await until(lambda: len(listened.heard) == 2)
                (only,) = server.requests
                assert only.query["sendInitialEvents"] == "true"
                assert only.query["resourceVersionMatch"] == "NotOlderThan"
                assert only.query["allowWatchBookmarks"] == "true"
                assert 300 <= int(only.query["timeoutSeconds"]) <= 600

    asyncio.run(run())


def test_who_refuses_to_stream_lists_is_asked_for_a_plain_one_and_not_asked_again() -> None:
    async def run() -> None:
        async with ScriptedServer(streams_lists=False) as server, following(server, Node) as listened:
            await until(lambda: listened.informers.has_synced)
            await server.watched("nodes")
            assert [request.verb for request in server.requests] == ["watch", "list", "watch"]
            assert server.requests[1].query["resourceVersion"] == "0"
            server.forget_history()
            server.expire_watches()
            await until(lambda: len(server.requests) == 5)
            assert [request.verb for request in server.requests[3:]] == ["list", "watch"]

    asyncio.run(run())


def test_a_stream_whose_initial_events_never_end_is_given_up_for_a_plain_list() -> None:
    async def run() -> None:
        async with ScriptedServer(streams_lists=None) as server:
            server.put({"kind": "Node", "metadata": {"name": "a"}})
            async with following(server, Node, initial_events_within_s=0.02) as listened:
                await until(lambda: listened.informers.has_synced)
                assert [request.verb for request in server.requests][:2] == ["watch", "list"]
                assert listened.heard == [("put", "a")]

    asyncio.run(run())


def test_a_kind_that_the_server_lacks_counts_as_synced_and_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            server.routes.remove("deviceclasses")
            async with following(server, DeviceClass, Node) as listened:
                await until(lambda: listened.informers.has_synced)
                informer = listened.informers.of(DeviceClass)
                assert informer.is_missing and len(informer.lister) == 0
                assert informer.resource == resource_of(DeviceClass)

    asyncio.run(run())
    assert messages(caplog, logging.WARNING) == ["The server does not have this kind; going on without it"]


def test_a_kind_that_every_server_has_is_never_taken_for_missing() -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            server.put({"kind": "Node", "metadata": {"name": "a"}})
            server.fail_next("", "nodes", status=404, times=4)
            async with following(server, Node) as listened:
                await until(lambda: len(server.requests) == 2)
                assert not listened.informers.has_synced
                await until(lambda: listened.heard == [("put", "a")])

    asyncio.run(run())


def test_a_kind_that_was_there_before_is_asked_for_again_and_keeps_its_objects() -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            server.put({"kind": "DeviceClass", "metadata": {"name": "gpu"}})
            async with following(server, DeviceClass) as listened:
                await until(lambda: listened.heard == [("put", "gpu")])
                server.fail_next("", "deviceclasses", status=404, times=4)
                server.cut_watches()
                server.put({"kind": "DeviceClass", "metadata": {"name": "fpga"}})
                await until(lambda: ("put", "fpga") in listened.heard)
                assert not listened.informers.of(DeviceClass).is_missing
                assert listened.handler.complaints == []

    asyncio.run(run())


def test_an_older_server_is_followed_in_its_own_version() -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            server.routes.remove("deviceclasses")
            server.routes.add(ServedKind("resource.k8s.io", "v1beta2", "deviceclasses", "DeviceClass", False))
            server.put({"kind": "DeviceClass", "metadata": {"name": "gpu"}})
            async with following(server, DeviceClass) as listened:
                await until(lambda: listened.heard == [("put", "gpu")])
                assert listened.informers.of(DeviceClass).resource.version == "v1beta2"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("verb", "streams_lists"),
    [
        pytest.param("list", False, id="lists are forbidden"),
        pytest.param("watch", False, id="watches are forbidden"),
        pytest.param("watch", True, id="streamed lists are forbidden"),
    ],
)
def test_a_missing_right_is_logged_once_and_named(
    verb: str, streams_lists: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with ScriptedServer(streams_lists=streams_lists) as server:
            server.put({"kind": "Node", "metadata": {"name": "a"}})
            server.refuse(verb, "nodes")
            async with following(server, Node, streams_lists=streams_lists) as listened:
                await until(lambda: len(server.asked(verb)) > 5)
                server.allow(verb, "nodes")
                await until(lambda: "Followed again" in messages(caplog, logging.INFO))
                await until(lambda: listened.heard == [("put", "a")])

    caplog.set_level(logging.INFO)
    asyncio.run(run())
    (complaint,) = messages(caplog, logging.ERROR)
    assert complaint == "Failed to watch"
    (told,) = [record.__dict__["fields"] for record in caplog.records if record.levelno == logging.ERROR]
    assert told["hint"].startswith(
        f"RBAC does not let us {verb} nodes (API group core): grant the verbs list and watch"
    )
    assert told["err"].startswith("failed to list *v1.Node: ") == (verb == "list")
    assert (told["type"], told["reflector"]) == ("*v1.Node", "informers")
    assert messages(caplog, logging.INFO).count("Followed again") == 1


def test_an_unreachable_server_is_logged_once_until_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with ScriptedServer() as server, following(server, Node) as listened:
            await server.watched("nodes")
            await server.stop()
            await until(lambda: len(listened.sleeps.delays_s) > 5)
            await server.start()
            await server.watched("nodes")

    asyncio.run(run())
    assert messages(caplog, logging.ERROR) == ["Failed to watch"]


UNREADABLE: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "odd"}, "spec": {"priority": "high"}}


@pytest.mark.parametrize("streams_lists", [pytest.param(True, id="streamed"), pytest.param(False, id="plain")])
def test_an_object_that_cannot_be_read_is_set_aside_and_named(
    streams_lists: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with ScriptedServer(streams_lists=streams_lists) as server:
            server.put({"kind": "Pod", "metadata": {"name": "a"}})
            server.put(UNREADABLE)
            async with following(server, Pod) as listened:
                await until(lambda: listened.heard == [("put", "default/a"), ("put", "default/odd")])
                (odd,) = [item for item in listened.informers.of(Pod).lister if item.name == "odd"]
                assert isinstance(odd, UnreadPod)

    asyncio.run(run())
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.__dict__["fields"]["object"] == "default/odd"
    assert "spec.priority" in record.__dict__["fields"]["err"]


@pytest.mark.parametrize("streams_lists", [pytest.param(True, id="streamed"), pytest.param(False, id="plain")])
def test_what_was_known_of_an_object_that_became_unreadable_stays(streams_lists: bool) -> None:
    async def run() -> None:
        async with ScriptedServer(streams_lists=streams_lists) as server:
            server.put({"kind": "Pod", "metadata": {"name": "odd"}})
            async with following(server, Pod) as listened:
                await until(lambda: listened.heard == [("put", "default/odd")])
                server.put(UNREADABLE)
                server.forget_history()
                server.expire_watches()
                server.put({"kind": "Pod", "metadata": {"name": "b"}})
                await until(lambda: ("put", "default/b") in listened.heard)
                assert ("remove", "default/odd") not in listened.heard

    asyncio.run(run())
