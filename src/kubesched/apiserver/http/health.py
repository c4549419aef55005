"""The health endpoints: /healthz, /livez, /readyz and their single checks, as plain text.

Everything that can be wrong here stops the process or shows as 503 on requests, so a living server is a healthy one.
"""

from __future__ import annotations

from aiohttp import web

_CHECKS = {
    "healthz": ("ping", "log", "etcd"),
    "livez": ("ping", "log", "etcd"),
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"),
}


def answer(request: web.BaseRequest) -> web.Response | None:
    """The answer to a health path, None for any other."""
    parts = request.path.strip("/").split("/")
    checks = _CHECKS.get(parts[0])
    if checks is None or request.method not in ("GET", "HEAD"):
        return None
    if len(parts) > 1:
        known = len(parts) == 2 and parts[1] in checks
        return web.Response(text="ok") if known else web.Response(text="404 page not found\n", status=404)
    if "verbose" not in request.query:
        return web.Response(text="ok")
    excluded = request.query.getall("exclude", [])
    lines = [f"[+]{check} excluded: ok" if check in excluded else f"[+]{check} ok" for check in checks]
    return web.Response(text="\n".join((*lines, f"{parts[0]} check passed")) + "\n")
