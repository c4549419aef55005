"""The `ExecCredential` that a credential plugin is told and that it answers with (client.authentication.k8s.io).

Next: `exec_plugin`, which runs plugins.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from kubesched.k8s.client.kubeconfig_file import ClusterEntry, Placed

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_CONFIG_EXTENSION = f"{GROUP}/exec"


class _LoginStatus(msgspec.Struct, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _PluginAnswer(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _LoginStatus | None = None


@dataclass(frozen=True)
class PluginLogin:
    """What a plugin gave: a token, a certificate with key (PEM), or both; and until when."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires_at_s: float | None = None


class PluginAnswerError(ValueError):
    """A plugin's answer cannot be used; the text holds nothing of the answer but names of fields."""


def exec_info(api_version: str, cluster: dict[str, Any] | None) -> str:
    """The value of KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": False}
    if cluster is not None:
        spec["cluster"] = cluster
    info = {"kind": "ExecCredential", "apiVersion": api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def cluster_info(server: str, proxy: str, cluster: Placed[ClusterEntry], authorities: bytes | None) -> dict[str, Any]:
    """What a plugin with `provideClusterInfo` learns of the cluster."""
    entry = cluster.entry
    fields: dict[str, Any] = {
        "server": server,
        "tls-server-name": entry.tls_server_name,
        "insecure-skip-tls-verify": entry.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authorities or b"").decode("ascii"),
        "proxy-url": proxy,
        "disable-compression": entry.disable_compression,
    }
    known = {name: value for name, value in fields.items() if value}
    for extension in entry.extensions:
        if extension.get("name") == _CONFIG_EXTENSION:
            known["config"] = extension.get("extension")
    return known


def read_login(output: bytes, api_version: str) -> PluginLogin:
    """The login in a plugin's output."""
    try:
        answer = msgspec.json.decode(output, type=_PluginAnswer)
    except msgspec.ValidationError as failure:
        where = str(failure).partition("`$")[2].strip("`.")
        raise PluginAnswerError(f"its output has a wrong type in {where or 'the whole'}") from None
    except msgspec.DecodeError:
        raise PluginAnswerError("its output is not JSON") from None
    if answer.kind != "ExecCredential":
        raise PluginAnswerError("its output is not an ExecCredential")
    if answer.api_version != api_version:
        raise PluginAnswerError(f"it is configured for apiVersion {api_version} and answers in another version")
    if answer.status is None:
        raise PluginAnswerError("it did not return a status field")
    return _checked(answer.status)


def _checked(status: _LoginStatus) -> PluginLogin:
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise PluginAnswerError("it returned only one of clientCertificateData and clientKeyData")
    if not status.token and not certificate:
        raise PluginAnswerError("it did not return a token or a certificate with key")
    expires = status.expiration_timestamp
    if expires is not None and expires.tzinfo is None:
        raise PluginAnswerError("its status.expirationTimestamp has no time zone")
    return PluginLogin(
        token=status.token.strip(),
        certificate=certificate.encode(),
        key=key.encode(),
        expires_at_s=expires.timestamp() if expires is not None else None,
    )
