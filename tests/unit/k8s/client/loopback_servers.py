"""Servers on 127.0.0.1 for tests of the client, and certificates for them, made on the spot."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_END = dt.datetime(2120, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self._key).add_extension(constraints, critical=True)
        self.certificate = _pem(builder.sign(self._key, hashes.SHA256()))

    def issue(
        self, name: str, *, ips: tuple[str, ...] = (), hosts: tuple[str, ...] = (), expired: bool = False
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._name, key, expired)
        names = [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips]
        entries: list[x509.GeneralName] = [*names, *(x509.DNSName(host) for host in hosts)]
        if entries:
            builder = builder.add_extension(x509.SubjectAlternativeName(entries), critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Identity(_pem(builder.sign(self._key, hashes.SHA256())), private)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, expired: bool = False
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_START)
        .not_valid_after(_START + dt.timedelta(days=1) if expired else _END)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


_authorities: dict[str, Authority] = {}


def authority(name: str = "cluster") -> Authority:
    if name not in _authorities:
        _authorities[name] = Authority(name)
    return _authorities[name]


@cache
def loopback_identity(expired: bool = False) -> Identity:
    return authority().issue("server", ips=("127.0.0.1",), hosts=("kubernetes.default",), expired=expired)


@cache
def client_identity(name: str = "me", issuer: str = "cluster") -> Identity:
    return authority(issuer).issue(name)


def server_tls(folder: Path, identity: Identity, *, wants_client_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pem = folder / "server.pem"
    pem.write_bytes(identity.certificate + identity.key)
    context.load_cert_chain(pem)
    if wants_client_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority().certificate.decode())
    return context


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The URL of a server that answers everything with `handler`."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


def peer_name(request: web.Request) -> str:
    """The common name of the client certificate that the request came with."""
    assert request.transport is not None
    subject = request.transport.get_extra_info("peercert")["subject"]
    return str(subject[0][0][1])
