"""The server as kube-scheduler meets it: over HTTP, with what is broken told and never fatal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from served_plugins import Broken, Tiers, cluster_of, profiles_of

from kubesched.framework.effects import Done
from kubesched.plugin_tools.extender_server.routes import MOST_BYTES, CallMetrics, ExtenderPages
from kubesched.plugin_tools.extender_server.served_cluster import ServedCluster
from kubesched.plugin_tools.extender_server.server import CallerRules, ExtenderServer, ListenError, ListenSettings
from kubesched.plugin_tools.extender_server.verdicts import PluginBinder, PluginVerdictService
from kubesched.scheduler.cluster import Cluster
from kubesched.testing import make

Body = Any
ANYBODY = CallerRules()
LISTEN = ListenSettings(port=0)
JSON = {"Content-Type": "application/json"}
ARGS = {"Pod": make.pod("p"), "Nodes": None, "NodeNames": ["a", "b"]}
BIND = {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-default-p", "Node": "a"}


def cluster() -> Cluster:
    return cluster_of(make.node("a", labels={"tier": "gold"}), make.node("b", labels={"tier": "bronze"}), make.pod("p"))


async def _done(_action: object) -> object:
    return Done()


async def _nobody(_key: object) -> None:
    return None


def application(
    *plugins: type,
    is_ready: bool = True,
    has_binder: bool = True,
    rules: CallerRules = ANYBODY,
    settings: ListenSettings = LISTEN,
    most_bytes: int = MOST_BYTES,
) -> ExtenderServer:
    known = cluster()
    served = ServedCluster(known, lambda: is_ready, is_followed=True)
    service = PluginVerdictService(served, profiles_of(known, *plugins))
    binder = PluginBinder(served, service, _done, _nobody) if has_binder else None
    pages = ExtenderPages(service, binder, served.is_ready, CallMetrics(known), rules, most_bytes)
    return ExtenderServer(settings, pages.application())


def asked(server: ExtenderServer, *calls: tuple[str, str, Body]) -> list[tuple[int, str]]:
    """(method, path, body) -> (status, text), one after another on one server."""

    async def scene() -> list[tuple[int, str]]:
        await server.start()
        try:
            async with aiohttp.ClientSession(server.url) as session:
                return [await _ask(session, *call) for call in calls]
        finally:
            await server.stop()

    return asyncio.run(scene())


async def _ask(session: aiohttp.ClientSession, method: str, path: str, body: Body) -> tuple[int, str]:
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    async with session.request(method, path, data=data, headers=JSON if body is not None else {}) as answer:
        return answer.status, await answer.text()


def test_every_verb_answers() -> None:
    victims = {"Pod": make.pod("p"), "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}}}
    calls = [
        ("POST", "/filter", ARGS),
        ("POST", "/prioritize", ARGS),
        ("POST", "/preempt", victims),
        ("POST", "/bind", BIND),
    ]
    answers = asked(application(Tiers), *calls)
    assert [status for status, _ in answers] == [200] * 4
    filtered, prioritized, preempted, bound = (json.loads(text) for _, text in answers)
    assert filtered == {
        "Nodes": None,
        "NodeNames": ["a"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"b": "node(s) of tier bronze"},
        "Error": "",
    }
    assert prioritized == [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}]
    assert preempted == {"NodeNameToMetaVictims": victims["NodeNameToMetaVictims"]}
    assert bound == {"Error": ""}


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
def test_a_request_that_cannot_be_read_is_400_with_a_line(verb: str) -> None:
    ((status, text),) = asked(application(Tiers), ("POST", f"/{verb}", b"{"))
    assert status == 400
    assert text.startswith(f"{verb}: the body is not Extender")
    assert text.count("\n") == 1


def test_a_plugin_that_breaks_is_named_in_the_answer_and_the_server_goes_on() -> None:
    filtered, prioritized, again = asked(
        application(Broken), ("POST", "/filter", ARGS), ("POST", "/prioritize", ARGS), ("GET", "/healthz", None)
    )
    assert filtered[0] == 200
    assert "Broken" in json.loads(filtered[1])["Error"] and "no such disk" in json.loads(filtered[1])["Error"]
    assert prioritized[0] == 500
    assert "Broken" in prioritized[1]
    assert again == (200, "ok")


def test_without_a_binder_a_binding_is_refused_in_the_answer() -> None:
    ((status, text),) = asked(application(Tiers, has_binder=False), ("POST", "/bind", BIND))
    assert status == 200
    assert "--no-cluster" in json.loads(text)["Error"]


def test_readiness_waits_for_the_cluster() -> None:
    calls = (("GET", "/healthz", None), ("GET", "/readyz", None), ("POST", "/filter", ARGS))
    alive, ready, filtered = asked(application(Tiers, is_ready=False), *calls)
    assert alive == (200, "ok")
    assert ready == (503, "the cluster is not listed yet\n")
    assert json.loads(filtered[1])["Error"] == "the extender has not listed the cluster yet"


def test_calls_are_measured_by_verb_and_result() -> None:
    *_, (status, text) = asked(
        application(Tiers), ("POST", "/filter", ARGS), ("POST", "/filter", b"{"), ("GET", "/metrics", None)
    )
    assert status == 200
    assert 'scheduler_extender_call_duration_seconds_count{result="ok",verb="filter"} 1\n' in text
    assert 'scheduler_extender_call_duration_seconds_count{result="bad_request",verb="filter"} 1\n' in text
    assert 'scheduler_cache_size{type="nodes"} 2\n' in text


def test_a_form_in_a_browser_cannot_call() -> None:
    async def post(session: aiohttp.ClientSession) -> int:
        async with session.post("/bind", data=json.dumps(BIND), headers={"Content-Type": "text/plain"}) as answer:
            return answer.status

    assert _with_session(application(Tiers), post) == 415


def _with_session(server: ExtenderServer, use: Callable[[aiohttp.ClientSession], Awaitable[int]]) -> int:
    async def scene() -> int:
        await server.start()
        try:
            async with aiohttp.ClientSession(server.url) as session:
                return await use(session)
        finally:
            await server.stop()

    return asyncio.run(scene())


def test_a_port_that_is_taken_is_told() -> None:
    async def scene() -> None:
        first = application(Tiers)
        await first.start()
        try:
            taken = int(first.url.rpartition(":")[2])
            with pytest.raises(ListenError, match=f"--port {taken}: "):
                await ExtenderServer(ListenSettings(port=taken), aiohttp.web.Application()).start()
        finally:
            await first.stop()

    asyncio.run(scene())
