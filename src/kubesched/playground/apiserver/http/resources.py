"""Requests on resources and their subresources: which verb, on what, in which form, and the answer.

The order of refusals is the real server's: unknown resource (404), method (405), form of the answer (406), options,
body. The verbs are in ``verbs/``. Subresources that show the object itself (status) go the way of get, update and
patch; the others (scale, binding, eviction, finalize, token) have a verb file of their own. Those that would need a
kubelet are refused.

A watch is sent in lines as they come, many in one chunk. A client that does not read is waited for; when it falls
behind the kept history it gets 410 and comes again. ``verbs/watch.py`` makes the lines.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.errors import bad_request, method_not_supported, no_such_path, not_found
from kubesched.playground.apiserver.http import answers
from kubesched.playground.apiserver.http.answers import (
    MEDIA_TYPES,
    PROTOBUF,
    TRANSFORMS,
    Wanted,
    choose,
    only_accepted,
    raw_object,
)
from kubesched.playground.apiserver.http.exchange import Exchange, RequestPath
from kubesched.playground.apiserver.kinds.pods.admission import DEFAULT_ACCOUNT
from kubesched.playground.apiserver.served_resource import Object, ServedResource
from kubesched.playground.apiserver.storage.store import ObjectKey, Stored
from kubesched.playground.apiserver.verbs import binding, eviction, finalize, read, scale, writing
from kubesched.playground.apiserver.verbs.create import create
from kubesched.playground.apiserver.verbs.delete import RETURNS_DELETED, Deletion, delete, delete_collection
from kubesched.playground.apiserver.verbs.patch import (
    APPLY_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    PatchBody,
    patch,
    patched,
    read_patched,
)
from kubesched.playground.apiserver.verbs.request import Api, GrantCheck, RequestUser, Target, WriteOptions, single
from kubesched.playground.apiserver.verbs.reviews import Reviews
from kubesched.playground.apiserver.verbs.service_tokens import request_token
from kubesched.playground.apiserver.verbs.update import update
from kubesched.playground.apiserver.verbs.watch import EventEncoding, WatchRequest, batches, watch_request


def encoding_for(resource: ServedResource, wanted: Wanted, include: str) -> EventEncoding:
    """How this watcher's objects are written."""
    if not wanted.transform:
        return EventEncoding((resource.api_version,), lambda stored: raw_object(resource, stored))
    if wanted.transform == "Table":
        return EventEncoding((), _TableRows(resource, include, wanted.version).encode)
    variant = (resource.api_version, wanted.transform, wanted.version)
    return EventEncoding(variant, lambda stored: _partial(resource, stored, wanted.version))


def _partial(resource: ServedResource, stored: Stored, version: str) -> bytes:
    return msgspec.json.encode(answers.partial_metadata(writing.load(resource, stored), version))


class _TableRows:
    """One watcher's rows: only the first event brings the columns, so lines are not shared."""

    def __init__(self, resource: ServedResource, include: str, version: str) -> None:
        self._resource, self._include, self._version = resource, include, version
        self._definitions: list[dict[str, Any]] | None = answers.column_definitions(resource)

    def encode(self, stored: Stored) -> bytes:
        obj = writing.load(self._resource, stored)
        definitions, self._definitions = self._definitions, None
        return msgspec.json.encode(
            {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{self._version}",
                "metadata": {"resourceVersion": obj["metadata"].get("resourceVersion", "")},
                "columnDefinitions": definitions,
                "rows": [answers.table_row(self._resource, obj, self._include, self._version)],
            }
        )


