"""Discovery: what this server serves, in the three forms that clients read, its version, and its OpenAPI documents.

Made from the served kinds, so that it can never say anything else than what is true; custom resources appear with their
definition. The documents are made in ``openapi/`` when first asked for, and kept as long as the same kinds are served:
kubectl explains, validates and applies by them.

kubectl and client-go ask for OpenAPI v2 as protobuf; the messages are those of gnostic's ``openapi.v2.Document``. A
table names the fields of each, by the keys that the document has in JSON; what is one of several messages is chosen by
``_CHOICES``. Values of any form (extensions, enumerations, defaults) are sent as text that is YAML: JSON is.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.errors import method_not_supported, no_such_path
from kubesched.playground.apiserver.http.answers import JSON, PROTOBUF, accepted, choose, only_accepted
from kubesched.playground.apiserver.http.protobuf import bytes_field, double_field, integer_field
from kubesched.playground.apiserver.http.resources import verbs_of
from kubesched.playground.apiserver.openapi import documents
from kubesched.playground.apiserver.served_resource import ServedResource
from kubesched.playground.apiserver.verbs.request import Api

_Fields = dict[str, tuple[int, str]]
"""Number and form of each field: text, truth, integer, double, any, or a message. "[]": repeated; "{}": a message
whose first field repeats pairs of name and value."""


def _limits(first: int) -> _Fields:
    """What is said of numbers and lengths, in the order that all simple parameters share."""
    forms = (
        ("default", "any"),
        ("maximum", "double"),
        ("exclusiveMaximum", "truth"),
        ("minimum", "double"),
        ("exclusiveMinimum", "truth"),
        ("maxLength", "integer"),
        ("minLength", "integer"),
        ("pattern", "text"),
        ("maxItems", "integer"),
        ("minItems", "integer"),
        ("uniqueItems", "truth"),
        ("enum", "[]any"),
        ("multipleOf", "double"),
    )
    return {name: (first + at, form) for at, (name, form) in enumerate(forms)}


def _parameter(first: int) -> _Fields:
    """A parameter in the path, query or headers; ``first`` is the number of its type."""
    return {
        "required": (1, "truth"),
        "in": (2, "text"),
        "description": (3, "text"),
        "name": (4, "text"),
        "type": (first, "text"),
        "format": (first + 1, "text"),
        "collectionFormat": (first + 3, "text"),
        **_limits(first + 4),
        "x-": (first + 17, "extensions"),
    }


_MESSAGES: dict[str, _Fields] = {
    "Document": {
        "swagger": (1, "text"),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "{}Schema"),
        "security": (12, "[]SecurityRequirement"),
        "securityDefinitions": (13, "{}SecurityDefinition"),
    },
    "Info": {"title": (1, "text"), "version": (2, "text"), "description": (3, "text")},
    "ApiKeySecurity": {"type": (1, "text"), "name": (2, "text"), "in": (3, "text"), "description": (4, "text")},
    "PathItem": {
        "get": (2, "Operation"),
        "put": (3, "Operation"),
        "post": (4, "Operation"),
        "delete": (5, "Operation"),
        "options": (6, "Operation"),
        "head": (7, "Operation"),
        "patch": (8, "Operation"),
        "parameters": (9, "[]ParameterChoice"),
        "x-": (10, "extensions"),
    },
    "Operation": {
        "tags": (1, "[]text"),
        "summary": (2, "text"),
        "description": (3, "text"),
        "operationId": (5, "text"),
        "produces": (6, "[]text"),
        "consumes": (7, "[]text"),
        "parameters": (8, "[]ParameterChoice"),
        "responses": (9, "{}ResponseChoice"),
        "schemes": (10, "[]text"),
        "deprecated": (11, "truth"),
        "x-": (13, "extensions"),
    },
    "Response": {"description": (1, "text"), "schema": (2, "SchemaChoice"), "x-": (5, "extensions")},
    "BodyParameter": {
        "description": (1, "text"),
        "name": (2, "text"),
        "in": (3, "text"),
        "required": (4, "truth"),
        "schema": (5, "Schema"),
    },
    "QueryParameter": _parameter(6),
    "PathParameter": _parameter(5),
    "HeaderParameter": _parameter(5),
    "Schema": {
        "$ref": (1, "text"),
        "format": (2, "text"),
        "title": (3, "text"),
        "description": (4, "text"),
        "default": (5, "any"),
        "multipleOf": (6, "double"),
        "maximum": (7, "double"),
        "exclusiveMaximum": (8, "truth"),
        "minimum": (9, "double"),
        "exclusiveMinimum": (10, "truth"),
        "maxLength": (11, "integer"),
        "minLength": (12, "integer"),
        "pattern": (13, "text"),
        "maxItems": (14, "integer"),
        "minItems": (15, "integer"),
        "uniqueItems": (16, "truth"),
        "maxProperties": (17, "integer"),
        "minProperties": (18, "integer"),
        "required": (19, "[]text"),
        "enum": (20, "[]any"),
        "additionalProperties": (21, "SchemaOrTruth"),
        "type": (22, "Texts"),
        "items": (23, "Items"),
        "allOf": (24, "[]Schema"),
        "properties": (25, "{}Schema"),
        "discriminator": (26, "text"),
        "readOnly": (27, "truth"),
        "externalDocs": (29, "ExternalDocs"),
        "example": (30, "any"),
        "x-": (31, "extensions"),
    },
    "ExternalDocs": {"description": (1, "text"), "url": (2, "text")},
}


def encode_document(document: dict[str, Any]) -> bytes:
    """The whole document."""
    return _message(document, "Document")


def _message(value: Any, form: str) -> bytes:
    choose = _CHOICES.get(form)
    return choose(value) if choose is not None else b"".join(_fields(value, _MESSAGES[form]))


def _fields(value: dict[str, Any], known: _Fields) -> Iterable[bytes]:
    for name, (number, form) in known.items():
        if form == "extensions":
            for extension in sorted(key for key in value if key.startswith("x-")):
                yield _named(number, extension, _any(value[extension]))
        elif name in value:
            yield _field(number, form, value[name])


def _field(number: int, form: str, value: Any) -> bytes:
    if form.startswith("[]"):
        return b"".join(_field(number, form[2:], item) for item in value)
    if form.startswith("{}"):
        return bytes_field(number, b"".join(_named(1, name, _message(part, form[2:])) for name, part in value.items()))
    match form:
        case "text":
            return bytes_field(number, value.encode())
        case "truth" | "integer":
            return integer_field(number, int(value))
        case "double":
            return double_field(number, value)
        case "any":
            return bytes_field(number, _any(value))
    return bytes_field(number, _message(value, form))


def _named(number: int, name: str, value: bytes) -> bytes:
    return bytes_field(number, bytes_field(1, name.encode()) + bytes_field(2, value))


def _any(value: Any) -> bytes:
    return bytes_field(2, msgspec.json.encode(value) + b"\n")


def _paths(value: dict[str, Any]) -> bytes:
    return b"".join(_named(2, path, _message(item, "PathItem")) for path, item in value.items())


def _parameter_choice(value: dict[str, Any]) -> bytes:
    """A parameter or a reference to one; of parameters, the body or another, by its place."""
    if "$ref" in value:
        return bytes_field(2, bytes_field(1, value["$ref"].encode()))
    if value["in"] == "body":
        return bytes_field(1, bytes_field(1, _message(value, "BodyParameter")))
    number, form = {"header": (1, "HeaderParameter"), "path": (4, "PathParameter")}.get(
        value["in"], (3, "QueryParameter")
    )
    return bytes_field(1, bytes_field(2, bytes_field(number, _message(value, form))))


def _schema_or_truth(value: Any) -> bytes:
    return integer_field(2, value) if isinstance(value, bool) else bytes_field(1, _message(value, "Schema"))


def _items(value: Any) -> bytes:
    schemas = value if isinstance(value, list) else [value]
    return b"".join(bytes_field(1, _message(schema, "Schema")) for schema in schemas)


def _texts(value: Any) -> bytes:
    return b"".join(bytes_field(1, text.encode()) for text in (value if isinstance(value, list) else [value]))


_CHOICES: dict[str, Callable[[Any], bytes]] = {
    "Paths": _paths,
    "ParameterChoice": _parameter_choice,
    "ResponseChoice": lambda value: bytes_field(1, _message(value, "Response")),
    "SchemaChoice": lambda value: bytes_field(1, _message(value, "Schema")),
    "SchemaOrTruth": _schema_or_truth,
    "Items": _items,
    "Texts": _texts,
    "SecurityDefinition": lambda value: bytes_field(2, _message(value, "ApiKeySecurity")),
    "SecurityRequirement": lambda value: b"".join(_named(1, name, _texts(scopes)) for name, scopes in value.items()),
}
"""Messages that are more, or less, than their fields by name."""


_JSON = "application/json"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_OLDER_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V2_FORMS = {_JSON: _JSON, "application/*": _JSON, "*/*": _JSON, _PROTOBUF: _PROTOBUF, _OLDER_PROTOBUF: _PROTOBUF}


@dataclass(frozen=True, slots=True)
class _Made:
    """A document as it is sent, and the mark by which a client knows that it has it already."""

    body: bytes
    mark: str


class OpenApiPaths:
    """The documents of one API."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._made_for: tuple[ServedResource, ...] = ()
        self._made: dict[tuple[str, str], _Made | None] = {}

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a path below /openapi, None for one that has no document."""
        path = request.path.strip("/").removeprefix("openapi/")
        if path == "v2":
            return self._answer_v2(request)
        if path == "v3":
            made = self._document(path, _JSON)
            assert made is not None, "the index lists what is served, however little"
            return web.Response(body=made.body, content_type="text/plain", charset="utf-8")
        if not path.startswith("v3/"):
            return None
        made = self._document(path, _JSON)
        return web.Response(status=404) if made is None else _answer(request, made, _JSON)

    def _answer_v2(self, request: web.BaseRequest) -> web.Response:
        for media_type, _ in accepted(request.headers.get("Accept", "") or "*/*"):
            form = _V2_FORMS.get(media_type)
            if form is not None:
                made = self._document("v2", form)
                assert made is not None
                return _answer(request, made, form)
        return web.Response(status=406, headers={"Vary": "Accept"})

    def _document(self, path: str, form: str) -> _Made | None:
        kinds = self._api.all_kinds()
        if kinds != self._made_for:
            self._made_for, self._made = kinds, {}
        if (path, form) not in self._made:
            content = _make(path, kinds)
            self._made[path, form] = None if content is None else _sent(content, form)
        return self._made[path, form]


def _make(path: str, kinds: tuple[ServedResource, ...]) -> dict[str, Any] | None:
    if path == "v2":
        return documents.document_v2(kinds)
    if path == "v3":
        return documents.index(kinds)
    return documents.document(path.removeprefix("v3/"), kinds)


def _sent(content: dict[str, Any], form: str) -> _Made:
    body = encode_document(content) if form == _PROTOBUF else msgspec.json.encode(content)
    return _Made(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def _answer(request: web.BaseRequest, made: _Made, content_type: str) -> web.Response:
    headers = {"Etag": made.mark, "Vary": "Accept"}
    if made.mark in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    return web.Response(body=made.body, content_type=content_type, headers=headers)


_RELEASES = {"1.36": "v1.36.4", "1.37": "v1.37.0-rc.1"}


def _version(served: str) -> dict[str, str]:
    major, _, minor = served.partition(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": _RELEASES[served],
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "any",
    }


_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCE_KINDS = {
    "binding": ("", "", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "attach": ("", "", "PodAttachOptions"),
    "exec": ("", "", "PodExecOptions"),
    "portforward": ("", "", "PodPortForwardOptions"),
}
_PLAIN_PATHS = ("/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


class Discovery:
    """Discovery documents of one API."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._openapi = OpenApiPaths(api)

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a discovery path, None for any other."""
        parts = [part for part in request.path.split("/") if part]
        if request.method != "GET" and not self._takes_any_method(parts):
            return None
        match parts:
            case []:
                return _json(self._root())
            case ["version"]:
                return _json(_version(self._api.version))
            case ["api"] | ["apis"]:
                return self._groups(request, parts[0])
            case ["api", version]:
                return self._resources("", version)
            case ["apis", group]:
                return self._group(group)
            case ["apis", group, version]:
                return self._resources(group, version)
            case ["openapi", *_]:
                return self._openapi.answer(request)
        return None

    def _takes_any_method(self, parts: list[str]) -> bool:
        """Group documents do not look at the method; versions, resource lists and the version do: 405."""
        match parts:
            case [] | ["apis"] | ["apis", _]:
                return True
            case ["api"] | ["api", "v1"] | ["version"]:
                raise method_not_supported(None, "")
            case ["apis", group, version] if self._kinds(group, version):
                raise method_not_supported(None, "")
            case ["api", _]:
                raise no_such_path()
        return False

    def _groups(self, request: web.BaseRequest, root: str) -> web.Response:
        wanted = choose(request.headers.get("Accept", ""), ("APIGroupDiscoveryList",))
        if wanted.media_type == PROTOBUF:
            raise only_accepted()
        if wanted.transform:
            names = [""] if root == "api" else self._group_names()
            items = [self._aggregated_group(group) for group in names]
            head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
            return _json({**head, "items": items}, _AGGREGATED)
        if root == "api":
            address = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.host}
            return _json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]})
        groups = [self._group_json(group) for group in self._group_names()]
        return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})

    def _group_names(self) -> list[str]:
        return list(dict.fromkeys(kind.group for kind in self._api.all_kinds() if kind.group))

    def _versions(self, group: str) -> list[str]:
        return list(dict.fromkeys(kind.version for kind in self._api.all_kinds() if kind.group == group))

    def _kinds(self, group: str, version: str) -> list[ServedResource]:
        kinds = (kind for kind in self._api.all_kinds() if (kind.group, kind.version) == (group, version))
        return sorted(kinds, key=lambda kind: kind.plural)

    def _group_json(self, group: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self._versions(group)]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _group(self, group: str) -> web.Response | None:
        if group not in self._group_names():
            return None
        return _json({"kind": "APIGroup", "apiVersion": "v1", **self._group_json(group)})

    def _resources(self, group: str, version: str) -> web.Response | None:
        kinds = self._kinds(group, version)
        if not kinds:
            if group and group not in self._group_names():
                return None
            raise no_such_path()
        rows = [row for kind in kinds for row in _resource_rows(kind, self._api)]
        head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {})}
        return _json({**head, "groupVersion": f"{group}/{version}" if group else version, "resources": rows})

    def _aggregated_group(self, group: str) -> dict[str, Any]:
        versions = [
            {
                "version": version,
                "resources": [_aggregated_resource(kind) for kind in self._kinds(group, version)],
                "freshness": "Current",
            }
            for version in self._versions(group)
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}

    def _root(self) -> dict[str, Any]:
        found = {"/api", "/api/v1", "/apis", *_PLAIN_PATHS}
        for group in self._group_names():
            found.add(f"/apis/{group}")
            found |= {f"/apis/{group}/{version}" for version in self._versions(group)}
        return {"paths": sorted(found)}


def _json(content: Any, content_type: str = JSON) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), headers={"Content-Type": content_type})


_STORAGE_VERSIONS = {
    ("autoscaling", "HorizontalPodAutoscaler"): "v2",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "v1beta1",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "v1beta1",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "v1beta1",
}
"""Kinds that the real server stores in another version than the one it serves first."""


def _storage_hash(kind: ServedResource, api: Api) -> str:
    """As the real server: the beginning of the hash of what the objects are stored as."""
    stored = (api.resource_of(kind.stored_as) if kind.stored_as else None) or kind
    version = _STORAGE_VERSIONS.get((stored.group, stored.kind), stored.version)
    text = f"{stored.group}/{version}/{stored.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _resource_rows(kind: ServedResource, api: Api) -> list[dict[str, Any]]:
    row: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if "watch" in kind.verbs:
        row["storageVersionHash"] = _storage_hash(kind, api)
    return [row, *(_subresource_row(kind, name) for name in _listed(kind))]


def _listed(kind: ServedResource) -> list[str]:
    """Subresources in the real server's order: a custom resource's status comes first."""
    return sorted(kind.subresources, reverse=kind.is_custom)


def _subresource_kind(kind: ServedResource, name: str) -> tuple[str, str, str]:
    if name == "proxy":
        return "", "", f"{kind.kind}ProxyOptions"
    return _SUBRESOURCE_KINDS.get(name, ("", "", kind.kind))


def _subresource_row(kind: ServedResource, name: str) -> dict[str, Any]:
    group, version, shown = _subresource_kind(kind, name)
    row: dict[str, Any] = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
    if group:
        row |= {"group": group, "version": version}
    return {**row, "kind": shown, "verbs": list(verbs_of(name))}


def _response_kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _aggregated_resource(kind: ServedResource) -> dict[str, Any]:
    is_own = kind.is_custom
    row: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind.group if is_own else "", kind.version if is_own else "", kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if kind.subresources:
        row["subresources"] = [
            {
                "subresource": name,
                "responseKind": _response_kind(*_subresource_kind(kind, name)),
                "verbs": list(verbs_of(name)),
            }
            for name in _listed(kind)
        ]
    return row
