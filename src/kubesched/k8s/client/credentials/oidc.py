"""Tokens of an OpenID Connect provider (`auth-provider: oidc`): used while valid, then renewed by the refresh token.

The issuer's discovery document says where to renew. A new refresh token, when the provider gives one, is kept in
memory only: the kubeconfig is the user's file, and a warning says that its token may be used up.

Next: `from_user`, which makes these.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote_plus

import aiohttp
import msgspec

from kubesched.k8s.client.credentials.stored import basic, bearer
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig_file import EntryPlace
from kubesched.k8s.client.target import Headers

_EARLY_S = 10.0
_TIMEOUT = aiohttp.ClientTimeout(total=30.0)
_log = logging.getLogger("kubesched.k8s.client.credentials")
T = TypeVar("T")


@dataclass(frozen=True)
class OidcSettings:
    """The provider's part of a kubeconfig; `ssl_context` trusts the issuer's authority, None means the system's."""

    issuer_url: str
    client_id: str
    client_secret: str
    id_token: str
    refresh_token: str
    ssl_context: ssl.SSLContext | None


class _Discovery(msgspec.Struct):
    token_endpoint: str = ""


class _Tokens(msgspec.Struct):
    id_token: str = ""
    refresh_token: str = ""


class _Claims(msgspec.Struct):
    exp: float = 0


class OidcCredentials:
    """The id-token as a bearer token."""

    connection_epoch = 0

    def __init__(self, settings: OidcSettings, place: EntryPlace, *, now: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._place = place
        self._now = now
        self._refresh_token = settings.refresh_token
        self._headers: Headers = ()
        self._expires_at_s = 0.0
        self._lock = asyncio.Lock()
        if settings.id_token:
            self._take(settings.id_token)

    async def headers(self) -> Headers:
        if self._now() >= self._expires_at_s - _EARLY_S:
            async with self._lock:
                if self._now() >= self._expires_at_s - _EARLY_S:
                    await self._refresh()
        return self._headers

    async def renew(self, used: Headers, epoch: int) -> bool:
        async with self._lock:
            if self._headers is used:
                if not self._refresh_token:
                    return False
                await self._refresh()
        return True

    def advice(self) -> str:
        return "log in to the identity provider again, so that the kubeconfig gets a new id-token and refresh-token"

    async def close(self) -> None:
        return None

    def _take(self, id_token: str) -> None:
        self._headers = bearer(id_token)
        self._expires_at_s = _expiry_s(id_token, self._place)

    async def _refresh(self) -> None:
        if not self._refresh_token:
            raise self._error("the id-token has expired and there is no refresh-token; log in again")
        async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True) as session:
            endpoint = await self._token_endpoint(session)
            tokens = await self._ask_for_tokens(session, endpoint)
        if tokens.refresh_token and tokens.refresh_token != self._refresh_token:
            self._refresh_token = tokens.refresh_token
            _log.warning(
                "The identity provider gave a new refresh token; the one in the kubeconfig may be used up",
                extra={"fields": {"user": self._place.name, "file": str(self._place.file)}},
            )
        self._take(tokens.id_token)

    async def _token_endpoint(self, session: aiohttp.ClientSession) -> str:
        url = f"{self._settings.issuer_url.rstrip('/')}/.well-known/openid-configuration"
        body = self._expect_200(url, *await self._fetch(session, "GET", url))
        found = _decode(body, _Discovery)
        if found is None or not found.token_endpoint:
            raise self._error(f"{url} does not name a token_endpoint")
        return found.token_endpoint

    async def _ask_for_tokens(self, session: aiohttp.ClientSession, endpoint: str) -> _Tokens:
        settings = self._settings
        form = {"grant_type": "refresh_token", "refresh_token": self._refresh_token}
        as_form = form | {"client_id": settings.client_id}
        if settings.client_secret:
            # Providers differ in where they want the secret: in a header, as the standard prefers, or in the form.
            login = basic(quote_plus(settings.client_id), quote_plus(settings.client_secret))
            as_form |= {"client_secret": settings.client_secret}
            status, body = await self._fetch(session, "POST", endpoint, form, login)
        else:
            status, body = 400, b""
        if status != 200:
            body = self._expect_200(endpoint, *await self._fetch(session, "POST", endpoint, as_form))
        tokens = _decode(body, _Tokens)
        if tokens is None or not tokens.id_token:
            raise self._error(
                "the identity provider's answer has no id_token: it was not asked for the scope openid at login, or it "
                "does not give id_tokens on refresh; log in again"
            )
        return tokens

    async def _fetch(
        self,
        session: aiohttp.ClientSession,
        method: str,
        url: str,
        form: Mapping[str, str] | None = None,
        login: Headers = (),
    ) -> tuple[int, bytes]:
        trusted = self._settings.ssl_context or True
        may_redirect = method == "GET"
        try:
            async with session.request(
                method, url, data=form, headers=login, ssl=trusted, allow_redirects=may_redirect
            ) as response:
                return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failure:
            raise self._error(f"cannot reach {url}: {failure or type(failure).__name__}") from None

    def _expect_200(self, url: str, status: int, body: bytes) -> bytes:
        if status != 200:
            raise self._error(f"{url} answered {status}; log in again if the refresh-token has expired")
        return body

    def _error(self, why: str) -> ClientConfigError:
        return self._place.error("auth-provider oidc", why)


def _decode(body: bytes, type_: type[T]) -> T | None:
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.DecodeError:
        return None


def _expiry_s(id_token: str, place: EntryPlace) -> float:
    """When a JWT expires. Its signature is the server's business."""
    parts = id_token.split(".")
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
    except (IndexError, binascii.Error, ValueError):
        raise place.error("auth-provider oidc: id-token", "is not a JSON web token") from None
    return claims.exp
