"""Nobody gives away rights that they do not have, whichever way they write roles and bindings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from access_objects import (
    APPLY_PATCH,
    IN_DEFAULT,
    JSON_PATCH,
    MERGE_PATCH,
    RBAC,
    STRATEGIC_PATCH,
    ask_as,
    binding,
    give,
    role,
    rule,
)
from apiserver_serving import TestClient, serve
from hypothesis import given
from hypothesis import strategies as st

from kubesched.playground.apiserver.verbs.authorization import Action, described, missing_rules
from kubesched.playground.apiserver.verbs.authorization import _rule_allows as allows

_WRITER = rule(
    "create update patch delete get list",
    "rbac.authorization.k8s.io",
    "roles clusterroles rolebindings clusterrolebindings",
)
_ALL = rule("*", "*", "*")
_SECRETS = rule("*", "core", "secrets")
_NOT_HELD = (
    'user "alice" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
)
_READ_SECRETS_MISSING = '{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}'


def test_who_may_write_bindings_does_not_bind_itself_to_cluster_admin() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", _WRITER)
        path = f"{RBAC}/clusterrolebindings"
        refused = await ask_as(client, "alice", "POST", path, binding("x", "cluster-admin", "alice"))
        assert refused.status == 403
        all_rights = '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'
        assert refused.message == (
            f'clusterrolebindings.rbac.authorization.k8s.io "x" is forbidden: {_NOT_HELD}{all_rights}'
        )
        assert refused.body["details"]["kind"] == "clusterrolebindings"
        own = await ask_as(client, "alice", "POST", path, binding("own", "given", "bob"))
        assert own.status == 201  # what one has, one may give
        assert (await client.ask("POST", path, binding("x", "cluster-admin", "alice"))).status == 201

    serve(body)


@pytest.mark.parametrize(
    ("method", "path", "content", "media_type"),
    [
        pytest.param("POST", f"{RBAC}/clusterroles", role("x", _SECRETS), "application/json", id="create"),
        pytest.param("PUT", f"{RBAC}/clusterroles/x", role("x", _SECRETS), "application/json", id="create by update"),
        pytest.param("PUT", f"{RBAC}/clusterroles/held", role("held", _SECRETS), "application/json", id="update"),
        pytest.param(
            "PATCH",
            f"{RBAC}/clusterroles/held",
            [{"op": "add", "path": "/rules/-", "value": _SECRETS}],
            JSON_PATCH,
            id="JSON patch",
        ),
        pytest.param("PATCH", f"{RBAC}/clusterroles/held", {"rules": [_SECRETS]}, MERGE_PATCH, id="merge patch"),
        pytest.param("PATCH", f"{RBAC}/clusterroles/held", {"rules": [_SECRETS]}, STRATEGIC_PATCH, id="strategic"),
        pytest.param(
            "PATCH",
            f"{RBAC}/clusterroles/held?fieldManager=me&force=true",
            role("held", _SECRETS),
            APPLY_PATCH,
            id="apply",
        ),
        pytest.param(
            "PATCH",
            f"{RBAC}/clusterroles/x?fieldManager=me&force=true",
            role("x", _SECRETS),
            APPLY_PATCH,
            id="new apply",
        ),
        pytest.param("POST", f"{IN_DEFAULT}/roles", role("x", _SECRETS, kind="Role"), "application/json", id="role"),
    ],
)
def test_a_role_holds_only_what_its_writer_holds(method: str, path: str, content: Any, media_type: str) -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", _WRITER)
        held = role("held", rule("get", "rbac.authorization.k8s.io", "roles"))
        assert (await ask_as(client, "alice", "POST", f"{RBAC}/clusterroles", held)).status == 201
        refused = await ask_as(client, "alice", method, path, json.dumps(content), Content_Type=media_type)
        assert refused.status == 403
        assert refused.message.endswith(f"is forbidden: {_NOT_HELD}{_READ_SECRETS_MISSING}")

    serve(body)


def test_the_verb_bind_gives_one_role_in_one_place() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", _WRITER)
        for name, resource in (("readers", "pods"), ("others", "nodes")):
            await client.ask("POST", f"{RBAC}/clusterroles", role(name, rule("get", "core", resource)))
        may_bind = role("binder", rule("bind", "rbac.authorization.k8s.io", "clusterroles", "readers"))
        await client.ask("POST", f"{RBAC}/clusterroles", may_bind)
        await client.ask("POST", f"{IN_DEFAULT}/rolebindings", binding("binder", "binder", "alice"))
        in_default, everywhere = f"{IN_DEFAULT}/rolebindings", f"{RBAC}/clusterrolebindings"
        assert (await ask_as(client, "alice", "POST", in_default, binding("a", "readers", "alice"))).status == 201
        assert (await ask_as(client, "alice", "POST", in_default, binding("b", "others", "alice"))).status == 403
        assert (await ask_as(client, "alice", "POST", everywhere, binding("c", "others", "alice"))).status == 403

    serve(body)


def test_the_verb_escalate_allows_any_rules_in_one_place() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", _WRITER)
        may_escalate = role("escalator", rule("escalate", "rbac.authorization.k8s.io", "roles"))
        await client.ask("POST", f"{RBAC}/clusterroles", may_escalate)
        await client.ask("POST", f"{IN_DEFAULT}/rolebindings", binding("escalator", "escalator", "alice"))
        wanted = role("all", _ALL, kind="Role")
        assert (await ask_as(client, "alice", "POST", f"{IN_DEFAULT}/roles", wanted)).status == 201
        elsewhere = f"{RBAC}/namespaces/kube-system/roles"
        assert (await ask_as(client, "alice", "POST", elsewhere, wanted)).status == 403
        assert (await ask_as(client, "alice", "POST", f"{RBAC}/clusterroles", role("all", _ALL))).status == 403

    serve(body)


def test_deleting_and_writing_again_is_no_way_around() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", _WRITER)
        await client.ask("POST", f"{RBAC}/clusterroles", role("readers", rule("get", "core", "pods")))
        path, bound = f"{RBAC}/clusterrolebindings", binding("readers", "readers", "bob")
        await client.ask("POST", path, bound)
        stolen = binding("readers", "readers", "alice")
        assert (await ask_as(client, "alice", "PUT", f"{path}/readers", stolen)).status == 403
        other_role = {"roleRef": {"name": "cluster-admin"}}
        refused = await ask_as(client, "alice", "PATCH", f"{path}/readers", other_role, Content_Type=MERGE_PATCH)
        assert refused.status == 403
        refused = await client.ask("PATCH", f"{path}/readers", other_role, Content_Type=MERGE_PATCH)
        assert refused.status == 422
        assert refused.message.endswith("cannot change roleRef")
        assert (await ask_as(client, "alice", "DELETE", f"{path}/readers")).status == 200
        assert (await ask_as(client, "alice", "POST", path, stolen)).status == 403

    serve(body)


def test_a_role_that_nobody_wrote_is_told_and_not_given() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", _WRITER)
        path = f"{RBAC}/clusterrolebindings"
        missing = await ask_as(client, "alice", "POST", path, binding("x", "nobody", "alice"))
        assert (missing.status, missing.message) == (
            404,
            'clusterrolebindings.rbac.authorization.k8s.io "nobody" not found',
        )
        await client.ask("POST", path, binding("dangling", "nobody", "alice"))
        refused = await ask_as(client, "alice", "POST", f"{RBAC}/clusterroles", role("x", _SECRETS))
        gap = '; resolution errors: [clusterroles.rbac.authorization.k8s.io "nobody" not found]'
        assert refused.message.endswith(_READ_SECRETS_MISSING + gap)
        denied = await ask_as(client, "alice", "GET", "/api/v1/pods")
        assert denied.message.endswith(
            'at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "nobody" not found'
        )

    serve(body)


def test_aggregation_is_for_those_who_may_do_everything() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", _WRITER)
        selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        joined = role("joined", aggregationRule=selector)
        refused = await ask_as(client, "alice", "POST", f"{RBAC}/clusterroles", joined)
        assert refused.status == 403
        assert refused.message.endswith("must have cluster-admin privileges to use the aggregationRule")
        await client.ask("POST", f"{RBAC}/clusterrolebindings", binding("alice", "cluster-admin", "alice"))
        assert (await ask_as(client, "alice", "POST", f"{RBAC}/clusterroles", joined)).status == 201

    serve(body)


def test_the_garbage_collectors_fields_are_nobodys_grant() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", _WRITER)
        await client.ask("POST", f"{RBAC}/clusterroles", role("readers", rule("get", "core", "pods")))
        path = f"{RBAC}/clusterroles/readers"
        finalizer = {"metadata": {"finalizers": ["a.b/c"]}}
        assert (await ask_as(client, "alice", "PATCH", path, finalizer, Content_Type=MERGE_PATCH)).status == 200
        label = {"metadata": {"labels": {"a": "b"}}}
        assert (await ask_as(client, "alice", "PATCH", path, label, Content_Type=MERGE_PATCH)).status == 403

    serve(body)


def test_a_selector_of_roles_is_checked() -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", f"{RBAC}/clusterroles", role("x", aggregationRule={}))
        assert "at least one clusterRoleSelector required if aggregationRule is non-nil" in refused.message
        wrong = role("x", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a b": "c"}}]})
        refused = await client.ask("POST", f"{RBAC}/clusterroles", wrong)
        assert refused.message.endswith(
            "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.]"
        )

    serve(body)


_WORDS = st.sampled_from(["get", "list", "*", "create"])
_GROUPS = st.sampled_from(["", "apps", "*"])
_RESOURCES = st.sampled_from(["pods", "pods/log", "*", "*/log", "deployments", "deployments/scale"])
_NAMES = st.sampled_from(["a", "b"])
_RULES = st.builds(
    lambda verbs, groups, resources, names: {
        "verbs": verbs,
        "apiGroups": groups,
        "resources": resources,
        **({"resourceNames": names} if names else {}),
    },
    st.lists(_WORDS, min_size=1, max_size=2),
    st.lists(_GROUPS, min_size=1, max_size=2),
    st.lists(_RESOURCES, min_size=1, max_size=2),
    st.lists(_NAMES, max_size=1),
)
_ACTIONS = st.builds(
    Action,
    st.sampled_from(["get", "list", "create", "delete"]),
    st.sampled_from(["", "apps", "batch"]),
    st.sampled_from(["pods", "deployments", "jobs"]),
    st.sampled_from(["", "log", "scale"]),
    name=st.sampled_from(["", "a", "b", "c"]),
)


@given(st.lists(_RULES, max_size=3), _RULES, _ACTIONS)
def test_who_lacks_nothing_gains_nothing(held: list[dict[str, Any]], wanted: dict[str, Any], action: Action) -> None:
    """Rules that are covered allow no action that the holder could not do already."""
    if missing_rules(held, [wanted]):
        return
    assert not allows(wanted, action) or any(allows(one, action) for one in held)


def test_missing_verbs_are_told_together() -> None:
    wanted = [rule("get list watch", "core apps", "pods", "a"), {"verbs": ["get", "post"], "nonResourceURLs": ["/x"]}]
    held = [rule("list", "*", "*"), {"verbs": ["post"], "nonResourceURLs": ["/*"]}]
    assert described(missing_rules(held, wanted)).splitlines() == [
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "watch"]}',
        '{APIGroups:["apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "watch"]}',
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
    ]
