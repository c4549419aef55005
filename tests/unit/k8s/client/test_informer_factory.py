"""Informers are made on first use and started when asked; resync and what is done about errors can be chosen."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from harness.scripted_server import ScriptedServer, following, until
from harness.scripted_server.listening import ConsistentHandler
from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.list_watch import Informers, InformerSettings, WatchError, default_watch_error_handler
from kubesched.k8s.client.resources import Resource, UnknownKindError, resource_of
from kubesched.k8s.model.core import Namespace, Node, Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject

LOGGER = "kubesched.k8s.client.list_watch"


class Lease(KubeObject, frozen=True):
    """A kind that a scheduler does not watch."""


class NoApi:
    """Nothing is asked before the start."""


def unstarted(**settings: object) -> Informers:
    return Informers(NoApi(), settings=InformerSettings(**settings))  # type: ignore[arg-type]


def test_an_informer_is_made_by_the_first_who_asks_and_shared_with_the_others() -> None:
    informers = unstarted()
    assert informers.all() == []
    informer = informers.of(Node)
    assert informers.of(Node) is informer
    assert informers.all() == [informer]
    assert informer.resource == resource_of(Node)


def test_a_kind_of_ones_own_is_followed_where_it_is_said_to_live() -> None:
    home = Resource(Lease, "coordination.k8s.io", "v1", "leases", True)
    informers = unstarted()
    with pytest.raises(UnknownKindError, match=r"Lease is not among .* say where it lives, such as Resource\(Lease, "):
        informers.of(Lease)
    informer = informers.of(Lease, home)
    assert informers.of(Lease) is informer
    assert informer.resource.path() == "/apis/coordination.k8s.io/v1/leases"


def test_a_start_starts_what_was_asked_for_since_the_last_one() -> None:
    async def run() -> None:
        async with ScriptedServer() as server, following(server, Node) as listened:
            informers = listened.informers
            assert await informers.wait_for_sync("first")
            pods = informers.of(Pod)
            pods.add_handler(listened.handler)
            server.put({"kind": "Pod", "metadata": {"name": "a"}})
            assert await informers.wait_for_sync("only what is started is waited for")
            assert not pods.has_started
            informers.start()
            assert await informers.wait_for_sync("second")
            assert listened.heard == [("put", "default/a")]
            informers.start()
            assert [request.path for request in server.requests] == ["/api/v1/nodes", "/api/v1/pods"]

    asyncio.run(run())


def test_what_is_stopped_is_not_started_again() -> None:
    async def run() -> None:
        async with ScriptedServer() as server, following(server, Node) as listened:
            await listened.informers.wait_for_sync("test")
            await listened.informers.stop()
            listened.informers.of(Pod)
            listened.informers.start()
            assert not listened.informers.of(Pod).has_started
            assert await listened.informers.wait_for_sync("what is known stays known")

    asyncio.run(run())


def test_each_kind_has_its_own_resync_period_or_the_default() -> None:
    async def run() -> None:
        own: dict[str, Any] = {"resync_s": 20.0, "resyncs_s": {Node: 30.0, Namespace: 0.0}}
        async with ScriptedServer() as server, following(server, Node, Pod, Namespace, **own) as listened:
            for kind in ("Node", "Pod", "Namespace"):
                server.put({"kind": kind, "metadata": {"name": kind.lower()}})
            await until(lambda: min(listened.heard.count(("put", at)) for at in ("node", "default/pod")) > 2)
            assert {20.0, 30.0} <= set(listened.sleeps.delays_s)
            assert listened.heard.count(("put", "namespace")) == 1

    asyncio.run(run())


def test_a_watch_error_handler_hears_of_every_error_and_the_log_of_none(caplog: pytest.LogCaptureFixture) -> None:
    told: list[WatchError] = []

    async def run() -> None:
        async with ScriptedServer() as server:
            server.refuse("watch", "nodes")
            async with following(server, Node, watch_error_handler=told.append) as listened:
                await until(lambda: len(told) > 3)
                server.allow("watch", "nodes")
                await listened.informers.wait_for_sync("test")

    with caplog.at_level(logging.WARNING, LOGGER):
        asyncio.run(run())
    assert caplog.records == []
    assert {(error.verb, error.resource.go_type, error.was_open, error.lists) for error in told} == {
        ("watch", "*v1.Node", False, True)
    }
    assert all(isinstance(error.problem, ApiError) and error.problem.is_forbidden for error in told)


def test_one_informer_can_have_a_watch_error_handler_of_its_own_until_it_starts() -> None:
    told: list[WatchError] = []

    async def run() -> None:
        async with ScriptedServer() as server, following(server) as listened:
            informer = listened.informers.of(PodDisruptionBudget)
            informer.set_watch_error_handler(told.append)
            server.fail_next("watch", "poddisruptionbudgets", status=503)
            listened.informers.start()
            await listened.informers.wait_for_sync("test")
            with pytest.raises(RuntimeError, match="informer has already started"):
                informer.set_watch_error_handler(default_watch_error_handler)

    asyncio.run(run())
    assert [str(error.problem) for error in told] != []


def test_a_watch_error_handler_that_fails_is_logged_and_the_kind_followed_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: WatchError) -> None:
        raise RuntimeError("no")

    async def run() -> None:
        async with ScriptedServer() as server:
            server.fail_next("watch", "nodes", status=503)
            async with following(server, Node, watch_error_handler=broken) as listened:
                await listened.informers.wait_for_sync("test")

    asyncio.run(run())
    assert {record.getMessage() for record in caplog.records if record.levelno == logging.ERROR} == {
        "The watch error handler failed"
    }


def test_a_handler_for_all_kinds_is_one_for_those_asked_for_so_far() -> None:
    informers = unstarted()
    handler = ConsistentHandler()
    informers.of(Node)
    informers.add_handler(handler)
    informers.of(Pod).put(Pod())
    informers.of(Node).put(Node())
    assert [what for what, _ in handler.heard] == ["put"]
