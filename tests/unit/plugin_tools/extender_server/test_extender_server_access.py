"""Who may call the extender server: nobody without its token or a certificate, and nobody under a strange name."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from served_plugins import Tiers
from test_extender_server_pages import ARGS, BIND, JSON, application

from kubesched.framework.effects import CallExtender
from kubesched.live.writes.writer import ExtenderCalls
from kubesched.plugin_tools.extender_server.server import (
    CallerRules,
    ExtenderServer,
    ListenSettings,
    TokenFileError,
    is_own_name,
    token_from,
    with_token,
)
from kubesched.scheduler.config import ExtenderConfiguration

TOKEN = "t0ken-of-some-length"
RULES = CallerRules(TOKEN, host_names=frozenset({"plugins.svc"}))
VERBS = ("filter", "prioritize", "preempt", "bind")


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _asked(*calls: tuple[str, str, dict[str, str]], server: ExtenderServer | None = None) -> list[int]:
    """(method, path, headers) -> status, one after another on one server."""
    served = server or application(Tiers, rules=RULES)

    async def scene() -> list[int]:
        await served.start()
        found: list[int] = []
        try:
            async with aiohttp.ClientSession(served.url) as session:
                for method, path, headers in calls:
                    data = json.dumps(BIND if path == "/bind" else ARGS) if method == "POST" else None
                    async with session.request(method, path, data=data, headers={**JSON, **headers}) as answer:
                        found.append(answer.status)
        finally:
            await served.stop()
        return found

    return asyncio.run(scene())


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Token {TOKEN}",
        _basic("kubesched", TOKEN[:-1]),
        _basic("somebody", TOKEN),
        _basic("", ""),
        "Basic %%%",
        "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
        "Bearer \udcff\udcfe",
    ],
)
def test_without_its_token_nobody_calls(header: str) -> None:
    headers = {"Authorization": header} if header else {}
    if "\udcff" in header:
        headers = {"Authorization": "Bearer \u00ff\u00fe"}
    calls = [("POST", f"/{verb}", headers) for verb in VERBS] + [("GET", "/metrics", headers)]
    assert _asked(*calls) == [401] * 5


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", _basic("kubesched", TOKEN)])
def test_with_its_token_everybody_calls(header: str) -> None:
    headers = {"Authorization": header}
    assert _asked(("POST", "/filter", headers), ("POST", "/bind", headers), ("GET", "/metrics", headers)) == [200] * 3


def test_probes_need_nothing() -> None:
    assert _asked(("GET", "/healthz", {}), ("GET", "/livez", {}), ("GET", "/readyz", {})) == [200] * 3


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8888",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "plugins.svc.evil",
        "[",
        "",
    ],
)
def test_a_strange_name_is_refused_with_the_token_too(host: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": host}
    assert _asked(("POST", "/bind", headers), ("GET", "/healthz", headers)) in ([421, 421], [400, 400])


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8888", "10.0.0.7:8888", "plugins.svc:8888"])
def test_its_own_names_are_taken(host: str) -> None:
    assert is_own_name(host, RULES.host_names)


def test_a_body_beyond_the_bound_is_not_read() -> None:
    async def scene() -> tuple[int, str]:
        server = application(Tiers, rules=RULES, most_bytes=1 << 20)
        await server.start()
        sent = 0

        async def endless() -> object:
            nonlocal sent
            while True:
                yield b" " * 65536
                sent += 65536

        headers = {**JSON, "Authorization": f"Bearer {TOKEN}"}
        try:
            async with (
                aiohttp.ClientSession(server.url) as session,
                session.post("/filter", data=endless(), headers=headers) as answer,
            ):
                text = await answer.text()
                assert sent < 64 << 20
                return answer.status, text
        finally:
            await server.stop()

    assert asyncio.run(scene()) == (413, "the body is larger than 1 MiB: see --max-request-mib\n")


def test_our_own_scheduler_shows_the_token_and_tells_it_to_nobody() -> None:
    async def scene() -> tuple[object, object]:
        server = application(Tiers, rules=RULES)
        await server.start()
        right, wrong = (with_token(server.url, token) for token in (TOKEN, "wr0ng-of-some-length"))
        calls = ExtenderCalls([ExtenderConfiguration(url_prefix=right)])
        try:
            body = json.dumps(ARGS).encode()
            answers = [
                await calls.call(CallExtender(0, "filter", f"{url}/filter", body, 5.0)) for url in (right, wrong)
            ]
            return answers[0], answers[1]
        finally:
            await calls.close()
            await server.stop()

    answered, refused = asyncio.run(scene())
    assert isinstance(answered, bytes) and json.loads(answered)["NodeNames"] == ["a"]
    assert "code 401" in str(refused) and "kubesched:***@" in str(refused)
    assert "wr0ng" not in str(refused)


def test_a_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "token"
    made = token_from(file)
    assert len(made) >= 32 and token_from(file) == made
    assert file.stat().st_mode & 0o777 == 0o600
    assert token_from(None) != token_from(None)


@pytest.mark.parametrize("content", [b"", b"short\n", b"with space in it, long", b"\xff" * 40])
def test_a_token_that_proves_nothing_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(TokenFileError, match=f"--token-file {file}: "):
        token_from(file)


def _identity(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate that is its own authority, and its key."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = (
        builder.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate, key_file = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return certificate, key_file


def test_a_certificate_of_its_authorities_is_as_good(tmp_path: Path) -> None:
    (own, own_key), (friend, friend_key) = (_identity(tmp_path, name) for name in ("server", "friend"))
    settings = ListenSettings("127.0.0.1", 0, own, own_key, friend)

    async def scene() -> list[int]:
        server = application(Tiers, rules=CallerRules(takes_certificates=True), settings=settings)
        await server.start()
        found: list[int] = []
        try:
            for shows in (False, True):
                trust = ssl.create_default_context(cafile=str(own))
                if shows:
                    trust.load_cert_chain(friend, friend_key)
                url = server.url.replace("127.0.0.1", "localhost")
                async with aiohttp.ClientSession(url) as session:
                    for path in ("/healthz", "/metrics"):
                        async with session.get(path, ssl=trust) as answer:
                            found.append(answer.status)
        finally:
            await server.stop()
        return found

    assert asyncio.run(scene()) == [200, 401, 200, 200]