async def send(
    request: web.BaseRequest, api: Api, watch: WatchRequest, encoding: EventEncoding, stopping: asyncio.Event
) -> web.StreamResponse:
    """Streams until the watch ends, the client goes or the server stops."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    events = batches(api, watch, encoding, stopping)
    try:
        async for lines in events:
            await response.write(lines)
        await response.write_eof()
    except ConnectionError:
        pass  # the client went
    finally:
        await events.aclose()
    return response


WATCH_TIMEOUT_S = 3600.0
_ACCOUNT_ATTEMPTS, _ACCOUNT_PAUSE_S = 15, 0.1
_COLLECTION_VERBS = ("create", "list", "watch", "deletecollection")


@dataclass
class ResourceHandler:
    """Serves all resources of one API."""

    api: Api
    reviews: Reviews
    stopping: asyncio.Event
    grant_check: GrantCheck

    async def handle(
        self, request: web.BaseRequest, path: RequestPath, user: RequestUser, warnings: list[str]
    ) -> web.StreamResponse:
        resource = self._find(path)
        if resource is None:
            if path.group and all(kind.group != path.group for kind in self.api.all_kinds()):
                return web.Response(text="404 page not found\n", status=404)
            raise no_such_path()
        target = Target(resource, path.namespace if resource.namespaced else "", path.name, path.subresource)
        _check_method(request.method, path, resource)
        is_collection = not path.name and path.verb != "create"
        transforms = () if self.reviews.handles(resource.kind) else TRANSFORMS  # what is not stored has no table
        wanted = choose(request.headers.get("Accept", ""), transforms, is_collection)
        query = _query_of(request)
        if wanted.media_type == PROTOBUF and (resource.is_custom or path.verb == "watch"):
            raise only_accepted(MEDIA_TYPES[:2])
        if path.watched_name:
            query["fieldSelector"] = [f"metadata.name={path.watched_name}"]
        include = answers.check_include(single(query, "includeObject")) if wanted.transform == "Table" else "Metadata"
        if resource.deprecation:
            warnings.append(resource.deprecation)
        exchange = Exchange(self.api, request, target, user, query, wanted, include, warnings, self.grant_check)
        if path.subresource:
            return await handle(exchange, path, self.reviews)
        return await self._main(exchange, path.verb)

    def _find(self, path: RequestPath) -> ServedResource | None:
        """The resource, if the path fits to its scope."""
        resource = self.api.resource(path.group, path.version, path.plural)
        if resource is None or path.excess:
            return None
        if resource.namespaced:
            fits = bool(path.namespace) or not path.name
        else:
            fits = not path.namespace or (path.plural == "namespaces" and path.namespace == path.name)
        if path.subresource and path.subresource not in resource.subresources:
            return None
        return resource if fits else None

    async def _main(self, exchange: Exchange, verb: str) -> web.StreamResponse:
        match verb:
            case "get":
                return exchange.answer(await read.get(self.api, exchange.target, exchange.query))
            case "list":
                return await self._list(exchange)
            case "watch":
                return await self._watch(exchange)
            case "create":
                return await self._create(exchange)
            case "update":
                return await self._update(exchange)
            case "patch":
                return await self._patch(exchange)
            case "delete":
                return await self._delete(exchange)
        return await self._delete_collection(exchange)

    async def _list(self, exchange: Exchange) -> web.Response:
        page = await read.list_page(self.api, exchange.target, exchange.query)
        body = answers.list_body(exchange.target.resource, page, exchange.wanted, exchange.include)
        return answers.respond(body, exchange.wanted, warnings=exchange.warnings)

    async def _watch(self, exchange: Exchange) -> web.StreamResponse:
        watch = watch_request(exchange.query, exchange.target, WATCH_TIMEOUT_S)
        encoding = encoding_for(exchange.target.resource, exchange.wanted, exchange.include)
        return await send(exchange.request, self.api, watch, encoding, self.stopping)

    async def _create(self, exchange: Exchange) -> web.Response:
        resource = exchange.target.resource
        options = exchange.write_options("CreateOptions")
        body = await exchange.read_object(options)
        if self.reviews.handles(resource.kind):
            writing.read_as_kind(resource, body.obj, options, body.repeated)
            writing.record_manager(body.obj, None, exchange.target, options, self.api.now())
            obj = self.reviews.review(exchange.target, body.obj, exchange.user)
            return exchange.answer_object(obj, resource.kind, resource.api_version, 201)
        writing.read_as_kind(resource, body.obj, options, body.repeated)
        if resource.storage_key == "bindings":
            return await bind(exchange, body.obj, options)
        await _default_account(self.api, exchange.target)
        stored = create(self.api, exchange.target, body.obj, options)
        await self.api.store.settle()
        return exchange.answer(stored, 201)

    async def _update(self, exchange: Exchange) -> web.Response:
        options = exchange.write_options("UpdateOptions")
        body = await exchange.read_object(options)
        writing.read_as_kind(exchange.target.resource, body.obj, options, body.repeated)
        stored, was_created = update(self.api, exchange.target, body.obj, options)
        await self.api.store.settle()
        return exchange.answer(stored, 201 if was_created else 200)

    async def _patch(self, exchange: Exchange) -> web.Response:
        options = exchange.write_options("PatchOptions")
        content = await exchange.read_patch(options)
        await _default_account(self.api, exchange.target)
        stored, was_created = patch(self.api, exchange.target, content, options)
        await self.api.store.settle()
        return exchange.answer(stored, 201 if was_created else 200)

    async def _delete(self, exchange: Exchange) -> web.Response:
        options = exchange.write_options("DeleteOptions")
        how = await exchange.read_delete_options()
        options.dry_run = how.dry_run
        deletion = delete(self.api, exchange.target, options, how)
        await self.api.store.settle()
        return deletion_answer(exchange, deletion)

    async def _delete_collection(self, exchange: Exchange) -> web.Response:
        options = exchange.write_options("DeleteOptions")
        how = await exchange.read_delete_options()
        options.dry_run = how.dry_run
        page = await read.list_page(self.api, exchange.target, exchange.query)
        delete_collection(self.api, exchange.target, page.items, options, how)
        await self.api.store.settle()
        body = answers.list_body(exchange.target.resource, page, exchange.wanted, exchange.include)
        return answers.respond(body, exchange.wanted, warnings=exchange.warnings)


async def _default_account(api: Api, target: Target) -> None:
    """A pod in a namespace that has just been made waits a moment for the account that a controller makes there."""
    if not api.mounts_tokens or target.resource.storage_key != "pods":
        return
    account = ObjectKey(target.namespace, DEFAULT_ACCOUNT)
    for _ in range(_ACCOUNT_ATTEMPTS):
        namespace = api.store.get("namespaces", ObjectKey("", target.namespace))
        if namespace is None or api.store.get("serviceaccounts", account) is not None:
            return
        await asyncio.sleep(_ACCOUNT_PAUSE_S)


def deletion_answer(exchange: Exchange, deletion: Deletion) -> web.Response:
    """The object, or a Status when it is gone and the resource does not show what it deletes."""
    resource = exchange.target.resource
    if not deletion.gone or resource.storage_key in RETURNS_DELETED:
        return exchange.answer(deletion.stored)
    return answers.respond(_deleted_status(resource, deletion.stored), exchange.wanted, warnings=exchange.warnings)


def _deleted_status(resource: ServedResource, stored: Stored) -> bytes:
    uid = writing.load(resource, stored)["metadata"].get("uid", "")
    details = {"name": stored.key.name, **({"group": resource.group} if resource.group else {})}
    details |= {"kind": resource.plural, "uid": uid}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return msgspec.json.encode(status)


def _query_of(request: web.BaseRequest) -> dict[str, list[str]]:
    if not request.query_string:
        return {}
    return {name: request.query.getall(name) for name in dict.fromkeys(request.query)}


def _check_method(method: str, path: RequestPath, resource: ServedResource) -> None:
    """405 for what the resource, or this place of it, does not do."""
    if method in ("HEAD", "OPTIONS") or method not in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        raise method_not_supported(None, method)
    allowed = verbs_of(path.subresource) if path.subresource else resource.verbs
    wrong_place = not path.subresource and bool(path.name) == (path.verb in _COLLECTION_VERBS)
    needs_namespace = resource.namespaced and not path.namespace and path.verb not in ("list", "watch")
    if path.verb not in allowed or wrong_place or needs_namespace or (path.is_old_watch and method != "GET"):
        raise method_not_supported(None, method)


_CHANGEABLE = ("get", "patch", "update")
_VERBS = {
    "binding": ("create",),
    "eviction": ("create",),
    "token": ("create",),
    "finalize": ("update",),
    "log": ("get",),
    "exec": ("create", "get"),
    "attach": ("create", "get"),
    "portforward": ("create", "get"),
    "proxy": ("create", "delete", "get", "patch", "update"),
}
_SUCCESS_201 = msgspec.json.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)


def verbs_of(subresource: str) -> tuple[str, ...]:
    """What can be done with a subresource."""
    return _VERBS.get(subresource, _CHANGEABLE)


async def handle(exchange: Exchange, path: RequestPath, reviews: Reviews) -> web.StreamResponse:
    """Answers a request on a subresource that the resource has."""
    match path.subresource:
        case "binding":
            options = exchange.write_options("CreateOptions")
            return await bind(exchange, await exchange.read_binding(options), options)
        case "eviction":
            return await _evict(exchange)
        case "token":
            return await _token(exchange, reviews)
        case "scale":
            return await _scale(exchange, path.verb)
        case "finalize":
            return await _finalize(exchange)
        case "log" | "exec" | "attach" | "portforward" | "proxy":
            return await _needs_kubelet(exchange, path.subresource)
    return await _object(exchange, path.verb)


async def bind(exchange: Exchange, obj: Object, options: WriteOptions) -> web.Response:
    """A binding, posted on the pod or on the bindings of its namespace."""
    target = exchange.target
    pods = exchange.api.resource("", "v1", "pods")
    assert pods is not None
    name = target.name or str((obj.get("metadata") or {}).get("name", ""))
    if obj.get("metadata") is not None and not isinstance(obj["metadata"], dict):
        raise bad_request('Binding in version "v1" cannot be handled as a Binding: metadata is no object')
    if not name:
        raise bad_request("Name parameter required.")
    binding.bind(exchange.api, Target(pods, target.namespace, name, "binding"), obj, options)
    await exchange.api.store.settle()
    return answers.respond(_SUCCESS_201, exchange.wanted, 201, exchange.warnings)


async def _evict(exchange: Exchange) -> web.Response:
    options = exchange.write_options("CreateOptions")
    body = await exchange.read_object(options, "Eviction", "policy/v1")
    eviction.evict(exchange.api, exchange.target, body.obj, options)
    await exchange.api.store.settle()
    return answers.respond(_SUCCESS_201, exchange.wanted, 201, exchange.warnings)


async def _token(exchange: Exchange, reviews: Reviews) -> web.Response:
    options = exchange.write_options("CreateOptions")
    body = await exchange.read_object(options, "TokenRequest", "authentication.k8s.io/v1")
    obj = request_token(exchange.api, reviews.tokens, exchange.target, body.obj, options)
    return exchange.answer_object(obj, "TokenRequest", "authentication.k8s.io/v1", 201)


async def _scale(exchange: Exchange, verb: str) -> web.Response:
    api, target = exchange.api, exchange.target
    if verb == "get":
        await api.store.settle()
        shown = scale.get_scale(api, target)
    elif verb == "update":
        options = exchange.write_options("UpdateOptions")
        body = await exchange.read_object(options, scale.KIND, scale.API_VERSION)
        shown = scale.update_scale(api, target, body.obj, options)
    else:
        options = exchange.write_options("PatchOptions")
        sent = await exchange.read_patch(options)
        shown = scale.update_scale(api, target, _patched_scale(exchange, sent, options), options)
    await api.store.settle()
    obj: dict[str, Any] = msgspec.json.decode(shown.raw)
    return exchange.answer_object(obj, scale.KIND, scale.API_VERSION)


def _patched_scale(exchange: Exchange, sent: PatchBody, options: WriteOptions) -> Object:
    """A Scale has no lists: a strategic patch on it is a merge patch."""
    current: dict[str, Any] = msgspec.json.decode(scale.get_scale(exchange.api, exchange.target).raw)
    media_type, content = sent.media_type, sent.content
    if media_type in (STRATEGIC_PATCH, APPLY_PATCH):
        media_type = MERGE_PATCH
    with_kind = {"apiVersion": scale.API_VERSION, "kind": scale.KIND, **current}
    new = patched(with_kind, media_type, content, exchange.target.resource)
    if sent.media_type != APPLY_PATCH:
        read_patched(scale.SCALE, new, sent, options)
    if not (isinstance(content, dict) and (content.get("metadata") or {}).get("resourceVersion")):
        new.get("metadata", {}).pop("resourceVersion", None)
    return new


async def _finalize(exchange: Exchange) -> web.Response:
    options = exchange.write_options("UpdateOptions")
    body = await exchange.read_object(options)
    writing.read_as_kind(exchange.target.resource, body.obj, options, body.repeated)
    stored = finalize.finalize(exchange.api, exchange.target, body.obj, options)
    await exchange.api.store.settle()
    return exchange.answer(stored)


async def _needs_kubelet(exchange: Exchange, subresource: str) -> web.Response:
    """What only a kubelet could answer: nothing to show before there is a node, and no kubelet to ask after."""
    stored = exchange.api.store.get(exchange.target.resource.storage_key, writing.key_of(exchange.target))
    if stored is None:
        raise not_found(exchange.target.resource, exchange.target.name)
    if subresource == "log":
        return web.Response(status=204)
    if exchange.target.resource.kind == "Pod" and not stored.fields.get("spec.nodeName"):
        raise bad_request(f"pod {exchange.target.name} does not have a host assigned")
    raise bad_request(f"{subresource} is not available: this server has no kubelets")


async def _object(exchange: Exchange, verb: str) -> web.Response:
    """Subresources that show the object itself."""
    api, target = exchange.api, exchange.target
    if verb == "get":
        return exchange.answer(await read.get(api, target, exchange.query))
    if verb == "update":
        options = exchange.write_options("UpdateOptions")
        body = await exchange.read_object(options)
        writing.read_as_kind(target.resource, body.obj, options, body.repeated)
        stored, _ = update(api, target, body.obj, options)
    else:
        options = exchange.write_options("PatchOptions")
        stored, _ = patch(api, target, await exchange.read_patch(options), options)
    await api.store.settle()
    return exchange.answer(stored)
