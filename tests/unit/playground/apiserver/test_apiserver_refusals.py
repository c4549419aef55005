"""Whatever is sent is answered with a Kubernetes Status, and nothing of it breaks the server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from apiserver_serving import PODS, TestClient, pod, running, serve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        pytest.param("GET", "/api/v1/foos", None, 404, id="an unknown resource"),
        pytest.param("GET", "/api/v1/namespaces/default/pods/p/foo", None, 404, id="an unknown subresource"),
        pytest.param("GET", "/apis/apps/v9", None, 404, id="an unknown version"),
        pytest.param("PUT", PODS, pod("a"), 405, id="an update of a collection"),
        pytest.param("POST", "/api/v1/pods", pod("a"), 405, id="a create without a namespace"),
        pytest.param("POST", PODS, "{", 400, id="broken JSON"),
        pytest.param("POST", PODS, "[]", 400, id="a list in the place of an object"),
        pytest.param("POST", PODS, "\xff", 400, id="no UTF-8"),
        pytest.param("POST", PODS, '{"metadata":3}', 400, id="metadata that is a number"),
        pytest.param("POST", PODS, '{"spec":"x"}', 400, id="a spec that is a text"),
        pytest.param("POST", PODS, "[" * 100_000, 400, id="a body nested too deep"),
        pytest.param("POST", PODS, "x" * (4 << 20), 413, id="a body that is too large"),
        pytest.param("GET", f"{PODS}?limit=x", None, 400, id="a limit that is no number"),
        pytest.param("GET", f"{PODS}?resourceVersion=-1", None, 400, id="a negative version"),
        pytest.param("GET", f"{PODS}?watch=1&resourceVersion=abc", None, 500, id="a version that is a text"),
        pytest.param("GET", f"{PODS}?continue=%00", None, 400, id="a broken continue token"),
        pytest.param("GET", f"{PODS}?labelSelector=a%20in%20(", None, 400, id="a broken selector"),
        pytest.param("DELETE", f"{PODS}/a", "{", 400, id="broken options of a deletion"),
        pytest.param("PATCH", f"{PODS}/a", "{}", 415, id="a patch of no known type"),
    ],
)
def test_what_is_wrong_is_refused_with_a_status(method: str, path: str, body: Any, status: int) -> None:
    async def check(client: TestClient) -> None:
        data = body.encode("latin-1") if isinstance(body, str) else body
        answer = await client.ask(method, path, data)
        assert (answer.status, answer.body["kind"], answer.body["code"]) == (status, "Status", status)

    serve(check)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
_NAMES = st.sampled_from(["metadata", "spec", "status", "target", "data", "containers", "name", "labels", "finalizers"])
_OBJECTS = st.dictionaries(_NAMES, st.dictionaries(_NAMES, _JSON, max_size=4) | _JSON, max_size=4)
_PATHS = st.sampled_from(
    [
        PODS,
        f"{PODS}/a",
        f"{PODS}/a/status",
        f"{PODS}/a/binding",
        f"{PODS}/a/eviction",
        "/api/v1/nodes",
        "/api/v1/nodes/n/status",
        "/api/v1/namespaces/default/configmaps",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apps/v1/namespaces/default/deployments/d/scale",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/l",
    ]
)
_TYPES = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ]
)
_REQUESTS = st.tuples(
    st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    _PATHS,
    _TYPES,
    _OBJECTS.map(json.dumps) | _JSON.map(json.dumps) | st.binary(max_size=40).map(lambda b: "k8s\0" + b.decode("l1")),
)


@given(st.lists(_REQUESTS, min_size=30, max_size=30))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_makes_the_server_fail(requests: list[tuple[str, str, str, str]]) -> None:
    async def check() -> None:
        async with running() as client:
            await client.ask("POST", PODS, pod("a"))
            for method, path, content_type, body in requests:
                query = "?fieldManager=m" if method == "PATCH" else ""
                data = body.encode("latin-1", "ignore")
                answer = await client.ask(method, path + query, data, Content_Type=content_type)
                # some errors of clients are answered with 500 by the real server too, but without a reason
                failed = answer.status >= 500 and "reason" in answer.body
                assert not failed, (method, path, content_type, body, answer.body)
                if answer.status >= 400:
                    assert answer.body["kind"] == "Status"

    asyncio.run(check())


def test_a_token_is_needed_and_a_wrong_one_is_refused() -> None:
    async def check(client: TestClient) -> None:
        assert (await client.ask("GET", "/healthz", Authorization="")).status == 200
        anonymous = await client.ask("GET", PODS, Authorization="")
        assert (anonymous.status, anonymous.body["reason"]) == (403, "Forbidden")
        wrong = await client.ask("GET", PODS, Authorization="Bearer nope")
        assert (wrong.status, wrong.body["reason"]) == (401, "Unauthorized")

    serve(check)


def test_roles_decide_what_an_impersonated_user_may_do() -> None:
    async def check(client: TestClient) -> None:
        path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
        await client.ask("POST", f"{path}/roles", {"metadata": {"name": "r"}, "rules": rules})
        subjects = [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]
        reference = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
        bound = {"metadata": {"name": "b"}, "subjects": subjects, "roleRef": reference}
        assert (await client.ask("GET", PODS, Impersonate_User="jane")).status == 403
        assert (await client.ask("POST", f"{path}/rolebindings", bound)).status == 201
        assert (await client.ask("GET", PODS, Impersonate_User="jane")).status == 200
        assert (await client.ask("GET", "/api/v1/pods", Impersonate_User="jane")).status == 403

    serve(check)


def test_what_is_not_stored_has_no_table() -> None:
    async def body(client: TestClient) -> None:
        path, table = (
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        )
        review = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
        refused = await client.ask("POST", path, review, Accept=table)
        assert (refused.status, refused.body["reason"]) == (406, "NotAcceptable")
        assert refused.message.startswith("only the following media types are accepted: application/json")
        answered = await client.ask("POST", path, review, Accept=f"{table},application/json")
        assert answered.body["kind"] == "SelfSubjectAccessReview"

    serve(body)
