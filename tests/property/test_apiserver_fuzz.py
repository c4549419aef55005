"""Whatever is sent to the embedded API server: it is taken, or refused with 4xx and a Kubernetes Status.

``make fuzz`` tries many more cases than a run of the tests.
"""

from __future__ import annotations

import asyncio
import copy
import http.client
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.playground.apiserver.http.app import MOST_BODY_BYTES
from kubesched.playground.apiserver.server import ApiServer, ServerSettings

_NAMESPACED = "/api/v1/namespaces/default/"
_POD_SPEC = {
    "containers": [
        {
            "name": "c",
            "image": "i",
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1"}, "claims": [{"name": "r"}]},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "X", "value": "y"}]}},
            "securityContext": {"runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}},
        }
    ],
    "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "projected": {"sources": []}}],
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 1}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "t", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["c"]}
            ]
        },
    },
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "schedulingGates": [{"name": "g"}],
    "resourceClaims": [{"name": "r", "resourceClaimName": "x"}],
    "overhead": {"cpu": "1"},
    "priorityClassName": "system-node-critical",
    "dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a"], "options": [{"name": "x"}]},
    "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a"]}],
}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
_SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
_OBJECTS: dict[str, dict[str, Any]] = {
    f"{_NAMESPACED}pods": {"spec": _POD_SPEC, "status": {"conditions": [{"type": "Ready"}], "podIPs": [{"ip": "x"}]}},
    "/api/v1/nodes": {
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24", "unschedulable": True},
        "status": {
            "capacity": {"cpu": "4", "memory": "1Gi"},
            "addresses": [{"type": "Hostname", "address": "x"}],
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
            "images": [{"names": ["a"], "sizeBytes": 1}],
        },
    },
    "/apis/apps/v1/namespaces/default/deployments": {
        "spec": {"replicas": 1, "selector": _SELECTOR, "template": _TEMPLATE, "strategy": {"type": "Recreate"}}
    },
    "/apis/apps/v1/namespaces/default/statefulsets": {
        "spec": {"selector": _SELECTOR, "template": _TEMPLATE, "volumeClaimTemplates": [{"metadata": {"name": "a"}}]}
    },
    "/apis/apps/v1/namespaces/default/daemonsets": {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
    "/apis/batch/v1/namespaces/default/jobs": {"spec": {"completions": 1, "template": _TEMPLATE}},
    "/apis/batch/v1/namespaces/default/cronjobs": {
        "spec": {"schedule": "* * * * *", "timeZone": "UTC", "jobTemplate": {"spec": {"template": _TEMPLATE}}}
    },
    f"{_NAMESPACED}services": {
        "spec": {"ports": [{"port": 80, "targetPort": "x"}], "selector": {"a": "b"}, "clusterIP": "None"}
    },
    f"{_NAMESPACED}configmaps": {"data": {"a": "b"}, "binaryData": {"c": "YQ=="}},
    f"{_NAMESPACED}events": {"involvedObject": {"name": "p"}, "series": {"count": 1}, "firstTimestamp": None},
    f"{_NAMESPACED}persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "selector": _SELECTOR}
    },
    "/api/v1/persistentvolumes": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "d", "volumeHandle": "h"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}]}]}},
        }
    },
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {"spec": {"minAvailable": "50%", "selector": _SELECTOR}},
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"value": 1},
    "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads": {
        "spec": {"podGroupTemplates": [{"name": "g", "schedulingPolicy": {"gang": {"minCount": 1}}}]}
    },
    "/apis/storage.k8s.io/v1/storageclasses": {
        "provisioner": "p",
        "allowedTopologies": [{"matchLabelExpressions": []}],
    },
    "/apis/storage.k8s.io/v1/csinodes": {
        "spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 1}}]}
    },
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}},
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims": {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "count": 1}}]}}
    },
    "/apis/resource.k8s.io/v1/resourceslices": {
        "spec": {"driver": "d", "pool": {"name": "p"}, "devices": [{"name": "d", "attributes": {"a": {"int": 1}}}]}
    },
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": {"rules": [{"verbs": ["get"], "resources": ["pods"]}]},
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": {
        "subjects": [{"kind": "User"}],
        "roleRef": {"name": "x"},
    },
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "spec": {
            "group": "g.io",
            "names": {"plural": "fs", "kind": "F"},
            "scope": "Cluster",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        }
    },
    "/apis/authorization.k8s.io/v1/subjectaccessreviews": {
        "spec": {"user": "u", "resourceAttributes": {"verb": "get"}}
    },
    "/apis/authentication.k8s.io/v1/tokenreviews": {"spec": {"token": "t"}},
}
_SUBRESOURCES: dict[str, dict[str, Any]] = {
    f"{_NAMESPACED}pods/p/binding": {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
    f"{_NAMESPACED}pods/p/eviction": {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 1}},
    f"{_NAMESPACED}serviceaccounts/default/token": {"spec": {"audiences": ["a"], "expirationSeconds": 600}},
    f"{_NAMESPACED}bindings": {"metadata": {"name": "p"}, "target": {"name": "n"}},
}
_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_JSON = "application/json"
_MANY = settings(max_examples=1000 if os.environ.get("KUBESCHED_HYPOTHESIS") == "fuzz" else 60)


