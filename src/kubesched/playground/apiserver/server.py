"""The API server as one object: start it, ask for its address, stop it.

Guarantees that ``start`` returns when requests are answered, that everything acknowledged survives a crash when there
is a data directory, and that ``stop`` ends watches cleanly. Read ``http/app.py`` for what happens with a request.

While it runs it forgets with time: lists of the past, and events. Who reads a list in pieces has five to ten minutes,
as with a real API server and its etcd; after that a continue token is answered with 410 and a token to go on with, from
the same key in the present. Watches have a history of their own, bounded by its size. Events go an hour after they were
written last: nobody else deletes them.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import gc
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from kubesched.k8s.connections.site import BoundedSite, ConnectionLimits
from kubesched.k8s.model.kubernetes_yaml import plain_yaml
from kubesched.playground.apiserver import bootstrap
from kubesched.playground.apiserver.admission.policies import AdmissionPolicies
from kubesched.playground.apiserver.http import identity
from kubesched.playground.apiserver.http.app import MOST_BODY_BYTES, HttpApp, StatusServer, with_plain_headers
from kubesched.playground.apiserver.http.identity import TokenAuthenticator
from kubesched.playground.apiserver.kinds.registry import TODAY, kinds_of
from kubesched.playground.apiserver.storage.memory import HistoryLimits, MemoryStore
from kubesched.playground.apiserver.storage.sqlite import (
    WHAT_TO_DO,
    BrokenRowError,
    DataDirectory,
    DataDirectoryError,
    ForeignDatabaseError,
    SqliteStore,
)
from kubesched.playground.apiserver.storage.store import FieldsOf, ObjectKey, Store, StoreFailedError
from kubesched.playground.apiserver.verbs.request import Api, decode_stored
from kubesched.playground.apiserver.verbs.service_tokens import ServiceTokens
from kubesched.playground.apiserver.verbs.writing import refresh_custom_kinds


def ease_collector() -> None:
    """For a process that only serves, once it does: what was read back stays, and next to nothing that requests leave
    behind has cycles. Every full collection would walk through all of it."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How to serve. Without a data directory everything is in memory and gone at the end; port 0 takes a free one."""

    data: Path | None = None
    bind_address: str = "127.0.0.1"
    port: int = 0
    tls: bool = True
    history: HistoryLimits = field(default_factory=HistoryLimits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    version: str = TODAY
    """Of Kubernetes; one of `registry.VERSIONS`."""
    mounts_tokens: bool = False
    """Whether new pods get a service account and its token; needs a controller that makes the account ``default``."""

    def why_not_serving(self, problem: OSError) -> str:
        """In a line, for whoever chose the settings."""
        if problem.filename:
            return f"{problem.filename}: {problem.strerror}"
        where = f"{self.bind_address}:{self.port}"
        if problem.errno == errno.EADDRINUSE:
            return f"{where}: the port is in use; choose another with --port (0 picks a free one)"
        return f"cannot serve on {where}: {problem.strerror or problem}"


class ApiServer:
    """One running API server."""

    def __init__(self, settings: ServerSettings) -> None:
        """Raises DataDirectoryError."""
        self._settings = settings
        self._directory = None if settings.data is None else DataDirectory(settings.data)
        self._identity = self._load_identity()
        self._runner: web.ServerRunner | None = None
        self._app: HttpApp | None = None
        self._expiring: list[asyncio.Task[None]] = []
        self._policies: AdmissionPolicies | None = None
        self._port = settings.port
        self.store: MemoryStore | None = None

    def _load_identity(self) -> identity.ServerIdentity:
        directory = self._directory
        try:
            if (
                directory is not None
                and directory.cluster is not None
                and (missing := identity.missing(directory.path))
            ):
                raise DataDirectoryError(f"{missing[0]}: is missing: {WHAT_TO_DO}")
            return identity.load_or_create(self._settings.data, self._settings.bind_address)
        except (identity.IdentityError, DataDirectoryError) as problem:
            if directory is not None:
                directory.close()
            if isinstance(problem, DataDirectoryError):
                raise
            raise DataDirectoryError(f"{problem}: {WHAT_TO_DO}") from None

    @property
    def url(self) -> str:
        scheme = "https" if self._settings.tls else "http"
        host = self._settings.bind_address
        host = "127.0.0.1" if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
        return f"{scheme}://{host}:{self._port}"

    @property
    def ca_pem(self) -> bytes:
        return self._identity.ca_pem

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self._identity.token

    async def start(self) -> None:
        """Opens the store and begins to serve."""
        data, version = self._settings.data, self._settings.version
        served = kinds_of(version)
        kinds = {kind.storage_key: kind.selectable_fields for kind in reversed(served) if not kind.stored_as}
        if self._directory is None:
            self.store = MemoryStore(self._settings.history)
        else:
            self.store = await self._opened(self._directory, kinds)
        api = Api(self.store, served, mounts_tokens=self._settings.mounts_tokens, version=version)
        policies = api.admission = AdmissionPolicies(api)
        refresh_custom_kinds(api)
        bootstrap.ensure(api, self.ca_pem)
        await self.store.settle()
        self.store.compact(self.store.revision if data is None else self.store.compacted)
        tokens = ServiceTokens(api, self._identity.signing_key())
        self._app = HttpApp(api, TokenAuthenticator(self.token, tokens), tokens)
        self._policies = policies
        if isinstance(self.store, SqliteStore):
            self.store.on_taken_back = partial(self._look_again, self._app)
        await self._listen(self._app)
        self._app.url = self.url
        self._expiring = [
            asyncio.create_task(expire_forever(api), name="expiry of events"),
            asyncio.create_task(expire_lists_forever(self.store), name="expiry of old lists"),
        ]

    async def _opened(self, directory: DataDirectory, kinds: Mapping[str, FieldsOf]) -> SqliteStore:
        directory.check_objects()
        path = directory.objects
        try:
            store = await SqliteStore.open(path, kinds, self._settings.history, directory.cluster)
        except (ForeignDatabaseError, BrokenRowError) as problem:
            raise DataDirectoryError(f"{path}: {problem}: {WHAT_TO_DO}") from None
        except sqlite3.DatabaseError as problem:
            raise DataDirectoryError(f"{path}: cannot be read ({problem}): {WHAT_TO_DO}") from None
        directory.note_cluster(store.cluster)
        return store

    def _look_again(self, app: HttpApp) -> None:
        """Writes were taken back that may have been acted upon already."""
        refresh_custom_kinds(app.api)
        app.authorizer.forget()
        if self._policies is not None:
            self._policies.forget()

    async def _listen(self, app: HttpApp) -> None:
        loop = asyncio.get_running_loop()
        server = StatusServer(
            app.handle,
            request_factory=lambda message, payload, protocol, writer, task: web.BaseRequest(
                with_plain_headers(message), payload, protocol, writer, task, loop, client_max_size=MOST_BODY_BYTES
            ),
            auto_decompress=False,  # as the real server, which takes no compressed bodies
            handler_cancellation=True,  # a watch whose client is gone ends at once
            access_log=None,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=2.0)
        await self._runner.setup()
        context = self._identity.ssl_context() if self._settings.tls else None
        site = BoundedSite(
            self._runner,
            self._settings.bind_address,
            self._settings.port,
            ssl_context=context,
            limits=self._settings.connections,
        )
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Ends all watches, closes connections, then the store."""
        if self._app is not None:
            self._app.stopping.set()
            self._app.api.store.wake()
        for task in self._expiring:
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
        if self.store is not None:
            await self.store.close()
        if self._directory is not None:
            self._directory.close()

    def write_kubeconfig(self, path: Path) -> None:
        """A kubeconfig with the administrator's token, readable by the owner only."""
        cluster = {"server": self.url}
        if self._settings.tls:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca_pem).decode()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kubesched", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "kubesched", "context": {"cluster": "kubesched", "user": "admin"}}],
            "current-context": "kubesched",
        }
        identity.write_private(path, plain_yaml(content).encode())


