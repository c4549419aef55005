"""A secure port on loopback for tests, an API server that answers reviews as told, and certificates for clients."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubesched.k8s.client.errors import ApiError, Unreachable
from kubesched.live.serving.server import SecureServer
from kubesched.live.serving.settings import AuthenticationSettings, ServingSettings
from kubesched.live.serving.sources import Sources

LOCAL = ServingSettings(bind_address="127.0.0.1", port=0, shutdown_timeout_s=0.1)
MASTERS = {"Authorization": "Bearer masters"}


@dataclass
class Answered:
    status: int
    headers: Mapping[str, str]
    body: str


class ReviewingServer:
    """Tokens and what their users may see; everything asked is kept. Implements `ReviewClient`."""

    def __init__(self, *, config_map: dict[str, str] | None = None) -> None:
        self.users: dict[str, dict[str, Any]] = {
            "masters": {"username": "root", "groups": ["system:masters"]},
            "alice": {"username": "alice", "groups": ["dev"], "uid": "7", "extra": {"scopes": ["a", "b"]}},
        }
        self.allowed: set[tuple[str, str]] = set()
        """(user, path)"""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.config_map = config_map
        self.failure: Exception | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        question = msgspec.json.decode(body) if body else {}
        self.asked.append((f"{method} {path}", question))
        if self.failure is not None:
            raise self.failure
        if path.endswith("/tokenreviews"):
            return msgspec.json.encode({"status": self._token(question["spec"]["token"])})
        if path.endswith("/subjectaccessreviews"):
            spec = question["spec"]
            path = spec["nonResourceAttributes"]["path"]
            is_allowed = (spec["user"], path) in self.allowed
            return msgspec.json.encode({"status": {"allowed": is_allowed, "reason": "" if is_allowed else "no rule"}})
        if self.config_map is None:
            raise ApiError(404, "NotFound", "not found")
        return msgspec.json.encode({"data": self.config_map})

    def _token(self, token: str) -> dict[str, Any]:
        user = self.users.get(token)
        return {"authenticated": False} if user is None else {"authenticated": True, "user": user}

    def reviews(self, kind: str) -> list[dict[str, Any]]:
        return [question["spec"] for path, question in self.asked if path.endswith(kind)]


class OutOfReach(ReviewingServer):
    def __init__(self) -> None:
        super().__init__()
        self.failure = Unreachable("connection refused: is the API server up?")


@dataclass
class Asking:
    port: int
    context: ssl.SSLContext = field(default_factory=lambda: trusting_all())

    async def get(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answered:
        connector = aiohttp.TCPConnector(ssl=self.context, force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, f"https://127.0.0.1:{self.port}{path}", headers=headers) as answer,
        ):
            return Answered(answer.status, answer.headers, await answer.text())

    def with_certificate(self, pair: tuple[Path, Path]) -> Asking:
        context = trusting_all()
        context.load_cert_chain(*pair)
        return replace(self, context=context)


@asynccontextmanager
async def serving(
    sources: Sources | None = None,
    client: ReviewingServer | None = None,
    settings: ServingSettings = LOCAL,
) -> AsyncIterator[Asking]:
    server = SecureServer(settings, Sources() if sources is None else sources, client)
    await server.start()
    try:
        yield Asking(server.port)
    finally:
        await server.stop()


def authenticating(**fields: Any) -> ServingSettings:
    return replace(LOCAL, authentication=AuthenticationSettings(**fields))


def trusting_all() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Authority:
    """A CA that signs client certificates."""

    def __init__(self, directory: Path, name: str, parent: Authority | None = None) -> None:
        self.directory = directory
        self.name = name
        self.parent = parent
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = (parent or self)._sign(_name(name), self.key, is_ca=True)
        self.file = directory / f"{name}.crt"
        self.file.write_text(self.pem)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(
        self, common_name: str, *organizations: str, for_time: timedelta = timedelta(days=1)
    ) -> tuple[Path, Path]:
        """Files of a certificate, with that of an intermediate authority behind it, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_name(common_name, *organizations), key, is_ca=False, for_time=for_time)
        files = self.directory / f"{self.name}-{common_name}.crt", self.directory / f"{self.name}-{common_name}.key"
        chain = self.pem if self.parent is not None else ""
        files[0].write_text(certificate.public_bytes(serialization.Encoding.PEM).decode() + chain)
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        is_ca: bool,
        for_time: timedelta = timedelta(days=1),
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(_name(self.name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=2))
            .not_valid_after(now + for_time)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if not is_ca:
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
            builder = builder.add_extension(usage, critical=False)
        return builder.sign(self.key, hashes.SHA256())


def _name(common_name: str, *organizations: str) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
