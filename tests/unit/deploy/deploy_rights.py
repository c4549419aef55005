"""Rules of roles as single rights, and which right a request needs. Next: `test_deploy_rbac.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from deploy_files import BASE, only, resources_of

READ = ("get", "list", "watch")
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Right(NamedTuple):
    group: str
    resource: str
    verb: str
    name: str = ""
    """Empty: whatever its name."""


def rights(groups: Iterable[str], resources: str, verbs: Iterable[str], name: str = "") -> set[Right]:
    return {Right(group, resource, verb, name) for group in groups for resource in resources.split() for verb in verbs}


def rights_in(role: dict[str, Any]) -> Iterator[Right]:
    for rule in role["rules"]:
        for name in rule.get("resourceNames", ("",)):
            yield from rights(rule["apiGroups"], " ".join(rule["resources"]), rule["verbs"], name)


def right_for(method: str, path: str) -> Right:
    """As an API server reads a request: /api/v1/..., /apis/GROUP/VERSION/..., with or without a namespace."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    return Right(group, f"{resource}/{subresource}".rstrip("/"), _VERBS[method], name)


def is_allowed(right: Right, granted: set[Right]) -> bool:
    return right in granted or right._replace(name="") in granted


CLUSTER = set(rights_in(only(resources_of(BASE), "ClusterRole")))
LEASE = set(rights_in(only(resources_of(BASE), "Role", "kubesched-lease")))
