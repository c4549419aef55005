"""The health endpoints: /healthz, /livez, /readyz and their single checks, as plain text.

All that can be wrong with a living server is a disk that takes no writes: /healthz and /readyz say so, /livez does not,
because to start the server again would not help.
"""

from __future__ import annotations

from aiohttp import web

_CHECKS = {
    "healthz": ("ping", "log", "etcd"),
    "livez": ("ping", "log", "etcd"),
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"),
}


_OF_STORE = "etcd"


def answer(request: web.BaseRequest, store_failure: str) -> web.Response | None:
    """The answer to a health path, None for any other; `store_failure` is why the store takes no writes."""
    parts = request.path.strip("/").split("/")
    checks = _CHECKS.get(parts[0])
    if checks is None or request.method not in ("GET", "HEAD"):
        return None
    if len(parts) > 1:
        if len(parts) > 2 or parts[1] not in checks:
            return web.Response(text="404 page not found\n", status=404)
        if parts[1] == _OF_STORE and store_failure:
            return web.Response(text=f"internal server error: {store_failure}\n", status=500)
        return web.Response(text="ok")
    excluded = request.query.getall("exclude", [])
    is_failed = bool(store_failure) and parts[0] != "livez" and _OF_STORE not in excluded
    if "verbose" not in request.query and not is_failed:
        return web.Response(text="ok")
    lines = [f"[+]{check} excluded: ok" if check in excluded else f"[+]{check} ok" for check in checks]
    if is_failed:
        lines[checks.index(_OF_STORE)] = f"[-]{_OF_STORE} failed: {store_failure}"
    lines.append(f"{parts[0]} check {'failed' if is_failed else 'passed'}")
    return web.Response(text="\n".join(lines) + "\n", status=500 if is_failed else 200)