EXPIRE_EVERY_S = 300.0


async def expire_lists_forever(store: Store, every_s: float = EXPIRE_EVERY_S) -> None:
    seen = store.revision
    while True:
        await asyncio.sleep(every_s)
        store.expire_lists(seen)
        seen = store.revision


KEPT_FOR = timedelta(hours=1)
LOOK_EVERY_S = 150.0

_EVENTS = "events"
_AT_ONCE = 200
"""After so many, others get their turn."""


async def expire_forever(api: Api) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            await expire_events(api)
        except StoreFailedError:
            continue  # some other time


async def expire_events(api: Api) -> int:
    """How many were too old."""
    resource = api.resource_of(_EVENTS)
    assert resource is not None
    oldest, n_gone = api.clock() - KEPT_FOR, 0
    for stored in list(api.store.list(_EVENTS)):
        event = decode_stored(stored)
        if last_written(event) >= oldest:
            continue
        key = ObjectKey(event["metadata"]["namespace"], event["metadata"]["name"])
        now = api.store.get(_EVENTS, key)
        if now is None or now.revision != stored.revision:
            continue
        api.store.delete(_EVENTS, key, event, resource.selectable_fields)
        n_gone += 1
        if n_gone % _AT_ONCE == 0:
            await api.store.settle()
    return n_gone


def last_written(event: dict[str, Any]) -> datetime:
    """As far as the event itself tells."""
    times = (
        event["metadata"].get("creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        (event.get("series") or {}).get("lastObservedTime"),
    )
    return max((_moment(text) for text in times if text), default=datetime.max.replace(tzinfo=UTC))


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
