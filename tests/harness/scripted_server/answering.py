"""One request of the scripted server, from its arrival to its answer: may it, get and list, or a refusal.

It has its own token and refusals, and answers the reviews that others ask it for.

Next: `writing` and `watching`, which do the rest of what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from harness.scripted_server import writing
from harness.scripted_server.faults import DroppedError, RecordedRequest, RefusalError, not_found
from harness.scripted_server.routing import Address, discovery, verb_of
from harness.scripted_server.storage import Stored, StoredItem, VersionedStorage, selection
from harness.scripted_server.watching import OpenWatch
from kubesched.playground.apiserver.http.answers import PROTOBUF
from kubesched.playground.apiserver.http.bodies import plain_binding

if TYPE_CHECKING:
    from harness.scripted_server.server import ScriptedServer

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass(slots=True)
class Access:
    """`accepts_token` is what callers must show. `token_users` answers token reviews (token → user info) and `grants`
    answers access reviews, given their spec."""

    accepts_token: str | None = None
    user: str = "system:kube-scheduler"
    refused: set[tuple[str, str]] = field(default_factory=set)
    token_users: dict[str, dict[str, Any]] = field(default_factory=dict)
    grants: Callable[[dict[str, Any]], bool] = field(default=lambda spec: True)

    def check_token(self, authorization: str) -> None:
        if self.accepts_token is not None and authorization != f"Bearer {self.accepts_token}":
            raise RefusalError(401, "Unauthorized")

    def check(self, verb: str, address: Address) -> None:
        """As RBAC would."""
        if (verb, address.resource) not in self.refused:
            return
        where = f'in the namespace "{address.namespace}"' if address.namespace else "at the cluster scope"
        what = f'{address.resource} is forbidden: User "{self.user}" cannot {verb} resource "{address.resource}"'
        raise RefusalError(403, f'{what} in API group "{address.served.group}" {where}')

    def review(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a token or access review; `None` if the path is none."""
        spec = body.get("spec") or {}
        if path == TOKEN_REVIEWS:
            user = self.token_users.get(spec.get("token", ""))
            status: dict[str, Any] = {"authenticated": user is not None, **({"user": user} if user else {})}
        elif path == ACCESS_REVIEWS:
            status = {"allowed": self.grants(spec)}
        else:
            return None
        return {**body, "status": status}


class Reading:
    """Answers without changing anything. Remembers the rest of a list that was asked for in pages."""

    def __init__(self, storage: VersionedStorage) -> None:
        self._storage = storage
        self._rests: dict[str, tuple[int, list[StoredItem]]] = {}

    def get(self, address: Address) -> bytes:
        found = self._storage.get(address.served.resource, address.key)
        if found is None:
            raise not_found(address.served.resource, str(address.name))
        return msgspec.json.encode(found)

    def list_page(self, address: Address, query: Mapping[str, str]) -> bytes:
        """A page; of a list from the cache (version 0), as on a real server, always the whole."""
        revision, items = self._asked_for(address, query)
        limit = int(query.get("limit") or 0)
        rest: list[StoredItem] = []
        if limit and query.get("resourceVersion", "") != "0":
            items, rest = items[:limit], items[limit:]
        metadata: dict[str, object] = {"resourceVersion": str(revision)}
        if rest:
            metadata["continue"] = self._remember(revision, rest)
            metadata["remainingItemCount"] = len(rest)
        served = address.served
        head = {"kind": f"{served.kind}List", "apiVersion": served.api_version, "metadata": metadata}
        body = b",".join([stored.encoded for stored in items])
        return b'%b,"items":[%b]}' % (msgspec.json.encode(head)[:-1], body)

    def forget(self) -> None:
        """No list can be continued any more."""
        self._rests.clear()

    def _asked_for(self, address: Address, query: Mapping[str, str]) -> tuple[int, list[StoredItem]]:
        if token := query.get("continue"):
            if token not in self._rests:
                raise RefusalError(
                    410, "The provided continue parameter is too old to display a consistent list result."
                )
            return self._rests.pop(token)
        self._check_version(query.get("resourceVersion", ""))
        return self._storage.revision, self._matching(address, query)

    def selected(self, address: Address, query: Mapping[str, str]) -> list[Stored]:
        return [stored.item for stored in self._matching(address, query)]

    def _matching(self, address: Address, query: Mapping[str, str]) -> list[StoredItem]:
        items = self._storage.items(address.served.resource)
        matches = selection(query, address.namespace)
        return items if matches is None else [stored for stored in items if matches(stored.item)]

    def _check_version(self, asked: str) -> None:
        now = self._storage.revision
        if asked and int(asked) > now:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            message = f"Too large resource version: {asked}, current: {now}"
            raise RefusalError(504, f"Timeout: {message}", retry_after_s=1, causes=(cause,))

    def _remember(self, revision: int, rest: list[StoredItem]) -> str:
        token = f"{revision}-{rest[0].revision}-{len(rest)}"
        self._rests[token] = (revision, rest)
        return token


_PLAIN_PATHS = {"/healthz": b"ok", "/livez": b"ok", "/readyz": b"ok"}
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.4", "platform": "linux/amd64"}


