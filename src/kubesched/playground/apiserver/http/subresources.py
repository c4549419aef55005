"""Requests on subresources: status, scale, binding, eviction, finalize, token, and those that would need a kubelet.

The ones that show the object itself go the way of get, update and patch; the others have their own verb file in
``verbs/``.
"""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.errors import bad_request, not_found
from kubesched.playground.apiserver.http import answers
from kubesched.playground.apiserver.http.exchange import Exchange, RequestPath
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.verbs import binding, eviction, finalize, read, scale, writing
from kubesched.playground.apiserver.verbs.patch import (
    APPLY_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    PatchBody,
    patch,
    patched,
    read_patched,
)
from kubesched.playground.apiserver.verbs.request import Target, WriteOptions
from kubesched.playground.apiserver.verbs.reviews import Reviews
from kubesched.playground.apiserver.verbs.service_tokens import request_token
from kubesched.playground.apiserver.verbs.update import update

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
