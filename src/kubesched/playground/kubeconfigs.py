"""Kubeconfigs of a playground: merged into the user's own only on request, and never readable by others.

The file on its own is written by the API server.
"""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path
from typing import Any

import yaml

from kubesched.k8s.model.kubernetes_yaml import load_document, plain_yaml

_LISTS = ("clusters", "users", "contexts")


class InvalidKubeconfigError(ValueError):
    """A kubeconfig is not what one should be."""


def merged(own: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """The user's kubeconfig with the entries of the other in it; entries of the same name are replaced."""
    result = {"apiVersion": "v1", "kind": "Config", **own}
    for key in _LISTS:
        new = added.get(key) or []
        names = {entry["name"] for entry in new}
        kept = [entry for entry in own.get(key) or [] if entry.get("name") not in names]
        result[key] = [*kept, *new]
    result["current-context"] = added["current-context"]
    return result


def merge_into(path: Path, added: Path) -> None:
    """Raises InvalidKubeconfigError."""
    own: Any = {}
    if path.exists():
        try:
            own = load_document(path.read_bytes()) or {}
        except (OSError, yaml.YAMLError) as problem:
            raise InvalidKubeconfigError(f"{path}: {' '.join(str(problem).split())}") from None
    if not isinstance(own, dict):
        raise InvalidKubeconfigError(f"{path}: not a kubeconfig")
    content = merged(own, load_document(added.read_bytes()))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(plain_yaml(content))
    beside.replace(path)


def certificate_authority(path: Path) -> str:
    """Who signs for the server that a playground's own kubeconfig names; nobody if it is not served by TLS."""
    (entry,) = load_document(path.read_bytes())["clusters"]
    return base64.b64decode(entry["cluster"].get("certificate-authority-data", "")).decode()


def usual_path(environment: dict[str, str]) -> Path:
    """Where kubectl writes: the first file of $KUBECONFIG, or its own."""
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(named[0]) if named else Path.home() / ".kube" / "config"
