"""What a request's path and method name: a resource with its verb, or some other path.

Follows the real server's reading of paths, also for resources that are not served (authorization comes before that
question). ``app.py`` looks the resource up.
"""

from __future__ import annotations

import msgspec

_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class RequestPath(msgspec.Struct, frozen=True, gc=False):
    """The parts of a path; ``is_resource`` is False for anything outside of /api/<version>/… and
    /apis/<group>/<version>/…
    """

    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    excess: tuple[str, ...] = ()  # what follows the subresource
    watched_name: str = ""  # of the old paths /watch/…, which watch one object
    is_old_watch: bool = False


def read_path(path: str, method: str, is_watch: bool) -> RequestPath:
    """Takes a path apart; ``is_watch`` says that the query asks for a watch."""
    parts = path.strip("/").split("/")
    if len(parts) >= 3 and parts[0] == "api":
        return _read_resource(path, method, is_watch, "", parts[1], parts[2:])
    if len(parts) >= 4 and parts[0] == "apis":
        return _read_resource(path, method, is_watch, parts[1], parts[2], parts[3:])
    return RequestPath(path, method.lower())


def _read_resource(path: str, method: str, is_watch: bool, group: str, version: str, rest: list[str]) -> RequestPath:
    watches_old_way = rest[0] == "watch" and len(rest) > 1
    if watches_old_way:
        rest, is_watch = rest[1:], True
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    watched_name, name = (name, "") if watches_old_way else ("", name)
    return RequestPath(
        path,
        _resource_verb(_VERBS.get(method, method.lower()), name, is_watch),
        is_resource=True,
        group=group,
        version=version,
        namespace=namespace,
        plural=rest[0],
        name=name,
        subresource=rest[2] if len(rest) > 2 else "",
        excess=tuple(rest[3:]),
        watched_name=watched_name,
        is_old_watch=watches_old_way,
    )


def _resource_verb(verb: str, name: str, is_watch: bool) -> str:
    if name:
        return verb
    if verb == "get":
        return "watch" if is_watch else "list"
    return "deletecollection" if verb == "delete" else verb