@dataclass
class _Server:
    """A server in a thread of its own, and what it answers."""

    address: str
    token: str

    def ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.address, timeout=20)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in {"Authorization": f"Bearer {self.token}", **headers}.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def check(self, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
        """Asks, and insists on an answer as the real server gives them."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        status, text = self.ask(method, path, body, named)
        # some errors of clients are answered with 500 by the real server too, but without a reason
        is_clients_error = status == 500 and b"reason" not in text
        assert 200 <= status < 500 or is_clients_error, f"{method} {path} {body!r}: {status} {text!r}"
        if status >= 400 and text not in (b"404 page not found\n", b""):
            is_status = b'"kind":"Status"' in text or b"\nkind: Status\n" in text
            assert is_status, f"{method} {path} {body!r}: {status} {text!r}"
        assert b"Traceback" not in text
        return status


@pytest.fixture(scope="module")
def server() -> Iterator[_Server]:
    loop = asyncio.new_event_loop()
    served = ApiServer(ServerSettings(tls=False))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(served.start(), loop).result(20)
    found = _Server(urlsplit(served.url).netloc, served.token)
    found.check("POST", f"{_NAMESPACED}pods", _encoded(_named(_OBJECTS[f"{_NAMESPACED}pods"], "p")), Content_Type=_JSON)
    yield found
    asyncio.run_coroutine_threadsafe(served.stop(), loop).result(20)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    loop.close()


def _named(obj: dict[str, Any], name: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"], "namespace": None}
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}]
    return {"metadata": {**metadata, "ownerReferences": owners, "managedFields": [], **obj.get("metadata", {})}, **obj}


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode(errors="surrogatepass")


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(
        ("", "1", "-1", "1Gi", "a" * 300, "\x00", "é", "a/b/c", "2026-01-01T00:00:00Z", "99%", "In", "$patch")
    )
)
_ANY_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, (*path, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _places(inner, (*path, position))


@st.composite
def _spoiled(draw: st.DrawFn, obj: dict[str, Any]) -> Any:
    """The object with other values at one or two of its places."""
    spoiled = copy.deepcopy(obj)
    for _ in range(draw(st.integers(1, 2))):
        places = list(_places(spoiled))
        place = places[draw(st.integers(0, len(places) - 1))]
        if not place:
            return draw(_ANY_JSON)
        holder = spoiled
        for step in place[:-1]:
            holder = holder[step]
        if draw(st.booleans()) and isinstance(holder, dict):
            holder[draw(st.text(max_size=8))] = draw(_ANY_JSON)
        else:
            holder[place[-1]] = draw(_ANY_JSON)
    return spoiled


@_MANY
@given(data=st.data())
def test_bodies_with_anything_at_any_place_are_taken_or_refused(server: _Server, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(_OBJECTS)))
    body = data.draw(_spoiled(_named(_OBJECTS[path], "x")))
    server.check("POST", path, _encoded(body), Content_Type=_JSON)
    verb = data.draw(st.sampled_from(("PUT", "STATUS", "DELETE", *_PATCH_TYPES)))
    other = data.draw(_spoiled(_named(_OBJECTS[path], "x")))
    if verb in _PATCH_TYPES:
        server.check("PATCH", f"{path}/x?fieldManager=m", _encoded(other), Content_Type=verb)
    elif verb == "STATUS":
        server.check("PUT", f"{path}/x/status", _encoded(other), Content_Type=_JSON)
    else:
        server.check(verb, f"{path}/x", _encoded(other), Content_Type=_JSON)
    server.check("GET", f"{path}/x", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    server.check("DELETE", f"{path}/x")
    server.check("PATCH", f"{path}/x", b'{"metadata":{"finalizers":null}}', Content_Type="application/merge-patch+json")


@_MANY
@given(data=st.data())
def test_subresources_with_anything_at_any_place_are_taken_or_refused(server: _Server, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(_SUBRESOURCES)))
    server.check("POST", path, _encoded(data.draw(_spoiled(_SUBRESOURCES[path]))), Content_Type=_JSON)
    place = data.draw(st.sampled_from(("resize", "status", "ephemeralcontainers")))
    body = data.draw(_spoiled(_named(_OBJECTS[f"{_NAMESPACED}pods"], "p")))
    server.check("PUT", f"{_NAMESPACED}pods/p/{place}", _encoded(body), Content_Type=_JSON)
    scale = data.draw(_spoiled({"metadata": {"name": "x"}, "spec": {"replicas": 1}}))
    media_type = data.draw(st.sampled_from(_PATCH_TYPES))
    server.check(
        "PATCH", "/apis/apps/v1/namespaces/default/deployments/x/scale", _encoded(scale), Content_Type=media_type
    )


@_MANY
@given(data=st.data())
def test_json_patches_of_any_sort_are_taken_or_refused(server: _Server, data: st.DataObject) -> None:
    obj = _named(_OBJECTS[f"{_NAMESPACED}pods"], "p")
    pointers = ["/" + "/".join(str(step) for step in place) for place in _places(obj)]
    pointer = st.sampled_from(pointers) | st.text(max_size=10) | st.just("/spec/containers/-")
    operation = st.fixed_dictionaries(
        {"op": st.sampled_from(("add", "remove", "replace", "move", "copy", "test", "odd")), "path": pointer},
        optional={"value": _ANY_JSON, "from": pointer},
    )
    patch = data.draw(st.lists(operation | _ANY_JSON, max_size=3) | _ANY_JSON)
    server.check("PATCH", f"{_NAMESPACED}pods/p", _encoded(patch), Content_Type="application/json-patch+json")


_BODIES = (
    st.binary(max_size=60)
    | st.binary(max_size=40).map(lambda tail: b"k8s\0" + tail)
    | st.text(max_size=40).map(lambda text: text.encode(errors="surrogatepass"))
    | st.sampled_from(
        (b"{", b"[" * 30_000, b'{"a":' * 5_000, b'{"metadata":{"name":"\\ud800"}}', b"a: [", b"null", b"1")
    )
)
_MEDIA_TYPES = (
    *_PATCH_TYPES,
    *(_JSON, "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "", ";", "application/cbor"),
)


@_MANY
@given(
    body=_BODIES,
    media_type=st.sampled_from(_MEDIA_TYPES),
    method=st.sampled_from(("POST", "PUT", "PATCH", "DELETE")),
    path=st.sampled_from(sorted(_OBJECTS)),
)
def test_bodies_that_are_no_objects_are_refused(
    server: _Server, body: bytes, media_type: str, method: str, path: str
) -> None:
    where = path if method == "POST" else f"{path}/nothing?fieldManager=m"
    server.check(method, where, body, Content_Type=media_type)


_NAMES = (
    *("limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector", "pretty"),
    *("timeoutSeconds", "dryRun", "fieldManager", "fieldValidation", "force", "gracePeriodSeconds"),
    *("propagationPolicy", "orphanDependents", "includeObject", "sendInitialEvents", "allowWatchBookmarks"),
)
_VALUES = st.text(max_size=12) | st.sampled_from(
    (
        "-1",
        "0",
        "1",
        "abc",
        "99999999999999999999",
        "a=b",
        "a in (b",
        "metadata.name=x",
        "All",
        "true",
        "eyJ2IjoieCJ9",
        "a\\",
    )
)


@_MANY
@given(
    query=st.lists(st.tuples(st.sampled_from(_NAMES) | st.text(max_size=6), _VALUES), max_size=4),
    method=st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE")),
    accept=st.sampled_from(
        ("", "*/*", _JSON, "application/yaml", "x", "application/json;as=Table;v=v1;g=meta.k8s.io", ";;")
    ),
)
def test_queries_of_any_sort_are_answered(
    server: _Server, query: list[tuple[str, str]], method: str, accept: str
) -> None:
    terms = "&".join(f"{quote(name, errors='replace')}={quote(value, errors='replace')}" for name, value in query)
    where = f"{_NAMESPACED}configmaps" + ("/nothing" if method in ("PUT", "PATCH", "DELETE") else "")
    server.check(method, f"{where}?{terms}", b"{}", Content_Type=_JSON, Accept=accept)


_PARTS = (
    "api",
    "apis",
    "v1",
    "namespaces",
    "default",
    "pods",
    "apps",
    "deployments",
    "p",
    "status",
    "..",
    ".",
    "",
    "%2f",
)
_MORE_PARTS = ("%00", "%", "%zz", "é", "a b", "watch", "log", "scale", "openapi", "v3", "version", "healthz", "%C3%28")


@_MANY
@given(
    parts=st.lists(st.sampled_from((*_PARTS, *_MORE_PARTS)) | st.text(max_size=5), max_size=8),
    method=st.sampled_from(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "ODD", "get")),
)
def test_paths_of_any_sort_are_answered(server: _Server, parts: list[str], method: str) -> None:
    path = "/" + "/".join(quote(part, safe="%.~", errors="replace") for part in parts)
    if method == "DELETE" or "watch" in parts:
        path = path.replace("pods", "nothing")
    server.check(method, path, b"{}" if method in ("POST", "PUT", "PATCH") else None, Content_Type=_JSON)


@settings(max_examples=5)
@given(extra=st.integers(1, 1000), media_type=st.sampled_from(_MEDIA_TYPES))
def test_bodies_that_are_too_large_are_refused(server: _Server, extra: int, media_type: str) -> None:
    body = b'{"data":{"a":"' + b"x" * (MOST_BODY_BYTES + extra) + b'"}}'
    status = server.check("POST", f"{_NAMESPACED}configmaps", body, Content_Type=media_type)
    assert status in (413, 415)
