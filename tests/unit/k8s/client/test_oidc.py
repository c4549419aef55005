"""Tokens of an OpenID Connect provider, played by a server on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from loopback_servers import authority, loopback_identity, server_tls, serving

from kubesched.k8s.client.credentials.oidc import OidcCredentials, OidcSettings
from kubesched.k8s.client.credentials.stored import basic
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig_file import EntryPlace
from kubesched.k8s.client.target import make_tls_context

PLACE = EntryPlace(Path("/f"), "user", "u")
NOW_S = 1000.0


def _jwt(name: str, expires_s: float) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'sub': name, 'exp': expires_s})}.sig"


OLD, NEW, NEWER = _jwt("old", 900), _jwt("new", 5000), _jwt("newer", 9000)


class Provider:
    """Knows one refresh token at a time; takes the client's secret where `wants` says."""

    def __init__(self, *, wants: str = "header", answers: list[dict[str, str]] | None = None) -> None:
        self.wants = wants
        self.answers = answers or [{"id_token": NEW}, {"id_token": NEWER}]
        self.refreshed: list[str] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/issuer/.well-known/openid-configuration":
            return web.json_response({"issuer": self.url, "token_endpoint": f"{self.url}/token"})
        assert request.path == "/token"
        form = await request.post()
        in_header = dict(basic("id", "s3cret%2F")).items() <= request.headers.items()
        in_form = (form.get("client_id"), form.get("client_secret")) == ("id", "s3cret/")
        if not (in_header if self.wants == "header" else in_form):
            return web.json_response({"error": "invalid_client"}, status=401)
        assert form["grant_type"] == "refresh_token"
        self.refreshed.append(str(form["refresh_token"]))
        return web.json_response(self.answers.pop(0))


def _credentials(url: str, **settings: Any) -> OidcCredentials:
    full = {
        "issuer_url": f"{url}/issuer/",
        "client_id": "id",
        "client_secret": "s3cret/",
        "id_token": OLD,
        "refresh_token": "r1",
        "ssl_context": None,
    }
    return OidcCredentials(OidcSettings(**(full | settings)), PLACE, now=lambda: NOW_S)


def _play(provider: Provider, story: Callable[[str], Awaitable[None]], tls: Any = None) -> None:
    async def run() -> None:
        async with serving(provider.handle, tls) as url:
            provider.url = url
            await story(url)

    asyncio.run(run())


@pytest.mark.parametrize("wants", ["header", "form"])
def test_an_expired_token_is_renewed_through_the_issuer(wants: str) -> None:
    provider = Provider(wants=wants)

    async def story(url: str) -> None:
        credentials = _credentials(url)
        first, second = await asyncio.gather(credentials.headers(), credentials.headers())
        assert first is second
        assert first == (("Authorization", f"Bearer {NEW}"),)

    _play(provider, story)
    assert provider.refreshed == ["r1"]


def test_a_valid_token_is_used_without_asking_anybody() -> None:
    credentials = _credentials("http://127.0.0.1:1", id_token=NEW)
    assert asyncio.run(credentials.headers()) == (("Authorization", f"Bearer {NEW}"),)


def test_a_refused_token_is_renewed_with_the_latest_refresh_token() -> None:
    provider = Provider(answers=[{"id_token": NEW, "refresh_token": "r2"}, {"id_token": NEWER}])

    async def story(url: str) -> None:
        credentials = _credentials(url)
        used = await credentials.headers()
        assert await credentials.renew(used, 0)
        assert await credentials.renew(used, 0)
        assert await credentials.headers() == (("Authorization", f"Bearer {NEWER}"),)

    _play(provider, story)
    assert provider.refreshed == ["r1", "r2"]


def test_the_issuer_may_have_an_authority_of_its_own(tmp_path: Path) -> None:
    async def story(url: str) -> None:
        trusting = _credentials(url, ssl_context=make_tls_context(authorities=authority().certificate))
        assert await trusting.headers() == (("Authorization", f"Bearer {NEW}"),)
        with pytest.raises(ClientConfigError, match=r"cannot reach https://127\.0\.0\.1"):
            await _credentials(url).headers()

    _play(Provider(), story, server_tls(tmp_path, loopback_identity()))


@pytest.mark.parametrize(
    ("settings", "answers", "why"),
    [
        pytest.param({"refresh_token": ""}, [], "there is no refresh-token; log in again", id="nothing to renew with"),
        pytest.param({}, [{"access_token": "s3cret"}], "has no id_token", id="an answer without id_token"),
        pytest.param({"client_secret": "wrong"}, [], "/token answered 401; log in again", id="a refusal"),
        pytest.param({"issuer_url": "http://127.0.0.1:1"}, [], "cannot reach http://127.0.0.1:1/", id="nobody there"),
    ],
)
def test_a_token_that_cannot_be_renewed_says_what_to_do(
    settings: dict[str, Any], answers: list[dict[str, str]], why: str
) -> None:
    async def story(url: str) -> None:
        with pytest.raises(ClientConfigError, match=f'^/f: user "u": auth-provider oidc: .*{why}') as refused:
            await _credentials(url, **settings).headers()
        assert "s3cret" not in str(refused.value)

    _play(Provider(answers=answers), story)


def test_without_a_refresh_token_a_refusal_is_final() -> None:
    credentials = _credentials("http://127.0.0.1:1", id_token=NEW, refresh_token="")

    async def story() -> None:
        assert not await credentials.renew(await credentials.headers(), 0)

    asyncio.run(story())
    assert "log in to the identity provider again" in credentials.advice()
