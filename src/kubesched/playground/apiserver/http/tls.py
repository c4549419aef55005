"""Keys and certificates of the server: an authority of its own, and what it signs, kept in files only the owner can
read.

Made once per data directory and used again after a restart, so that kubeconfigs stay valid; a server without a
directory makes new ones.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubesched.k8s.certificates import Authority, key_pem, new_key

_VALID_FOR = timedelta(days=3650)
_FILES = {"ca_pem": "ca.crt", "certificate_pem": "server.crt", "key_pem": "server.key", "signing_pem": "tokens.key"}


class IdentityError(ValueError):
    """A file that proves who the server is cannot be used; says which."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """All that proves who this server is, and the administrator's token."""

    ca_pem: bytes
    certificate_pem: bytes
    key_pem: bytes
    signing_pem: bytes
    token: str

    def signing_key(self) -> ec.EllipticCurvePrivateKey:
        """The key for service accounts' tokens."""
        key = serialization.load_pem_private_key(self.signing_pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    def ssl_context(self) -> ssl.SSLContext:
        """For serving; client certificates of our authority are accepted, none is required."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.ca_pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder) / "pair.pem"
            write_private(pair, self.key_pem + self.certificate_pem)
            context.load_cert_chain(pair)
        return context


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that only the owner can read, at once or not at all."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def load_or_create(folder: Path | None, address: str) -> ServerIdentity:
    """The identity kept in the folder; a new one when there is none, or no folder. Raises IdentityError."""
    if folder is None:
        return create(address)
    token_file = folder / "admin.token"
    files = {name: folder / file for name, file in _FILES.items()}
    if token_file.exists() and all(file.exists() for file in files.values()):
        for name, file in files.items():
            _check(file, _READERS[name])
        _check(token_file, _read_token)
        contents = {name: file.read_bytes() for name, file in files.items()}
        return ServerIdentity(**contents, token=token_file.read_text().strip())
    identity = create(address)
    for name, file in files.items():
        write_private(file, getattr(identity, name))
    write_private(token_file, identity.token.encode())
    return identity


def missing(folder: Path) -> list[Path]:
    """Which files of an identity are not there."""
    return [folder / name for name in ("admin.token", *_FILES.values()) if not (folder / name).exists()]


def _check(file: Path, read: Callable[[bytes], object]) -> None:
    try:
        read(file.read_bytes())
    except (ValueError, TypeError, UnsupportedAlgorithm, OSError) as problem:
        why = getattr(problem, "strerror", None) or "it holds no key, certificate or token"
        raise IdentityError(f"{file}: cannot be read ({why})") from None


def _read_key(content: bytes) -> None:
    key = serialization.load_pem_private_key(content, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError


def _read_token(content: bytes) -> None:
    if not content.strip() or not content.isascii():
        raise ValueError


_READERS: dict[str, Callable[[bytes], object]] = {
    "ca_pem": x509.load_pem_x509_certificate,
    "certificate_pem": x509.load_pem_x509_certificate,
    "key_pem": _read_key,
    "signing_pem": _read_key,
}


def create(address: str) -> ServerIdentity:
    """A new authority, server certificate, signing key and token."""
    now, key = datetime.now(UTC), new_key()
    authority = Authority.create("kubesched-ca", now, _VALID_FOR)
    hosts = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1", address)
    certificate = authority.server_certificate("kube-apiserver", list(dict.fromkeys(hosts)), key, now, _VALID_FOR)
    return ServerIdentity(authority.pem, certificate, key_pem(key), key_pem(new_key()), secrets.token_urlsafe(32))
