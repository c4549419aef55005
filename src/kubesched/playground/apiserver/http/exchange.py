"""One request: what its path and method name, all that was found out about it, and the means to answer it.

Paths are read as the real server reads them, also for resources that are not served (authorization comes before that
question). ``resources.py`` makes the decisions; here is only what they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.body_text import read_json, repeated_in_json, repeated_in_yaml
from kubesched.playground.apiserver.errors import StatusError, bad_request
from kubesched.playground.apiserver.http import answers
from kubesched.playground.apiserver.http.answers import Wanted
from kubesched.playground.apiserver.http.bodies import Body, decoded, plain_binding, read_body
from kubesched.playground.apiserver.openapi.decoding import decode_object
from kubesched.playground.apiserver.openapi.schemas import struct_type, type_of_kind
from kubesched.playground.apiserver.patching import json_patch
from kubesched.playground.apiserver.served_resource import DecodeError, Object
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs.delete import DeleteOptions, delete_options
from kubesched.playground.apiserver.verbs.patch import (
    APPLY_PATCH,
    JSON_PATCH,
    PATCH_TYPES,
    STRATEGIC_PATCH,
    PatchBody,
    read_apply_body,
)
from kubesched.playground.apiserver.verbs.request import (
    Api,
    GrantCheck,
    Query,
    RequestUser,
    Target,
    WriteOptions,
    write_options,
)

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class RequestPath(msgspec.Struct, frozen=True, gc=False):
    """The parts of a path; ``is_resource`` is False for anything outside of /api/<version>/… and
    /apis/<group>/<version>/…
    """

    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    excess: tuple[str, ...] = ()  # what follows the subresource
    watched_name: str = ""  # of the old paths /watch/…, which watch one object
    is_old_watch: bool = False


def read_path(path: str, method: str, is_watch: bool) -> RequestPath:
    """Takes a path apart; ``is_watch`` says that the query asks for a watch."""
    parts = path.strip("/").split("/")
    if len(parts) >= 3 and parts[0] == "api":
        return _read_resource(path, method, is_watch, "", parts[1], parts[2:])
    if len(parts) >= 4 and parts[0] == "apis":
        return _read_resource(path, method, is_watch, parts[1], parts[2], parts[3:])
    return RequestPath(path, method.lower())


def _read_resource(path: str, method: str, is_watch: bool, group: str, version: str, rest: list[str]) -> RequestPath:
    watches_old_way = rest[0] == "watch" and len(rest) > 1
    if watches_old_way:
        rest, is_watch = rest[1:], True
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    watched_name, name = (name, "") if watches_old_way else ("", name)
    return RequestPath(
        path,
        _resource_verb(_VERBS.get(method, method.lower()), name, is_watch),
        is_resource=True,
        group=group,
        version=version,
        namespace=namespace,
        plural=rest[0],
        name=name,
        subresource=rest[2] if len(rest) > 2 else "",
        excess=tuple(rest[3:]),
        watched_name=watched_name,
        is_old_watch=watches_old_way,
    )


def _resource_verb(verb: str, name: str, is_watch: bool) -> str:
    if name:
        return verb
    if verb == "get":
        return "watch" if is_watch else "list"
    return "deletecollection" if verb == "delete" else verb


_OLDER_EVICTION = ("Eviction", "Eviction", "policy/v1beta1")  # still taken, as by any server of today
_META_KINDS = ("DeleteOptions", "ListOptions", "List", "Status", "APIGroup", "APIVersions", "WatchEvent")
_META_SCHEME = 'in scheme "pkg/apis/meta/internalversion/scheme/register.go:27"'
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'


@dataclass
class Exchange:
    """A request and its answer."""

    api: Api
    request: web.BaseRequest
    target: Target
    user: RequestUser
    query: Query
    wanted: Wanted
    include: str
    warnings: list[str]
    grant_check: GrantCheck

    def write_options(self, kind: str) -> WriteOptions:
        options = write_options(self.query, self.user, self.request.headers.get("User-Agent", ""), kind)
        options.warnings = self.warnings
        options.grant_check = self.grant_check
        return options

    async def read_object(self, options: WriteOptions, kind: str = "", api_version: str = "") -> Body:
        """The body as this resource's kind, or as the kind given."""
        resource = self.target.resource
        expected, version = kind or resource.kind, api_version or resource.api_version
        data = await self.request.read()
        looks_for_duplicates = options.field_validation != "Ignore" and not kind
        content_type = self.request.headers.get("Content-Type", "")
        body = await decoded(data, content_type, read_body, data, content_type, expected, looks_for_duplicates)
        self._check_kind(body, expected, version)
        if kind:
            _read_by_schema(body.obj, kind, version)
        return body

    async def read_binding(self, options: WriteOptions) -> Object:
        """The body as a Binding."""
        found = plain_binding(await self.request.read(), self.request.headers.get("Content-Type", ""))
        return found if found is not None else (await self.read_object(options, "Binding", "v1")).obj

    def _check_kind(self, body: Body, kind: str, api_version: str) -> None:
        found, version = body.kind or kind, body.api_version or api_version
        if (found, version) == (kind, api_version) or (found, kind, version) == _OLDER_EVICTION:
            return
        short = version.rpartition("/")[2]
        prefix = f'{found} in version "{short}" cannot be handled as a {kind}: '
        known = any(k.kind == found and k.api_version == version and not k.is_custom for k in self.api.all_kinds())
        known = known or (found in _META_KINDS and version == "v1")
        is_other_version = known and (found, version.rpartition("/")[0]) == (kind, api_version.rpartition("/")[0])
        if known and not (is_other_version or self.target.resource.is_custom):
            own = self.target.resource.group.partition(".")[0] or "core"
            raise bad_request(f"{prefix}converting ({short}.{found}) to ({own}.{kind}): unknown conversion")
        if is_other_version or self.target.resource.is_custom:
            raise bad_request(
                f"the API version in the data ({version}) does not match the expected API version ({api_version})"
            )
        raise bad_request(f'{prefix}no kind "{found}" is registered for version "{version}" {_SCHEME}')

    async def read_patch(self, options: WriteOptions) -> PatchBody:
        """The body as a patch."""
        media_type = self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if media_type not in PATCH_TYPES:
            raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        data = await self.request.read()
        return await decoded(data, media_type, _patch_body, data, media_type, options.field_validation != "Ignore")

    async def read_delete_options(self) -> DeleteOptions:
        data = await self.request.read()
        if not data:
            return delete_options(self.query, {})
        content_type = self.request.headers.get("Content-Type", "")
        body = await decoded(data, content_type, read_body, data, content_type, "", False)
        kind, version = body.kind or "DeleteOptions", body.api_version or "meta.k8s.io/v1"
        if kind != "DeleteOptions":
            raise bad_request(f'no kind "{kind}" is registered for version "{version}" {_META_SCHEME}')
        try:
            decode_object(body.obj, struct_type(_DELETE_OPTIONS))
        except DecodeError as error:
            raise bad_request(str(error)) from None
        return delete_options({}, body.obj)  # who sends a body has said everything there

    def answer(self, stored: Stored, status: int = 200) -> web.Response:
        """A stored object in the wanted form."""
        body = answers.object_body(self.target.resource, stored, self.wanted, self.include)
        return answers.respond(body, self.wanted, status, self.warnings)

    def answer_object(self, obj: dict[str, Any], kind: str, api_version: str, status: int = 200) -> web.Response:
        """An object that is not of this resource's kind."""
        body = msgspec.json.encode({"kind": kind, "apiVersion": api_version, **obj})
        return answers.respond(body, self.wanted, status, self.warnings)


def _patch_body(data: bytes, media_type: str, looks_closely: bool) -> PatchBody:
    if media_type == APPLY_PATCH:
        content = read_apply_body(data)
        return PatchBody(media_type, content, repeated_in_yaml(data).findings(()) if looks_closely else [])
    try:
        content = read_json(data)
    except ValueError as error:
        prefix = "" if media_type == STRATEGIC_PATCH else "error decoding patch: "
        raise bad_request(f"{prefix}{error}") from None
    findings = repeated_in_json(data).findings(json_patch.unknown_fields(content)) if looks_closely else []
    if media_type == JSON_PATCH:
        return PatchBody(media_type, content, [f"json patch {finding}" for finding in findings])
    return PatchBody(media_type, content, findings)


def _read_by_schema(obj: Object, kind: str, api_version: str) -> None:
    """Bodies of kinds that are no resources of their own: a wrong type is refused here."""
    group, _, version = api_version.rpartition("/")
    kind_type = type_of_kind(group, version, kind)
    assert kind_type is not None, f"{api_version} {kind} has no schema"
    try:
        decode_object(obj, kind_type)
    except DecodeError as error:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}') from None
