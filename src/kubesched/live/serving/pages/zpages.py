"""The texts of `/statusz` and `/flagz`, for people, and the same as objects, for whoever asks for a version.

Kubernetes picks the sign between name and value at random, so that nobody parses the text; here it stays the same.
Next: `zpage_answers`, which finds out which form is asked for.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from kubesched.live.serving.build_info import KUBERNETES_VERSION, BuildInfo
from kubesched.live.serving.settings import COMPONENT

WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, "
    "has no formatting compatibility guarantees and is for debugging purposes only."
)
GROUP = "config.k8s.io"
_EMULATED = KUBERNETES_VERSION.rpartition(".")[0]


def flagz_text(flags: Mapping[str, str]) -> str:
    lines = "".join(f"{name}={flags[name]}\n" for name in sorted(flags))
    return f"\n{COMPONENT} flagz\n{WARNING}\n{lines}"


def flagz_object(flags: Mapping[str, str], version: str) -> dict[str, Any]:
    found: dict[str, Any] = _head("Flagz", version)
    if flags:
        found["flags"] = {name: flags[name] for name in sorted(flags)}
    return found


def statusz_text(build: BuildInfo, started_s: float, now_s: float, paths: Iterable[str]) -> str:
    started = datetime.fromtimestamp(int(started_s), UTC).strftime("%a %b %e %H:%M:%S UTC %Y")
    up_s = max(0, int(now_s - started_s))
    up = f"{up_s // 3600} hr {up_s // 60 % 60:02d} min {up_s % 60:02d} sec"
    listed = " ".join(first_folders(paths))
    return (
        f"\n{COMPONENT} statusz\n{WARNING}\n"
        f"\nStarted: {started}\nUp: {up}\nPython version: {html.escape(build.go_version)}\n"
        f"Binary version: {html.escape(KUBERNETES_VERSION)}\nEmulation version: {_EMULATED}\n"
        f"Paths: {html.escape(listed)}\n"
    )


def statusz_object(
    build: BuildInfo, started_s: float, now_s: float, paths: Iterable[str], version: str
) -> dict[str, Any]:
    return _head("Statusz", version) | {
        "startTime": datetime.fromtimestamp(int(started_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "uptimeSeconds": max(0, int(now_s - started_s)),
        "goVersion": build.go_version,
        "binaryVersion": KUBERNETES_VERSION,
        "emulationVersion": _EMULATED,
        "paths": first_folders(paths),
    }


def first_folders(paths: Iterable[str]) -> list[str]:
    """The first part of every path, each once."""
    parts = (path.split("/") for path in paths)
    return sorted({f"/{found[1]}" for found in parts if len(found) > 1 and found[1]})


def _head(kind: str, version: str) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": f"{GROUP}/{version}", "metadata": {"name": COMPONENT}}
