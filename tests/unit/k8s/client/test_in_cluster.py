"""The configuration inside a pod."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from loopback_servers import authority

import kubesched.k8s.client.kubeconfig as in_cluster
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig import load_in_cluster_target, load_target

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(authority().certificate)
    (folder / "token").write_text("pod-token\n")
    (folder / "namespace").write_text("kube-system")
    return folder


@pytest.mark.parametrize(
    ("host", "url"),
    [
        pytest.param("10.96.0.1", "https://10.96.0.1:443", id="IPv4"),
        pytest.param("fd00::1", "https://[fd00::1]:443", id="IPv6"),
    ],
)
def test_a_pod_finds_its_server(account: Path, host: str, url: str) -> None:
    target = load_in_cluster_target(environ=POD | {"KUBERNETES_SERVICE_HOST": host}, directory=account)
    assert (target.url, target.namespace) == (url, "kube-system")
    assert asyncio.run(target.credentials.headers()) == (("Authorization", "Bearer pod-token"),)
    assert target.ssl_context is not None and len(target.ssl_context.get_ca_certs()) == 1


def test_a_pod_without_kubeconfig_uses_its_service_account(
    account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_in_cluster_target, "__kwdefaults__", {"environ": None, "directory": account})
    environ = POD | {"HOME": str(tmp_path)}
    assert load_target(environ=environ).url == "https://10.96.0.1:443"
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(
        "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: http://h}}]"
    )
    assert load_target(environ=environ).url == "http://h"


def test_a_namespace_that_is_not_told_is_the_default(account: Path) -> None:
    (account / "namespace").unlink()
    assert load_in_cluster_target(environ=POD, directory=account).namespace == "default"


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_pod_without_service_account_says_what_to_check(account: Path, missing: str) -> None:
    (account / missing).unlink()
    with pytest.raises(ClientConfigError) as refused:
        load_in_cluster_target(environ=POD, directory=account)
    assert str(refused.value) == (
        f"{account / missing}: cannot read the service account: No such file or directory; "
        "check automountServiceAccountToken of the pod and its service account"
    )


def test_a_broken_authority_is_named(account: Path) -> None:
    (account / "ca.crt").write_text("hello")
    with pytest.raises(ClientConfigError, match=r"ca.crt: holds no PEM certificate"):
        load_in_cluster_target(environ=POD, directory=account)


def test_outside_a_pod_it_says_so() -> None:
    assert not in_cluster.is_in_cluster({"KUBERNETES_SERVICE_HOST": "x"})
    with pytest.raises(ClientConfigError, match="this is not a pod"):
        load_in_cluster_target(environ={})
