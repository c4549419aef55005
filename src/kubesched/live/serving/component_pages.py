"""The pages that every component of Kubernetes has: health, `/configz`, `/statusz`, `/flagz` and `/version`.

Each check of `/healthz`, `/livez` and `/readyz` has a page of its own; `sources` says what is checked.

What `/statusz` and `/flagz` answer, text for people or an object for whoever asks for a version, is negotiated as in
Kubernetes. There, the sign between name and value is picked at random, so that nobody parses the text; here it stays
the same.
"""

from __future__ import annotations

import html
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from kubesched.live.serving import answers
from kubesched.live.serving.answers import accepted
from kubesched.live.serving.metrics_pages import start_time_s
from kubesched.live.serving.settings import COMPONENT
from kubesched.live.serving.sources import (
    KUBERNETES_VERSION,
    PING,
    BuildInfo,
    HealthCheck,
    HealthChecks,
    HealthRecords,
    Sources,
    examine,
)
from kubesched.scheduler.config import to_yaml

Page = Callable[[web.Request], Awaitable[web.Response]]
_log = logging.getLogger("kubesched.serving")


@dataclass(frozen=True, slots=True)
class HealthPages:
    checks: HealthChecks
    records: HealthRecords

    def routes(self) -> Iterator[tuple[str, Page]]:
        """(path, page)"""
        for page, checks in (
            ("healthz", self.checks.healthz),
            ("livez", self.checks.livez),
            ("readyz", self.checks.readyz),
        ):
            asked = tuple(checks) or (PING,)
            yield f"/{page}", self._whole(page, asked)
            for check in asked:
                yield f"/{page}/{check.name}", _single(check)

    def _whole(self, page: str, checks: Sequence[HealthCheck]) -> Page:
        async def answer(request: web.Request) -> web.Response:
            excluded = request.query.getall("exclude", [])
            found = examine(page, checks, self.records, excluded, verbose="verbose" in request.query)
            if not found.is_healthy:
                _log.info(f"{page} check failed", extra={"fields": {"problems": list(found.problems)}, "v": 2})
            return answers.text(found.body, status=200 if found.is_healthy else 500, no_sniff=True)

        return answer


def _single(check: HealthCheck) -> Page:
    async def answer(_request: web.Request) -> web.Response:
        problem = check.problem()
        return answers.text_error(f"internal server error: {problem}", 500) if problem else answers.text("ok")

    return answer


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


VERSIONS = ("v1beta1", "v1alpha1")
DEPRECATED = "v1alpha1"
_OBJECTS = ("application/json", "application/yaml")
_OFFERED = "only the following media types are accepted: application/json, application/yaml, text/plain"


def negotiated(
    request: web.Request, kind: str, text: Callable[[], str], as_object: Callable[[str], dict[str, Any]]
) -> web.Response:
    """`as_object` is given the version that is asked for."""
    header = request.headers.get("Accept", "")
    if not header.strip():
        return answers.text(text())
    for found in accepted(header):
        if found.name in ("*/*", "text/*", "text/plain"):
            return answers.text(text())
        version = found.parameters.get("v", "")
        asks_for = (found.parameters.get("g"), found.parameters.get("as"))
        if found.name in _OBJECTS and asks_for == (GROUP, kind) and version in VERSIONS:
            return _object(request, kind, found.name, as_object(version), version)
    return answers.status_answer(request, 406, "NotAcceptable", _OFFERED)


def _object(request: web.Request, kind: str, media_type: str, value: dict[str, Any], version: str) -> web.Response:
    if media_type == "application/yaml":
        answer = answers.text(to_yaml(value), content_type=media_type)
    else:
        answer = answers.json_answer(request, value)
    if version == DEPRECATED:
        page = kind.lower()
        answer.headers["Warning"] = (
            f'299 - "This version of the {page} endpoint is deprecated. Please use a newer version."'
        )
    return answer


CONFIGZ_NAME = "componentconfig"
"""Under which kube-scheduler shows its configuration."""
EMULATION_NAME = "emulation"
"""Under which the predicates and priorities, or plugins, of an emulated version are shown beside it."""


@dataclass(frozen=True, slots=True)
class ComponentPages:
    sources: Sources
    paths: Callable[[], Sequence[str]]
    """Of all pages."""

    async def configz(self, _request: web.Request) -> web.Response:
        shown = {CONFIGZ_NAME: self.sources.configuration()}
        if self.sources.emulation is not None:
            shown[EMULATION_NAME] = self.sources.emulation()
        body = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
        return answers.text(body, content_type=answers.JSON, no_sniff=True)

    async def version(self, request: web.Request) -> web.Response:
        return answers.json_answer(request, self.sources.build.to_dict())

    async def flagz(self, request: web.Request) -> web.Response:
        flags = self.sources.flags()
        return negotiated(
            request,
            "Flagz",
            lambda: flagz_text(flags),
            lambda version: flagz_object(flags, version),
        )

    async def statusz(self, request: web.Request) -> web.Response:
        shown = (self.sources.build, start_time_s(), time.time(), self.paths())
        return negotiated(
            request,
            "Statusz",
            lambda: statusz_text(*shown),
            lambda version: statusz_object(*shown, version),
        )
