"""The extender server's socket: where it listens, with which certificates, and who may call.

    server = ExtenderServer(settings, app)
    await server.start()      # raises ListenError if it cannot listen as told
    server.url
    await server.stop()

Whoever shows its token or a certificate of its authorities may call, asked for under a name that the server has. Calls
bind pods and tell why nodes are rejected, and other users of a machine reach its loopback. A stock kube-scheduler can
show a client certificate (`extenders[].tlsConfig`) or a token in the address (`https://kubesched:<token>@host`, sent as
Basic authentication); others may use `Authorization: Bearer`. Health pages answer everybody: probes have neither. A
name that leads here but is not ours (DNS rebinding from a browser) is refused before anything else.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.k8s.connections.site import BoundedSite, ConnectionLimits

_MOST_CONNECTIONS = 512
_FINISH_WITHIN_S = 2.0


class ListenError(Exception):
    """The server cannot listen; the text names the option that is to blame."""


@dataclass(frozen=True, slots=True)
class ListenSettings:
    """`client_ca_file`: who shows a certificate of these authorities may call, without any token."""

    bind_address: str = "127.0.0.1"
    port: int = 8888
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None


class ExtenderServer:
    def __init__(self, settings: ListenSettings, app: web.Application) -> None:
        self._settings = settings
        self._app = app
        self._runner: web.AppRunner | None = None
        self._port = settings.port

    @property
    def url(self) -> str:
        return url_of(self._settings, self._port)

    async def start(self) -> None:
        settings = self._settings
        context = tls_context(settings)
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=_FINISH_WITHIN_S)
        await runner.setup()
        try:
            limits = ConnectionLimits(total=_MOST_CONNECTIONS)
            site = BoundedSite(runner, settings.bind_address, settings.port, ssl_context=context, limits=limits)
            await site.start()
        except OSError as problem:
            await runner.cleanup()
            where = f"--bind-address {settings.bind_address}, --port {settings.port}"
            raise ListenError(f"{where}: {problem.strerror or problem}") from None
        self._runner = runner
        self._port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Stops listening, and lets calls that are under way finish."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


def url_of(settings: ListenSettings, port: int) -> str:
    scheme = "http" if settings.cert_file is None else "https"
    host = f"[{settings.bind_address}]" if ":" in settings.bind_address else settings.bind_address
    return f"{scheme}://{host}:{port}"


def tls_context(settings: ListenSettings) -> ssl.SSLContext | None:
    """None for plain HTTP."""
    if settings.cert_file is None or settings.key_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    files = f"--tls-cert-file {settings.cert_file}, --tls-private-key-file {settings.key_file}"
    try:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    except (OSError, ssl.SSLError) as problem:
        raise ListenError(f"{files}: {problem.strerror or problem}") from None
    if settings.client_ca_file is not None:
        try:
            context.load_verify_locations(settings.client_ca_file)
        except (OSError, ssl.SSLError) as problem:
            raise ListenError(f"--client-ca-file {settings.client_ca_file}: {problem.strerror or problem}") from None
        context.verify_mode = ssl.CERT_OPTIONAL  # probes have none; callers are asked for one where it counts
    return context


USER = "kubesched"
_OPEN_PATHS = ("/healthz", "/livez", "/readyz")
_SHORTEST_TOKEN = 16
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="kubesched extender"'}


class TokenFileError(Exception):
    """The token cannot be read or made; the text names the file."""


@dataclass(frozen=True, slots=True)
class CallerRules:
    """`token` None: none is asked for. `takes_certificates`: a certificate that TLS has verified is as good."""

    token: str | None = None
    takes_certificates: bool = False
    host_names: frozenset[str] = frozenset()
    """Names besides `localhost` and addresses by which callers may ask for the server."""

    @property
    def lets_anybody_in(self) -> bool:
        return self.token is None and not self.takes_certificates


def guard(rules: CallerRules) -> Middleware:
    """Lets nobody else in."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_own_name(request.host, rules.host_names):
            return web.Response(status=421, text="this server does not go by that name: see --url-prefix\n")
        if request.path in _OPEN_PATHS or rules.lets_anybody_in or _is_known(request, rules):
            return await handler(request)
        text = "show the token or a client certificate: see the configuration that was printed\n"
        return web.Response(status=401, text=text, headers=_CHALLENGE if rules.token is not None else {})

    return guarded


def is_own_name(host: str, names: frozenset[str]) -> bool:
    """An address cannot be a name that an attacker points here (DNS rebinding); a name must be among those given."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in ("localhost", *names):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_known(request: web.Request, rules: CallerRules) -> bool:
    if rules.takes_certificates and request.transport is not None and request.transport.get_extra_info("peercert"):
        return True
    given = _given_token(request.headers.get("Authorization", ""))
    return rules.token is not None and secrets.compare_digest(
        given.encode(errors="surrogateescape"), rules.token.encode()
    )


def _given_token(header: str) -> str:
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        user, _, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return ""
    return password if user == USER else ""


def token_from(file: Path | None) -> str:
    """The token in the file, which is made, for its owner's eyes only, if it is missing; without a file a new one.
    Raises TokenFileError."""
    if file is None:
        return secrets.token_urlsafe(32)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_token(file)
    except OSError as problem:
        raise TokenFileError(f"--token-file {file}: {problem.strerror or problem}") from None
    token = secrets.token_urlsafe(32)
    try:
        with os.fdopen(descriptor, "w") as made:
            made.write(token + "\n")
    except OSError as problem:
        file.unlink(missing_ok=True)
        raise TokenFileError(f"--token-file {file}: {problem.strerror or problem}") from None
    return token


def _read_token(file: Path) -> str:
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise TokenFileError(f"--token-file {file}: {getattr(problem, 'strerror', None) or 'not text'}") from None
    if len(token) < _SHORTEST_TOKEN or not all(sign.isalnum() or sign in "-_.~" for sign in token):
        rule = f"must hold one token of at least {_SHORTEST_TOKEN} letters, digits, and - _ . ~"
        raise TokenFileError(f"--token-file {file}: {rule}")
    return token


def with_token(url: str, token: str) -> str:
    """The address by which a caller shows the token."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{USER}:{token}@{parts.netloc.rpartition('@')[2]}"))
