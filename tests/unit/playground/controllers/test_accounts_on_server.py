"""Service accounts of pods: given, looked up, and their tokens mounted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from controlled_api_server import Body, Cluster, on_cluster

_NAMESPACE = "/api/v1/namespaces/default"
_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def _pod(name: str, **spec: Any) -> Body:
    containers = [{"name": "c", "image": "i"}]
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def _mounts(pod: Body) -> list[Body]:
    return [mount for mount in pod["spec"]["containers"][0].get("volumeMounts", []) if mount["mountPath"] == _PATH]


def test_a_pod_gets_the_default_account_and_its_token(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
        made = await cluster.ask("POST", "/api/v1/namespaces/new/pods", _pod("p"))  # the account is made meanwhile
        spec = made["spec"]
        assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
        (mount,), (volume,) = _mounts(made), spec["volumes"]
        assert mount["readOnly"] and mount["name"] == volume["name"]
        assert volume["name"].startswith("kube-api-access-")
        sources = volume["projected"]["sources"]
        assert [next(iter(source)) for source in sources] == ["serviceAccountToken", "configMap", "downwardAPI"]

    on_cluster(scenario, tmp_path)


def test_an_account_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        why = await cluster.refusal("POST", f"{_NAMESPACE}/pods", _pod("p", serviceAccountName="who"))
        assert why == (
            'pods "p" is forbidden: error looking up service account default/who: serviceaccount "who" not found'
        )

    on_cluster(scenario, tmp_path)


@pytest.mark.parametrize(
    ("of_account", "of_pod", "is_mounted"),
    [(None, None, True), (False, None, False), (False, True, True), (True, False, False)],
)
def test_pod_and_account_can_do_without_the_token(
    of_account: bool | None, of_pod: bool | None, is_mounted: bool, tmp_path: Path
) -> None:
    async def scenario(cluster: Cluster) -> None:
        account: Body = {"metadata": {"name": "a"}, "imagePullSecrets": [{"name": "pull"}]}
        if of_account is not None:
            account["automountServiceAccountToken"] = of_account
        await cluster.ask("POST", f"{_NAMESPACE}/serviceaccounts", account)
        wish = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
        made = await cluster.ask("POST", f"{_NAMESPACE}/pods", _pod("p", serviceAccountName="a", **wish))
        assert bool(_mounts(made)) == is_mounted
        assert made["spec"]["imagePullSecrets"] == [{"name": "pull"}]

    on_cluster(scenario, tmp_path)


def test_a_container_that_has_something_else_there_keeps_it(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        pod = _pod("p", volumes=[{"name": "own", "emptyDir": {}}])
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "own", "mountPath": _PATH}]
        made = await cluster.ask("POST", f"{_NAMESPACE}/pods", pod)
        assert [volume["name"] for volume in made["spec"]["volumes"]] == ["own"]

    on_cluster(scenario, tmp_path)


def test_an_account_may_insist_on_its_own_secrets(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        metadata = {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
        account = {"metadata": metadata, "secrets": [{"name": "mine"}]}
        await cluster.ask("POST", f"{_NAMESPACE}/serviceaccounts", account)
        volumes = [{"name": "v", "secret": {"secretName": "theirs"}}]
        why = await cluster.refusal("POST", f"{_NAMESPACE}/pods", _pod("p", serviceAccountName="a", volumes=volumes))
        assert 'volume with secret.secretName="theirs" is not allowed because service account a does not' in why

    on_cluster(scenario, tmp_path)
