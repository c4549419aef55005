"""Who asks, and who answers: tokens and certificates of clients, and the server's own keys and certificates.

Clients come with bearer tokens, client certificates or service accounts' tokens; headers say who they ask to be
instead. Guarantees the real server's answers: a token that is not known is 401, none at all is ``system:anonymous``
(which may read health and version only). ``verbs/authorization.py`` decides what the user may do,
``verbs/impersonation.py`` whom it may be.

The server has an authority of its own. It and what it signs are kept in files only the owner can read. They are made
once per data directory and used again after a restart, so that kubeconfigs stay valid; a server without a directory
makes new ones.
"""

from __future__ import annotations

import hmac
import os
import secrets
import ssl
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from aiohttp import web
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from multidict import CIMultiDictProxy

from kubesched.k8s.certificates import Authority, key_pem, new_key
from kubesched.playground.apiserver.errors import StatusError, bad_request
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.verbs.request import RequestUser
from kubesched.playground.apiserver.verbs.service_tokens import (
    API_AUDIENCES,
    Identified,
    InvalidTokenError,
    ServiceTokens,
)

_EXTRA = "impersonate-extra-"
ANONYMOUS = RequestUser("system:anonymous", ("system:unauthenticated",))
ADMIN = RequestUser("admin", ("system:masters", "system:authenticated"), "admin")


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


class TokenAuthenticator:
    """Knows the administrator's token and checks those of service accounts."""

    def __init__(self, token: str, service_tokens: ServiceTokens) -> None:
        self._token = token.encode()
        self._service_tokens = service_tokens
        self._of_connections: WeakKeyDictionary[ssl.SSLObject, RequestUser | None] = WeakKeyDictionary()

    def user_of(self, request: web.BaseRequest) -> RequestUser:
        """The user of the connection or of the token. Raises 401 for a wrong token."""
        certified = self._of_certificate(request)
        if certified is not None:
            return certified
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        try:
            return self.identify(token).user
        except InvalidTokenError:
            raise unauthorized() from None

    def _of_certificate(self, request: web.BaseRequest) -> RequestUser | None:
        """A connection keeps its certificate: it is read with the first request."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport else None
        if not isinstance(connection, ssl.SSLObject):
            return None
        if connection not in self._of_connections:
            self._of_connections[connection] = _user_of_certificate(connection.getpeercert())
        return self._of_connections[connection]

    def identify(self, token: str, audiences: Sequence[str] = API_AUDIENCES) -> Identified:
        """Whose token it is. Raises InvalidTokenError."""
        if not token.isascii():
            raise InvalidTokenError
        if not hmac.compare_digest(token.encode(), self._token):
            return self._service_tokens.identify(token, audiences)
        common = tuple(audience for audience in audiences if audience in API_AUDIENCES)
        if not common:
            raise InvalidTokenError
        return Identified(ADMIN, common)


def _user_of_certificate(certificate: Mapping[str, Any] | None) -> RequestUser | None:
    """The subject of a certificate that our authority signed: the common name is the user, the organizations are the
    groups.
    """
    pairs = [pair for name in (certificate or {}).get("subject", ()) for pair in name]
    names = [value for key, value in pairs if key == "commonName"]
    groups = [value for key, value in pairs if key == "organizationName"]
    return RequestUser(names[0], (*groups, "system:authenticated")) if names else None


def impersonated(headers: CIMultiDictProxy[str]) -> RequestUser | None:
    """The user that the headers ask to be, if any, exactly as asked for; ``Impersonation.become`` says whether."""
    name, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = tuple(headers.getall("Impersonate-Group", []))
    extra: dict[str, list[str]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA):
            extra.setdefault(unquote(header[len(_EXTRA) :].lower()), []).append(value)
    if name:
        return RequestUser(name, groups, uid, extra)
    if uid or groups or extra:
        raise _without_name(groups, uid, extra)
    return None


def _without_name(groups: tuple[str, ...], uid: str, extra: Mapping[str, list[str]]) -> StatusError:
    shown_extra = "(nil)"
    if extra:
        shown_extra = "{" + ", ".join(f"{quoted(key)}:[]string{_strings(extra[key])}" for key in sorted(extra)) + "}"
    listed = f"[]string{_strings(groups)}" if groups else "[]string(nil)"
    user = f'&user.DefaultInfo{{Name:"", UID:{quoted(uid)}, Groups:{listed}, Extra:map[string][]string{shown_extra}}}'
    return bad_request(f"requested {user} without impersonating a user name")


def _strings(texts: Iterable[str]) -> str:
    return "{" + ", ".join(quoted(text) for text in texts) + "}"


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
    """Writes a file that only the owner can read, at once or not at all. Raises OSError that names it."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise OSError(problem.errno, problem.strerror, str(path)) from None


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
