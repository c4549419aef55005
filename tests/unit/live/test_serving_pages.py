"""Configuration, status, flags and version, and what happens at the edges of the server."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import replace

import pytest
import yaml
from secured_port import LOCAL, MASTERS, Answered, ReviewingServer, serving, trusting_all

from kubesched.live.serving import component_pages
from kubesched.live.serving.answers import accepted, prefers_text
from kubesched.live.serving.live_sources import Surroundings, live_sources
from kubesched.live.serving.settings import AuthorizationSettings
from kubesched.live.serving.sources import BuildInfo, Sources
from kubesched.older.config import PolicyFile, emulate, generation_of
from kubesched.older.engine.build import variant_of
from kubesched.scheduler import config
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.engine.score import Seeded

WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
    "and is for debugging purposes only.\n"
)
FLAGS = {"v": "2", "bind-address": "0.0.0.0"}


def ask(path: str, sources: Sources, headers: dict[str, str] | None = None) -> Answered:
    async def run() -> Answered:
        async with serving(sources, ReviewingServer()) as port:
            return await port.get(path, MASTERS | (headers or {}))

    return asyncio.run(run())


def test_the_configuration_shown_is_the_one_in_use() -> None:
    manifest = config.to_manifest(config.default())
    answer = ask("/configz", Sources(configuration=lambda: manifest))
    assert answer.headers["Content-Type"] == "application/json"
    shown = json.loads(answer.body)["componentconfig"]
    assert shown["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert config.load(shown, "configz") == config.default()


@pytest.mark.parametrize(("version", "api"), [("1.14", "v1alpha1"), ("1.19", "v1beta1")])
def test_under_emulation_the_configuration_is_that_of_the_version(version: str, api: str) -> None:
    generation = generation_of(version)
    assert generation is not None
    policy = {"kind": "Policy", "priorities": [{"name": "MostRequestedPriority", "weight": 2}]}
    emulation = emulate(generation, policy=policy, reference=PolicyFile("/etc/policy.json"))
    loop = build_loop(emulation.config, Seeded(1), variant=variant_of(emulation))
    around = Surroundings(now_s=lambda: 0.0, informed=tuple, emulation=emulation)
    shown = json.loads(ask("/configz", live_sources(loop, emulation.config, around)).body)
    assert shown["componentconfig"]["apiVersion"] == f"kubescheduler.config.k8s.io/{api}"
    if version == "1.14":
        assert shown["componentconfig"]["algorithmSource"] == {"policy": {"file": {"path": "/etc/policy.json"}}}
        assert shown["emulation"]["profiles"][0]["priorities"] == [{"name": "MostRequestedPriority", "weight": 2}]
    else:
        [profile] = shown["componentconfig"]["profiles"]
        scores = [{"name": "NodeResourcesMostAllocated", "weight": 2}]
        assert profile["plugins"]["score"] == {"disabled": [{"name": "*"}], "enabled": scores}


def test_the_version_is_that_of_the_scheduler_we_follow() -> None:
    found = json.loads(ask("/version", Sources()).body)
    assert (found["major"], found["minor"]) == ("1", "36")
    assert found["gitVersion"].startswith("v1.36.4+kubesched")
    assert found.keys() >= {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}


def test_flags_are_listed_by_name() -> None:
    answer = ask("/flagz", Sources(flags=lambda: FLAGS))
    assert answer.body == f"\nkube-scheduler flagz\n{WARNING}bind-address=0.0.0.0\nv=2\n"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_the_status_is_a_text_for_people() -> None:
    text = component_pages.statusz_text(
        BuildInfo(go_version="python3.11.7"), 1_000_000_000, 1_000_003_723, ["/healthz", "/metrics/slis", "/metrics"]
    )
    assert text == (
        f"\nkube-scheduler statusz\n{WARNING}"
        "\nStarted: Sun Sep  9 01:46:40 UTC 2001\nUp: 1 hr 02 min 03 sec\nPython version: python3.11.7\n"
        "Binary version: 1.36.4\nEmulation version: 1.36\nPaths: /healthz /metrics\n"
    )


def test_the_status_lists_all_pages() -> None:
    last = ask("/statusz", Sources()).body.splitlines()[-1]
    assert last == "Paths: /configz /debug /explain /flagz /healthz /livez /metrics /readyz /statusz /version"


@pytest.mark.parametrize(
    ("page", "accept", "kind"),
    [
        pytest.param("flagz", "application/json;as=Flagz;v=v1beta1;g=config.k8s.io", "Flagz", id="flags as JSON"),
        pytest.param("flagz", "application/yaml;as=Flagz;v=v1beta1;g=config.k8s.io", "Flagz", id="flags as YAML"),
        pytest.param(
            "statusz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz", "Statusz", id="status as JSON"
        ),
        pytest.param(
            "statusz", "application/json;v=v1alpha1;g=config.k8s.io;as=Statusz", "Statusz", id="an old version"
        ),
    ],
)
def test_status_and_flags_are_objects_for_who_asks_for_a_version(page: str, accept: str, kind: str) -> None:
    answer = ask(f"/{page}", Sources(flags=lambda: FLAGS), {"Accept": accept})
    version = "v1alpha1" if "v1alpha1" in accept else "v1beta1"
    found = yaml.safe_load(answer.body)
    assert (found["kind"], found["apiVersion"]) == (kind, f"config.k8s.io/{version}")
    assert found["metadata"] == {"name": "kube-scheduler"}
    assert ("Warning" in answer.headers) is (version == "v1alpha1")
    assert found.get("flags", FLAGS) == FLAGS


def test_a_form_that_is_not_offered_is_refused() -> None:
    answer = ask("/statusz", Sources(), {"Accept": "application/json"})
    assert answer.status == 406
    assert json.loads(answer.body)["reason"] == "NotAcceptable"


@pytest.mark.parametrize(
    ("header", "is_text"),
    [
        pytest.param("text/plain", True, id="text"),
        pytest.param("*/*", False, id="anything"),
        pytest.param("", False, id="nothing said"),
        pytest.param("application/json, text/plain", False, id="JSON first"),
        pytest.param("application/json;q=0.5, text/plain;q=0.9", True, id="text with more weight"),
        pytest.param("text/plain;q=x, application/json", False, id="a weight that is none"),
    ],
)
def test_text_is_for_who_asks_for_it(header: str, is_text: bool) -> None:
    assert prefers_text(header) is is_text


def test_forms_come_with_their_parameters() -> None:
    (found,) = accepted("Application/JSON;v=v1; g=a.b")
    assert (found.name, found.parameters) == ("application/json", {"v": "v1", "g": "a.b"})


def test_a_page_that_breaks_is_one_answer_lost() -> None:
    def broken() -> dict[str, str]:
        raise RuntimeError("secret")

    async def run() -> tuple[Answered, Answered]:
        async with serving(Sources(flags=broken), ReviewingServer()) as port:
            return await port.get("/flagz", MASTERS), await port.get("/healthz")

    lost, next_one = asyncio.run(run())
    text = "This request caused apiserver to panic. Look in the logs for details.\n"
    assert (lost.status, lost.body) == (500, text)
    assert next_one.status == 200
    assert "Server" not in next_one.headers
    assert lost.headers["Cache-Control"] == "no-cache, private"


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/healthz/../version", id="dots"),
        pytest.param("/healthz/%2e%2e/version", id="dots in disguise"),
        pytest.param("/healthz/..%2fversion", id="a slash in disguise"),
        pytest.param("//version", id="two slashes"),
        pytest.param("/healthz/;/../version", id="parameters"),
    ],
)
def test_no_detour_leads_past_what_is_asked_about(target: str) -> None:
    """What everybody may is `/healthz/*` here; what is behind it must be one of its pages, or nothing."""
    settings = replace(LOCAL, authorization=AuthorizationSettings(always_allow_paths=("/healthz/*",)))

    async def run() -> bytes:
        async with serving(client=ReviewingServer(), settings=settings) as port:
            return await raw(port.port, target, trusting_all())

    answer = asyncio.run(run())
    assert answer.split(b" ")[1] in (b"400", b"403", b"404")


async def raw(port: int, target: str, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/configz", "/healthz", "/readyz", "/flagz", "/statusz", "/version", "/debug/queue"])
def test_pages_are_only_read(method: str, path: str) -> None:
    async def run() -> tuple[Answered, Answered]:
        async with serving(Sources(), ReviewingServer()) as port:
            return await port.get(path, MASTERS, method), await port.get(path, MASTERS, "HEAD")

    refused, read = asyncio.run(run())
    assert (refused.status, refused.body) == (405, "Method Not Allowed\n")
    assert refused.headers["Allow"] == "GET, HEAD"
    assert read.status in (200, 404)


@pytest.mark.parametrize(
    "token", [pytest.param("\udcff\udcfe", id="no text"), pytest.param("caf\u00e9", id="no ASCII")]
)
def test_a_token_that_cannot_be_one_is_nobodys(token: str) -> None:
    reviews = ReviewingServer()

    async def run() -> bytes:
        async with serving(Sources(), reviews) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=trusting_all())
            asked = f"GET /configz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
            writer.write(asked.encode(errors="surrogateescape"))
            answer = await reader.read()
            writer.close()
            return answer

    assert asyncio.run(run()).startswith(b"HTTP/1.1 401")