class Answering:
    def __init__(self, server: ScriptedServer, streams_lists: bool | None) -> None:
        self.reading = Reading(server.storage)
        self._server = server
        self._streams_lists = streams_lists

    async def handle(self, request: web.Request) -> web.StreamResponse:
        recorded = await _recorded(request)
        self._server.requests.append(recorded)
        fault = self._server.faults.next_for(recorded)
        try:
            if fault is not None and not fault.after:
                await fault.strike()
            response = await self._answer(request, recorded)
            if fault is not None and fault.after:
                await fault.strike()
        except RefusalError as refusal:
            return _json(refusal.body(), refusal.status, refusal.headers())
        except DroppedError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        return response

    async def _answer(self, request: web.Request, recorded: RecordedRequest) -> web.StreamResponse:
        server, path = self._server, recorded.path
        if path in _PLAIN_PATHS:
            return web.Response(body=_PLAIN_PATHS[path])
        if path == "/version":
            return _json(_VERSION)
        server.access.check_token(recorded.headers.get("Authorization", ""))
        if recorded.method == "POST":
            review = server.access.review(path, _body_of(recorded))
            if review is not None:
                return _json(review, 201)
        if recorded.method == "GET" and (found := discovery(path, server.routes.kinds())) is not None:
            return _json(found)
        address = server.routes.resolve(_with_pod_of_binding(recorded))
        server.access.check(recorded.verb, address)
        if recorded.verb == "watch":
            return await self._watch(request, address, recorded.query)
        return self._read_or_write(address, recorded)

    def _read_or_write(self, address: Address, recorded: RecordedRequest) -> web.StreamResponse:
        writing, verb = self._server.writing, recorded.verb
        if verb == "get":
            return _json(self.reading.get(address))
        if verb == "list":
            return _json(self.reading.list_page(address, recorded.query))
        body = _body_of(recorded)
        if verb == "deletecollection":
            return _json(self._delete_all(address, recorded, body))
        if verb == "create":
            return _json(self._create(address, body), 201)
        if verb == "update":
            return _json(writing.update(address, body))
        if verb == "patch":
            return _json(writing.patch(address, recorded.headers.get("Content-Type", ""), body))
        if verb == "delete":
            return _json(writing.delete(address, _delete_options(recorded, body)))
        raise RefusalError(405, f"the server does not allow this method on the requested resource: {verb}")

    def _delete_all(self, address: Address, recorded: RecordedRequest, body: Any) -> dict[str, Any]:
        options = _delete_options(recorded, body)
        for item in self.reading.selected(address, recorded.query):
            metadata = item["metadata"]
            one = Address(address.served, metadata.get("namespace"), metadata["name"], None)
            self._server.writing.delete(one, options)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def bind(self, address: Address, body: Any) -> dict[str, Any]:
        return writing.bind(self._server.storage, self._server.writing, address, body)

    def _create(self, address: Address, body: Any) -> dict[str, Any]:
        if address.subresource == "binding":
            return self.bind(address, body)
        if address.subresource == "eviction":
            return writing.evict(self._server.writing, address, body)
        return self._server.writing.create(address.served, address.namespace, body)

    async def _watch(self, request: web.Request, address: Address, query: Mapping[str, str]) -> web.StreamResponse:
        if self._streams_lists is None:
            query = {name: value for name, value in query.items() if name != "sendInitialEvents"}
        elif query.get("sendInitialEvents") and not self._streams_lists:
            problem = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            raise RefusalError(422, f"ListOptions.meta.k8s.io is invalid: sendInitialEvents: Forbidden: {problem}")
        watch = OpenWatch(self._server.storage, address.served, address.namespace, query)
        return await self._server.watches.serve(watch, request)


async def _recorded(request: web.Request) -> RecordedRequest:
    body = await request.read() if request.body_exists else b""
    query = dict(request.query)
    verb = verb_of(request.method, request.path, query)
    return RecordedRequest(request.method, request.path, verb, query, request.headers, body)


def _delete_options(recorded: RecordedRequest, body: Any) -> dict[str, Any]:
    options = dict(body)
    if grace := recorded.query.get("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = int(grace)
    return options


def _with_pod_of_binding(recorded: RecordedRequest) -> str:
    """`…/bindings` names the pod in the body; seen from here it is the pod's subresource."""
    path, found, rest = recorded.path.rpartition("/bindings")
    if not found or rest:
        return recorded.path
    name = (_body_of(recorded).get("metadata") or {}).get("name", "")
    return f"{path}/pods/{name}/binding"


def _body_of(recorded: RecordedRequest) -> Any:
    """Bindings may come in protobuf."""
    if recorded.headers.get("Content-Type", "") != PROTOBUF:
        return _decoded(recorded.body)
    binding = plain_binding(recorded.body, PROTOBUF)
    if binding is None:
        raise RefusalError(400, "the body is not a Binding")
    return binding


def _decoded(body: bytes) -> Any:
    if not body:
        return {}
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as problem:
        raise RefusalError(400, f"the body is not JSON: {problem}") from None


def _json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return web.Response(body=encoded, status=status, headers=headers, content_type="application/json")
