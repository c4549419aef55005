"""What the scripted server says that it serves: `/api`, `/apis`, and the kinds of each group and version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.scripted_server.kinds import ServedKind

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def discovery(path: str, kinds: Iterable[ServedKind]) -> dict[str, Any] | None:
    """The answer to a question about kinds; None if the path is no such question, or nothing there is served."""
    match [part for part in path.split("/") if part]:
        case ["api"]:
            return {"kind": "APIVersions", "versions": sorted({kind.version for kind in kinds if not kind.group})}
        case ["apis"]:
            groups = _versions_by_group(kinds)
            listed = [_group(name, versions) for name, versions in groups.items()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", name]:
            versions = _versions_by_group(kinds).get(name)
            return None if versions is None else {**_group(name, versions), "kind": "APIGroup", "apiVersion": "v1"}
        case ["api", version]:
            return _resources("", version, kinds)
        case ["apis", name, version]:
            return _resources(name, version, kinds)
    return None


def _versions_by_group(kinds: Iterable[ServedKind]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        versions = groups.setdefault(kind.group, []) if kind.group else []
        if kind.version not in versions:
            versions.append(kind.version)
    return groups


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(group: str, version: str, kinds: Iterable[ServedKind]) -> dict[str, Any] | None:
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    listed = [
        {"name": kind.plural, "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind, "verbs": _VERBS}
        for kind in served
    ]
    group_version = served[0].api_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}
