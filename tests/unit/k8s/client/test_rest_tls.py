"""TLS to a server on loopback: whom we trust, who we are, and what is said when that fails."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from loopback_servers import (
    authority,
    client_identity,
    loopback_identity,
    peer_name,
    server_tls,
    serving,
)

from kubesched.k8s.client.aiohttp_transport import AiohttpTransport
from kubesched.k8s.client.errors import AnswerLost, Unreachable
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.rest import RestClient, RetryPolicy
from kubesched.k8s.client.target import TlsMaterialError, make_tls_context, show_certificate

ONCE = RetryPolicy(max_attempts=1)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _kubeconfig(folder: Path, url: str, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = folder / "config"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "clusters": [{"name": "c", "cluster": {"server": url} | cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


async def _who(request: web.Request) -> web.StreamResponse:
    wants = request.transport is not None and request.transport.get_extra_info("peercert")
    return web.Response(text=peer_name(request) if wants else "nobody")


async def _ask(path: Path, use_aiohttp: bool = False) -> str:
    target = load_target(path, environ={})
    transport = AiohttpTransport(target) if use_aiohttp else None
    client = RestClient(target, qps=0, retries=ONCE, transport=transport)
    try:
        answer = (await client.request("GET", "/")).decode()
        async with client.stream("/", {}):
            return answer
    finally:
        await client.close()


def _run(
    folder: Path,
    cluster: dict[str, Any],
    user: dict[str, Any],
    *,
    identity: Callable[[], Any] = loopback_identity,
    wants_client_certificate: bool = False,
    use_aiohttp: bool = False,
) -> str:
    async def run() -> str:
        context = server_tls(folder, identity(), wants_client_certificate=wants_client_certificate)
        async with serving(_who, context) as url:
            return await _ask(_kubeconfig(folder, url, cluster, user), use_aiohttp)

    return asyncio.run(run())


def _trusted() -> dict[str, Any]:
    return {"certificate-authority-data": _b64(authority().certificate)}


both_transports = pytest.mark.parametrize("use_aiohttp", [False, True], ids=["own http1", "aiohttp"])


@both_transports
@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(_trusted, id="an authority as data"),
        pytest.param(lambda: {"insecure-skip-tls-verify": True}, id="anybody"),
        pytest.param(lambda: {"certificate-authority": "ca.crt"}, id="an authority in a file beside the kubeconfig"),
        pytest.param(
            lambda: {"certificate-authority-data": _b64(loopback_identity().certificate)},
            id="the server's own certificate as its authority",
        ),
        pytest.param(lambda: _trusted() | {"tls-server-name": "kubernetes.default"}, id="another name to expect"),
    ],
)
def test_a_server_is_trusted(tmp_path: Path, cluster: Callable[[], dict[str, Any]], use_aiohttp: bool) -> None:
    (tmp_path / "ca.crt").write_bytes(b"# our cluster \xc3\xbc\n" + authority().certificate)
    assert _run(tmp_path, cluster(), {}, use_aiohttp=use_aiohttp) == "nobody"


@both_transports
@pytest.mark.parametrize(
    ("cluster", "expired", "why"),
    [
        pytest.param(
            lambda: {"certificate-authority-data": _b64(authority("other").certificate)},
            False,
            "not signed by the expected authority .*; check certificate-authority in context",
            id="of another authority",
        ),
        pytest.param(dict, False, "not signed by the expected authority", id="that the system does not know"),
        pytest.param(_trusted, True, "certificate has expired; check the clocks", id="that has expired"),
        pytest.param(
            lambda: _trusted() | {"tls-server-name": "elsewhere"},
            False,
            "is for another name .*elsewhere.* set tls-server-name",
            id="for another name",
        ),
    ],
)
def test_a_server_is_not_trusted(
    tmp_path: Path, cluster: Callable[[], dict[str, Any]], expired: bool, why: str, use_aiohttp: bool
) -> None:
    with pytest.raises(Unreachable, match=rf"cannot reach the API server at https://127.0.0.1:\d+: .*{why}"):
        _run(tmp_path, cluster(), {}, identity=lambda: loopback_identity(expired), use_aiohttp=use_aiohttp)


@both_transports
def test_tls_to_a_server_that_speaks_none_says_so(tmp_path: Path, use_aiohttp: bool) -> None:
    async def run() -> None:
        async with serving(_who) as url:
            path = _kubeconfig(tmp_path, url.replace("http:", "https:"), _trusted(), {})
            with pytest.raises(Unreachable, match="does not speak TLS on this port; check whether the address"):
                await _ask(path, use_aiohttp)

    asyncio.run(run())


@both_transports
@pytest.mark.parametrize("as_files", [True, False], ids=["in files", "as data"])
def test_a_client_certificate_is_shown(tmp_path: Path, as_files: bool, use_aiohttp: bool) -> None:
    me = client_identity()
    (tmp_path / "me.crt").write_bytes(me.certificate)
    (tmp_path / "me.key").write_bytes(me.key)
    if as_files:
        user = {"client-certificate": "me.crt", "client-key": str(tmp_path / "me.key")}
    else:
        user = {"client-certificate-data": _b64(me.certificate), "client-key-data": _b64(me.key)}
    got = _run(tmp_path, _trusted(), user, wants_client_certificate=True, use_aiohttp=use_aiohttp)
    assert got == "me"


@pytest.mark.parametrize("issuer", ["none", "other"])
def test_a_client_certificate_that_is_refused_is_named_as_the_cause(tmp_path: Path, issuer: str) -> None:
    other = client_identity("x", "other")
    user = {"client-certificate-data": _b64(other.certificate), "client-key-data": _b64(other.key)}
    with pytest.raises((Unreachable, AnswerLost), match="check the client certificate"):
        _run(tmp_path, _trusted(), user if issuer == "other" else {}, wants_client_certificate=True)


def test_renewed_certificate_files_are_used(tmp_path: Path) -> None:
    """After a change of the files new requests use new connections with the new certificate."""
    _write(tmp_path, "before")

    async def run() -> list[str]:
        async with serving(_who, server_tls(tmp_path, loopback_identity(), wants_client_certificate=True)) as url:
            user = {"client-certificate": "me.crt", "client-key": "me.key"}
            target = load_target(_kubeconfig(tmp_path, url, _trusted(), user), environ={})
            client = RestClient(target, qps=0, retries=ONCE)
            names = [(await client.request("GET", "/")).decode()]
            _write(tmp_path, "after")
            assert await target.credentials.renew((), target.credentials.connection_epoch)
            names.append((await client.request("GET", "/")).decode())
            (tmp_path / "me.key").write_text("half written")
            assert not await target.credentials.renew((), target.credentials.connection_epoch)
            names.append((await client.request("GET", "/")).decode())
            await client.close()
            return names

    assert asyncio.run(run()) == ["before", "after", "after"]


def test_a_certificate_from_a_plugin_is_shown(tmp_path: Path) -> None:
    me = client_identity("plugged")
    answer = {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1",
        "status": {"clientCertificateData": me.certificate.decode(), "clientKeyData": me.key.decode()},
    }
    (tmp_path / "answer").write_text(json.dumps(answer))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "cat",
        "args": [str(tmp_path / "answer")],
        "interactiveMode": "Never",
    }
    assert _run(tmp_path, _trusted(), {"exec": plugin}, wants_client_certificate=True) == "plugged"


def test_a_renewed_authority_file_is_trusted(tmp_path: Path) -> None:
    """A cluster that replaces its authority: who was refused a minute ago is trusted once the file has changed."""
    (tmp_path / "ca.crt").write_bytes(authority("other").certificate)

    async def run() -> None:
        async with serving(_who, server_tls(tmp_path, loopback_identity())) as url:
            path = _kubeconfig(tmp_path, url, {"certificate-authority": "ca.crt"}, {})
            target = load_target(path, environ={})
            client = RestClient(target, qps=0, retries=ONCE)
            with pytest.raises(Unreachable, match="not signed by the expected authority"):
                await client.request("GET", "/")
            (tmp_path / "ca.crt").write_bytes(authority().certificate)
            assert not await target.credentials.renew((), 0), "it changes nothing about who we are"
            assert await client.request("GET", "/") == b"nobody"
            await client.close()

    asyncio.run(run())


def _write(folder: Path, name: str) -> None:
    identity = client_identity(name)
    (folder / "me.crt").write_bytes(identity.certificate)
    (folder / "me.key").write_bytes(identity.key)


def test_a_key_touches_no_file_that_others_can_read_nor_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no anonymous memory: a private folder, a private file, gone afterwards."""
    seen: list[tuple[int, int]] = []

    class Watching(ssl.SSLContext):
        def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
            path = Path(certfile)
            seen.append((path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777))
            super().load_cert_chain(certfile, keyfile, password)

    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    me = client_identity()
    show_certificate(Watching(ssl.PROTOCOL_TLS_CLIENT), me.certificate, me.key)
    assert seen == [(0o600, 0o700)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("certificate", "key", "why"),
    [
        pytest.param(
            lambda: client_identity().certificate,
            lambda: client_identity("x").key,
            "the private key does not belong to the certificate",
            id="of two identities",
        ),
        pytest.param(lambda: b"hello", lambda: client_identity().key, "not a PEM certificate", id="no certificate"),
        pytest.param(lambda: client_identity().certificate, lambda: b"hello", "not a PEM certificate", id="no key"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_refused(
    certificate: Callable[[], bytes], key: Callable[[], bytes], why: str
) -> None:
    with pytest.raises(TlsMaterialError, match=why):
        show_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate(), key())


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_authorities_that_are_none_are_refused(pem: bytes) -> None:
    with pytest.raises(TlsMaterialError, match="PEM certificate"):
        make_tls_context(authorities=pem)
