"""For the tests of access: roles, bindings and requests as somebody."""

from __future__ import annotations

from typing import Any

from apiserver_serving import Answered, TestClient

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
IN_DEFAULT = f"{RBAC}/namespaces/default"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH, APPLY_PATCH = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def rule(verbs: str, groups: str, resources: str, *names: str) -> dict[str, Any]:
    """``rule("get list", "apps", "deployments")``; the core group is written ``core``."""
    made: dict[str, Any] = {
        "verbs": verbs.split(),
        "apiGroups": ["" if group == "core" else group for group in groups.split()],
        "resources": resources.split(),
    }
    return {**made, "resourceNames": list(names)} if names else made


def role(name: str, *rules: dict[str, Any], kind: str = "ClusterRole", **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules), **more}


def binding(name: str, role_name: str, *users: str, role_kind: str = "ClusterRole") -> dict[str, Any]:
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": user} for user in users]
    reference = {"apiGroup": GROUP, "kind": role_kind, "name": role_name}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}


async def give(client: TestClient, user: str, *rules: dict[str, Any], name: str = "given") -> None:
    """The administrator lets the user do this everywhere."""
    assert (await client.ask("POST", f"{RBAC}/clusterroles", role(name, *rules))).status == 201
    assert (await client.ask("POST", f"{RBAC}/clusterrolebindings", binding(name, name, user))).status == 201


async def ask_as(client: TestClient, user: str, method: str, path: str, body: Any = None, **headers: str) -> Answered:
    return await client.ask(method, path, body, Impersonate_User=user, **headers)


async def account_token(client: TestClient, name: str, spec: dict[str, Any] | None = None) -> str:
    """The token of a service account, which is made if it is missing."""
    await client.ask("POST", ACCOUNTS, {"metadata": {"name": name}})
    made = await client.ask("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec or {}})
    assert made.status == 201, made.body
    return str(made.body["status"]["token"])
