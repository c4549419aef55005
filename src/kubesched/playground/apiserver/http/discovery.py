"""Discovery: what this server serves, in the three forms that clients read, its version, and its OpenAPI documents.

Made from the served kinds, so that it can never say anything else than what is true; custom resources appear with their
definition. The documents are made in ``openapi/`` when first asked for, and kept as long as the same kinds are served:
kubectl explains, validates and applies by them.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.errors import method_not_supported, no_such_path
from kubesched.playground.apiserver.http.answers import JSON, PROTOBUF, accepted, choose, only_accepted
from kubesched.playground.apiserver.http.openapi_protobuf import encode_document
from kubesched.playground.apiserver.http.resources import verbs_of
from kubesched.playground.apiserver.openapi import documents
from kubesched.playground.apiserver.served_resource import ServedResource
from kubesched.playground.apiserver.verbs.request import Api

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
