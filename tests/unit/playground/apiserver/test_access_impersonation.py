"""Who may act as whom: every header is authorized, in the real server's words."""

from __future__ import annotations

import pytest
from access_objects import ACCOUNTS, GROUP, RBAC, WHO_AM_I, account_token, role, rule
from apiserver_serving import Answered, TestClient, serve

_IDENTITY = "authentication.k8s.io"
_PODS = "/api/v1/namespaces/default/pods"
_ROBOT = 'User "system:serviceaccount:default:robot" cannot'


async def _robot(client: TestClient, *rules: dict[str, object]) -> str:
    """The header of an account that may do this."""
    token = await account_token(client, "robot")
    await client.ask("POST", f"{RBAC}/clusterroles", role("robot", *rules))
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "robot"}
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "robot"}
    bound = {"metadata": {"name": "robot"}, "roleRef": reference, "subjects": [subject]}
    await client.ask("POST", f"{RBAC}/clusterrolebindings", bound)
    return f"Bearer {token}"


async def _who(client: TestClient, bearer: str, **headers: str) -> Answered:
    return await client.ask("POST", WHO_AM_I, {}, Authorization=bearer, **headers)


def test_nobody_may_be_another_without_a_right_to() -> None:
    async def body(client: TestClient) -> None:
        bearer = await _robot(client)
        for user, mode in (
            ("bob", "user-info"),
            ("system:serviceaccount:default:other", "serviceaccount"),
            ("system:node:n1", "arbitrary-node"),
        ):
            refused = await client.ask("GET", _PODS, Authorization=bearer, Impersonate_User=user)
            wanted = f'cannot impersonate-on:{mode}:list resource "pods" in API group "" in the namespace "default"'
            assert refused.status == 403
            assert refused.message == f'pods is forbidden: User "system:serviceaccount:default:robot" {wanted}'

    serve(body)


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        pytest.param(
            {"Impersonate_Uid": "1"},
            f'uids.{_IDENTITY} "1" is forbidden: {_ROBOT} impersonate resource "uids" in API group "{_IDENTITY}" '
            "at the cluster scope",
            id="uid",
        ),
        pytest.param(
            {"Impersonate_Extra_Scopes": "x"},
            f'userextras.{_IDENTITY} "x" is forbidden: {_ROBOT} impersonate resource "userextras/scopes" in API group '
            f'"{_IDENTITY}" at the cluster scope',
            id="extra",
        ),
        pytest.param(
            {"Impersonate_Group": "system:masters"},
            f'groups "system:masters" is forbidden: {_ROBOT} impersonate resource "groups" in API group "" '
            "at the cluster scope",
            id="group",
        ),
    ],
)
def test_each_part_of_a_user_has_a_right_of_its_own(headers: dict[str, str], refusal: str) -> None:
    async def body(client: TestClient) -> None:
        bearer = await _robot(client, rule("impersonate", "core", "users", "bob"))
        became = await _who(client, bearer, Impersonate_User="bob")
        assert became.body["status"]["userInfo"] == {"username": "bob", "groups": ["system:authenticated"]}
        refused = await _who(client, bearer, Impersonate_User="bob", **headers)
        assert (refused.status, refused.message) == (403, refusal)
        assert (await _who(client, bearer, Impersonate_User="carl")).status == 403

    serve(body)


def test_who_may_be_all_of_a_user_is() -> None:
    async def body(client: TestClient) -> None:
        bearer = await _robot(
            client, rule("impersonate", f"core {_IDENTITY}", "users groups serviceaccounts uids userextras/scopes")
        )
        headers = {"Impersonate_Uid": "77", "Impersonate_Group": "devs", "Impersonate_Extra_Scopes": "x"}
        became = await _who(client, bearer, Impersonate_User="bob", **headers)
        assert became.body["status"]["userInfo"] == {
            "username": "bob",
            "uid": "77",
            "groups": ["devs", "system:authenticated"],
            "extra": {"scopes": ["x"]},
        }
        account = await _who(client, bearer, Impersonate_User="system:serviceaccount:default:other")
        assert account.body["status"]["userInfo"]["groups"] == [
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated",
        ]
        refused = await _who(client, bearer, Impersonate_User="bob", Impersonate_Extra_Other="x")
        assert refused.status == 403

    serve(body)


def test_a_constrained_right_names_what_may_be_done() -> None:
    async def body(client: TestClient) -> None:
        bearer = await _robot(
            client,
            rule("impersonate:user-info", _IDENTITY, "users groups"),
            rule("impersonate-on:user-info:create", _IDENTITY, "selfsubjectreviews"),
            rule("impersonate:arbitrary-node", _IDENTITY, "nodes", "n1"),
            rule("impersonate-on:arbitrary-node:create", _IDENTITY, "selfsubjectreviews"),
        )
        assert (await _who(client, bearer, Impersonate_User="bob", Impersonate_Group="devs")).status == 201
        elsewhere = await client.ask("GET", _PODS, Authorization=bearer, Impersonate_User="bob")
        assert "cannot impersonate-on:user-info:list" in elsewhere.message
        masters = await _who(client, bearer, Impersonate_User="bob", Impersonate_Group="system:masters")
        assert masters.message.endswith(": impersonating the system:masters group is not allowed")
        node = await _who(client, bearer, Impersonate_User="system:node:n1")
        assert node.body["status"]["userInfo"]["groups"] == ["system:nodes", "system:authenticated"]
        assert (await _who(client, bearer, Impersonate_User="system:node:n2")).status == 403

    serve(body)


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        pytest.param(
            {"Impersonate_Uid": "u"}, 'UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)', id="uid"
        ),
        pytest.param(
            {"Impersonate_Extra_a": "b"},
            'UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"b"}}',
            id="extra",
        ),
    ],
)
def test_parts_without_a_name_are_refused(headers: dict[str, str], shown: str) -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("GET", ACCOUNTS, **headers)
        wanted = f'requested &user.DefaultInfo{{Name:"", {shown}}} without impersonating a user name'
        assert (refused.status, refused.message) == (400, wanted)

    serve(body)
