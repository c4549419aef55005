"""Questions about permissions: what is wrong with them, and who may do what."""

from __future__ import annotations

from typing import Any

import pytest
from access_objects import RBAC, ask_as, binding, give, rule
from apiserver_serving import TestClient, serve

_GROUP = "/apis/authorization.k8s.io/v1"
_ALL = f"{_GROUP}/subjectaccessreviews"
_SELF = f"{_GROUP}/selfsubjectaccessreviews"
_LOCAL = f"{_GROUP}/namespaces/default/localsubjectaccessreviews"
_GET_PODS = {"verb": "get", "resource": "pods", "namespace": "default"}
_EXACTLY_ONE = (
    "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be "
    "specified"
)
_NOBODY = 'spec.user: Invalid value: "": at least one of user or group must be specified'
_AT = "spec.resourceAttributes"


def _asks(**attributes: Any) -> dict[str, Any]:
    return {"resourceAttributes": {**_GET_PODS, **attributes}}


@pytest.mark.parametrize(
    ("path", "spec", "wrong"),
    [
        pytest.param(_ALL, {}, f"[{_EXACTLY_ONE}, {_NOBODY}]", id="nothing"),
        pytest.param(_SELF, {}, _EXACTLY_ONE, id="nothing about oneself"),
        pytest.param(
            _ALL,
            {"user": "u", "resourceAttributes": _GET_PODS, "nonResourceAttributes": {"path": "/x", "verb": "get"}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination '
            "with resourceAttributes",
            id="both",
        ),
        pytest.param(
            _LOCAL,
            {"user": "u", **_asks(namespace="x")},
            f'{_AT}.namespace: Invalid value: "x": must match metadata.namespace',
            id="another namespace",
        ),
        pytest.param(
            _LOCAL,
            {"user": "u", "nonResourceAttributes": {"path": "/x", "verb": "get"}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request',
            id="no path in a namespace",
        ),
        pytest.param(
            _SELF,
            _asks(fieldSelector={"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}),
            f'{_AT}.fieldSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as '
            "requirements",
            id="two selectors",
        ),
        pytest.param(
            _SELF,
            _asks(labelSelector={"requirements": [{"key": "a", "operator": "In"}]}),
            f"{_AT}.labelSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or "
            "'NotIn'",
            id="no values",
        ),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(path: str, spec: dict[str, Any], wrong: str) -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", path, {"spec": spec})
        assert (refused.status, refused.message) == (422, f'.authorization.k8s.io "" is invalid: {wrong}')

    serve(body)


def test_the_answer_names_the_binding() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", rule("get", "core", "pods"))
        asked = await client.ask("POST", _ALL, {"spec": {"user": "alice", **_asks()}})
        why = 'RBAC: allowed by ClusterRoleBinding "given" of ClusterRole "given" to User "alice"'
        assert asked.body["status"] == {"allowed": True, "reason": why}
        assert (await ask_as(client, "alice", "POST", _SELF, {"spec": _asks()})).body["status"]["allowed"]
        assert (await client.ask("POST", _LOCAL, {"spec": {"user": "bob", **_asks()}})).body["status"] == {
            "allowed": False
        }

    serve(body)


def test_rules_of_a_missing_role_are_told_as_missing() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", f"{RBAC}/clusterrolebindings", binding("dangling", "nobody", "alice"))
        path = f"{_GROUP}/selfsubjectrulesreviews"
        status = (await ask_as(client, "alice", "POST", path, {"spec": {"namespace": "default"}})).body["status"]
        assert status["incomplete"]
        assert status["evaluationError"] == 'clusterrole.rbac.authorization.k8s.io "nobody" not found'

    serve(body)
