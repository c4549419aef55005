"""The extender server's socket: where it listens, and with which certificates.

server = ExtenderServer(settings, app)
await server.start()      # raises ListenError if it cannot listen as told
server.url
await server.stop()
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

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
        context.verify_mode = ssl.CERT_OPTIONAL  # probes have none; `access` asks for one where it counts
    return context
