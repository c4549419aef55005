"""What is in deploy/, read for the tests beside this file. Next: `test_deploy_manifests.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "base"
OVERLAYS = sorted(path.parent for path in DEPLOY.glob("overlays/*/kustomization.yaml"))
KUSTOMIZATIONS = sorted(DEPLOY.rglob("kustomization.yaml"))
NAMESPACE = "kube-system"

Manifest = dict[str, Any]


def read_all(path: Path) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document is not None]


def read_one(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def resources_of(folder: Path) -> list[Manifest]:
    """The objects in the files that a kustomization lists, without those of folders that it builds on."""
    listed = [folder / name for name in read_one(folder / "kustomization.yaml")["resources"]]
    return [manifest for path in listed if path.is_file() for manifest in read_all(path)]


def only(manifests: list[Manifest], kind: str, name: str = "") -> Manifest:
    """The one object of a kind, or of a kind with a name."""
    found = [m for m in manifests if m["kind"] == kind and name in ("", m["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} objects of kind {kind} {name}"
    return found[0]


def container_of(deployment: Manifest) -> Manifest:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container
