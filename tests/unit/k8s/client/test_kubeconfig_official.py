"""The same kubeconfig read by us and by the official Python client leads to the same server and login."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client as official
from kubernetes import config as official_config
from loopback_servers import authority, client_identity

from kubesched.k8s.client.kubeconfig import load_target


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


CLUSTERS: dict[str, dict[str, Any]] = {
    "plain": {"server": "http://10.1.2.3:8080"},
    "slash": {"server": "https://10.1.2.3:6443/", "insecure-skip-tls-verify": True},
    "path": {"server": "https://rancher.example/k8s/clusters/c-1", "certificate-authority": "ca.crt"},
    "named": {"server": "https://10.1.2.3", "certificate-authority": "ca.crt", "tls-server-name": "kubernetes"},
    "proxied": {"server": "https://10.1.2.3", "certificate-authority": "ca.crt", "proxy-url": "http://proxy:3128"},
}
USERS: dict[str, dict[str, Any]] = {
    "nobody": {},
    "token": {"token": "abc"},
    "token-file": {"tokenFile": "token"},
    "password": {"username": "me", "password": "pass word"},
    "certificate": {
        "client-certificate-data": _b64(client_identity().certificate),
        "client-key-data": _b64(client_identity().key),
    },
    "certificate-and-token": {"client-certificate": "me.crt", "client-key": "me.key", "token": "abc"},
    "exec": {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "interactiveMode": "Never",
            "env": [{"name": "GREETING", "value": "hello"}],
        }
    },
}
PLUGIN = """#!/bin/sh
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$GREETING'"}}'
"""


def _folder(tmp_path: Path, cluster: str, user: str) -> Path:
    (tmp_path / "ca.crt").write_bytes(authority().certificate)
    (tmp_path / "me.crt").write_bytes(client_identity().certificate)
    (tmp_path / "me.key").write_bytes(client_identity().key)
    (tmp_path / "token").write_text("from-file")
    (tmp_path / "plugin").write_text(PLUGIN)
    (tmp_path / "plugin").chmod(0o700)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": name, "cluster": entry} for name, entry in CLUSTERS.items()],
        "users": [{"name": name, "user": entry} for name, entry in USERS.items()],
        "contexts": [{"name": "x", "context": {"cluster": cluster, "user": user}}],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_both_clients_read_the_same(tmp_path: Path, cluster: str, user: str) -> None:
    path = _folder(tmp_path, cluster, user)
    theirs = official.Configuration()
    official_config.load_kube_config(str(path), client_configuration=theirs)  # type: ignore[no-untyped-call]
    ours = load_target(path, environ={})
    headers = dict(asyncio.run(ours.credentials.headers()))
    assert ours.url == theirs.host
    assert headers.get("Authorization") == theirs.api_key.get("BearerToken")
    assert ours.proxy == theirs.proxy
    assert ours.tls_server_name == theirs.tls_server_name
    if ours.ssl_context is not None:
        assert ours.ssl_context.check_hostname == theirs.verify_ssl
        assert bool(ours.ssl_context.get_ca_certs()) == bool(theirs.ssl_ca_cert)
