"""Paths of the Kubernetes API, taken apart: which kind, which namespace, which object, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.scripted_server.answers import RefusalError
from harness.scripted_server.kinds import ServedKind

_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class Address:
    """What a path points at; with no name, the whole collection."""

    served: ServedKind
    namespace: str | None
    name: str | None
    subresource: str | None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else str(self.name)

    @property
    def resource(self) -> str:
        """As RBAC names it: `pods/binding`."""
        plural = self.served.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural


class RouteTable:
    """The kinds that are served now."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._kinds = {(kind.group, kind.version, kind.plural): kind for kind in kinds}

    def add(self, kind: ServedKind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind

    def remove(self, plural: str, version: str = "") -> None:
        """This kind is no longer served; with a version, not in this one."""
        for at in [at for at in self._kinds if at[2] == plural and version in ("", at[1])]:
            del self._kinds[at]

    def kinds(self) -> list[ServedKind]:
        return list(self._kinds.values())

    def kind(self, name: str, group: str | None = None) -> ServedKind:
        """By kind, plural or `plural.group`, as tests name it."""
        for kind in self._kinds.values():
            if name in (kind.kind, kind.plural, kind.resource) and group in (None, kind.group):
                return kind
        raise KeyError(f"the scripted server has no kind {name!r}")

    def resolve(self, path: str) -> Address:
        parts = [part for part in path.split("/") if part]
        if parts[:1] == ["api"] and len(parts) >= 3:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[:1] == ["apis"] and len(parts) >= 4:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise RefusalError(404, "the server could not find the requested resource")
        namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        served = self._kinds.get((group, version, rest[0]))
        if served is None or len(rest) > 3:
            raise RefusalError(404, "the server could not find the requested resource")
        name, subresource = [*rest[1:], None, None][:2]
        return Address(served, namespace, name, subresource)


def verb_of(method: str, path: str, query: Mapping[str, str]) -> str:
    """Kubernetes' word for a request."""
    if method == "GET":
        if query.get("watch") in ("true", "1"):
            return "watch"
        return "get" if _names_an_object(path) else "list"
    if method == "DELETE":
        return "delete" if _names_an_object(path) else "deletecollection"
    return _WRITES.get(method, method.lower())


def _names_an_object(path: str) -> bool:
    parts = [part for part in path.split("/") if part]
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return len(rest) > 1
