"""The pages that every component of Kubernetes has: health, metrics, `/configz`, `/statusz`, `/flagz` and `/version`.

Each check of `/healthz`, `/livez` and `/readyz` has a page of its own; `sources` says what is checked.

Metrics are `/metrics`, `/metrics/slis` and `/metrics/resources`. The process, the build, its requests, its leadership
and its health have the names, kinds and labels of Kubernetes and the Prometheus clients. What the system does not tell
(there is no /proc, say) is left out. `/metrics/resources` has what pods ask for and are limited to, pod by pod: counted
as the API defines it, by the spec alone; pods that have finished on their node do not count.

What `/statusz` and `/flagz` answer, text for people or an object for whoever asks for a version, is negotiated as in
Kubernetes. There, the sign between name and value is picked at random, so that nobody parses the text; here it stays
the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import html
import json
import logging
import os
import platform
import resource
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from kubesched.k8s.model.core import Container, Pod
from kubesched.k8s.model.quantity import NANO
from kubesched.k8s.model.requests import (
    ATTACHABLE_VOLUMES_PREFIX,
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    AmountError,
    Nanos,
    effective_requests,
    is_restartable,
    to_nanos,
)
from kubesched.live.serving import answers
from kubesched.live.serving.answers import accepted
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
from kubesched.scheduler.engine.metrics.definitions import MetricDefinition, MetricKind
from kubesched.scheduler.engine.metrics.exposition import CONTENT_TYPE, render
from kubesched.scheduler.engine.metrics.series import LabelValues, MetricFamily


class ComponentMetric(MetricDefinition):
    """A metric whose name is complete: not the scheduler's alone."""

    __slots__ = ()

    @property
    def full_name(self) -> str:
        return self.name


def gauge(name: str, labels: str, stability: str, help_text: str) -> ComponentMetric:
    return ComponentMetric(name, MetricKind.GAUGE, tuple(labels.split()), stability, help_text)


def counter(name: str, labels: str, stability: str, help_text: str) -> ComponentMetric:
    return ComponentMetric(name, MetricKind.COUNTER, tuple(labels.split()), stability, help_text)


BUILD_INFO = gauge(
    "kubernetes_build_info",
    "major minor git_version git_commit git_tree_state build_date go_version compiler platform",
    "BETA",
    "Always 1; the labels say what is running.",
)
REST_CLIENT_REQUESTS = counter(
    "rest_client_requests_total", "code method host", "ALPHA", "Requests to the API server by answer, method and host."
)
LEADER_STATUS = gauge(
    "leader_election_master_status", "name", "ALPHA", "1 if this process leads by the lease of that name, 0 if not."
)
HEALTHCHECK = gauge("kubernetes_healthcheck", "name type", "STABLE", "What a health check said last: 1 if all is well.")
HEALTHCHECKS_TOTAL = counter(
    "kubernetes_healthchecks_total", "name type status", "STABLE", "How often health checks said what."
)

SET_ASIDE = gauge(
    "kubesched_objects_set_aside", "kind", "ALPHA", "Objects that cannot be read now; the log names each once."
)
SET_ASIDE_TOTAL = counter(
    "kubesched_objects_set_aside_total", "kind", "ALPHA", "How often an object was found that cannot be read."
)
FAILURES = counter(
    "kubesched_failures_total",
    "part",
    "ALPHA",
    "What was raised that should not be, and cost a fact, an attempt, an answer, a tick or a send; the log has it.",
)


def build_family(build: BuildInfo) -> MetricFamily:
    labels = (
        build.major,
        build.minor,
        build.git_version,
        build.git_commit,
        build.git_tree_state,
        build.build_date,
        build.go_version,
        build.compiler,
        build.platform,
    )
    return MetricFamily(BUILD_INFO, {labels: 1.0})


def request_family(requests: Mapping[tuple[str, str, str], float]) -> MetricFamily:
    """`requests` by (code, method, host)."""
    return MetricFamily(REST_CLIENT_REQUESTS, dict(requests.items()))


def set_aside_families(now: Mapping[str, int], totals: Mapping[str, int]) -> list[MetricFamily]:
    """By kind."""
    return [
        MetricFamily(SET_ASIDE, {(kind,): float(n) for kind, n in now.items()}),
        MetricFamily(SET_ASIDE_TOTAL, {(kind,): float(n) for kind, n in totals.items()}),
    ]


def failures_family(failures: Mapping[str, int]) -> MetricFamily:
    """By what was being done."""
    return MetricFamily(FAILURES, {(part,): float(n) for part, n in failures.items()})


def leadership_family(leads: Mapping[str, bool]) -> MetricFamily:
    """`leads` by the name of the lease."""
    return MetricFamily(LEADER_STATUS, {(name,): float(is_leader) for name, is_leader in leads.items()})


def health_families(records: HealthRecords) -> list[MetricFamily]:
    last: dict[LabelValues, float] = {labels: float(is_healthy) for labels, is_healthy in records.last.items()}
    return [MetricFamily(HEALTHCHECK, last), MetricFamily(HEALTHCHECKS_TOTAL, dict(records.totals.items()))]


CPU_SECONDS = counter("process_cpu_seconds_total", "", "ALPHA", "Seconds of CPU, for the user and the system.")
START_TIME = gauge("process_start_time_seconds", "", "ALPHA", "When the process started, in seconds since 1970.")
RESIDENT = gauge("process_resident_memory_bytes", "", "ALPHA", "Memory that is in use, in bytes.")
VIRTUAL = gauge("process_virtual_memory_bytes", "", "ALPHA", "Memory that is set aside, in bytes.")
OPEN_FDS = gauge("process_open_fds", "", "ALPHA", "Files and connections that are open.")
MAX_FDS = gauge("process_max_fds", "", "ALPHA", "Files and connections that may be open.")
PYTHON_INFO = gauge(
    "python_info", "implementation major minor patchlevel version", "ALPHA", "Always 1; the labels say which Python."
)
GC_COLLECTIONS = counter(
    "python_gc_collections_total", "generation", "ALPHA", "How often the garbage collector went over a generation."
)

_IMPORTED_AT_S = time.time()


def process_families() -> list[MetricFamily]:
    return [*_memory(), *_files(), _start_time(), _cpu(), _python(), _collections()]


def start_time_s() -> float:
    """When the process started; where the system does not tell, when this module was loaded."""
    try:
        # The name in the second field may hold anything, brackets and spaces too.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        booted_s = next(
            float(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime")
        )
        return booted_s + float(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return _IMPORTED_AT_S


def _start_time() -> MetricFamily:
    return MetricFamily(START_TIME, {(): start_time_s()})


def _cpu() -> MetricFamily:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return MetricFamily(CPU_SECONDS, {(): round(used.ru_utime + used.ru_stime, 6)})


def _memory() -> Iterator[MetricFamily]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = Path("/proc/self/statm").read_text().split()
        size = os.sysconf("SC_PAGE_SIZE")
        yield MetricFamily(VIRTUAL, {(): float(pages[0]) * size})
        yield MetricFamily(RESIDENT, {(): float(pages[1]) * size})


def _files() -> Iterator[MetricFamily]:
    with contextlib.suppress(OSError):
        yield MetricFamily(OPEN_FDS, {(): float(sum(1 for _ in Path("/proc/self/fd").iterdir()))})
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield MetricFamily(MAX_FDS, {(): float(soft)})


def _python() -> MetricFamily:
    major, minor, patch = platform.python_version_tuple()
    labels = (platform.python_implementation(), major, minor, patch, platform.python_version())
    return MetricFamily(PYTHON_INFO, {labels: 1.0})


def _collections() -> MetricFamily:
    counts: dict[LabelValues, float] = {
        (str(number),): float(stats["collections"]) for number, stats in enumerate(gc.get_stats())
    }
    return MetricFamily(GC_COLLECTIONS, counts)


@dataclass(frozen=True, slots=True)
class MetricsPages:
    sources: Sources
    records: HealthRecords

    async def metrics(self, request: web.Request) -> web.Response:
        return _exposed(self._rendered([*self.sources.metrics(), *self._component()]))

    async def slis(self, request: web.Request) -> web.Response:
        return _exposed(self._rendered(health_families(self.records)))

    async def resources(self, request: web.Request) -> web.Response:
        """Only who leads tells: the series would come twice."""
        if not self.sources.is_leader():
            return answers.text("")
        pods = list(self.sources.pods())
        # Pods never change and may be many: they are counted in another thread, and the loop schedules on.
        return _exposed(await asyncio.to_thread(lambda: self._rendered(pod_resource_families(pods))))

    def _rendered(self, families: Iterable[MetricFamily]) -> str:
        return render(self.sources.shown(families))

    def _component(self) -> Iterable[MetricFamily]:
        sources = self.sources
        yield from process_families()
        yield build_family(sources.build)
        yield request_family(sources.requests())
        yield leadership_family(sources.leads())
        yield from set_aside_families(*sources.set_aside())
        yield failures_family(sources.failures())


def _exposed(exposition: str) -> web.Response:
    answer = answers.text(exposition, content_type=CONTENT_TYPE)
    answer.enable_compression()
    return answer


_LABELS = "namespace pod node scheduler priority resource unit"
_WHAT = "by pod; the unit is given where the resource has one."
REQUEST = gauge("kube_pod_resource_request", _LABELS, "STABLE", f"Resources that pods ask for, {_WHAT}")
LIMIT = gauge("kube_pod_resource_limit", _LABELS, "STABLE", f"Resources that pods may use at most, {_WHAT}")

_UNITS = {CPU: "cores", MEMORY: "bytes", "storage": "bytes", EPHEMERAL_STORAGE: "bytes"}


def pod_resource_families(pods: Iterable[Pod]) -> list[MetricFamily]:
    requests: dict[LabelValues, float] = {}
    limits: dict[LabelValues, float] = {}
    for pod in pods:
        if pod.spec.node_name and pod.is_terminal:
            continue
        try:
            requests.update(_series(pod, effective_requests(pod, with_status=False)))
            limits.update(_series(pod, effective_limits(pod)))
        except AmountError:
            continue  # the API server lets none through; one that is there all the same must not hide the others
    return [MetricFamily(REQUEST, requests), MetricFamily(LIMIT, limits)]


def effective_limits(pod: Pod) -> Nanos:
    """The containers' limits summed, or the peak while init containers run; pod-level ones in their place; overhead on
    top of what is limited at all."""
    total = _container_limits(pod)
    resources = pod.spec.resources
    if resources is not None:
        for name, nanos in to_nanos(resources.limits, "spec.resources.limits").items():
            if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX):
                total[name] = nanos
    for name, nanos in to_nanos(pod.spec.overhead, "spec.overhead").items():
        if total.get(name):
            total[name] += nanos
    return total


def unit_of(resource: str) -> str:
    if resource.startswith(HUGE_PAGES_PREFIX):
        return "bytes"
    if resource.startswith(ATTACHABLE_VOLUMES_PREFIX):
        return "integer"
    return _UNITS.get(resource, "")


def _container_limits(pod: Pod) -> Nanos:
    total: Nanos = {}
    for index, container in enumerate(pod.spec.containers):
        _add(total, _limits(container, f"spec.containers[{index}]"))
    staying: Nanos = {}
    peak: Nanos = {}
    for index, container in enumerate(pod.spec.init_containers or ()):
        own = _limits(container, f"spec.initContainers[{index}]")
        if is_restartable(container):
            _add(total, own)
            _add(staying, own)
            running = staying
        else:
            running = dict(own)
            _add(running, staying)
        for name, nanos in running.items():
            peak[name] = max(nanos, peak.get(name, nanos))
    for name, nanos in peak.items():
        total[name] = max(nanos, total.get(name, nanos))
    return total


def _limits(container: Container, field: str) -> Nanos:
    resources = container.resources
    return {} if resources is None else to_nanos(resources.limits, f"{field}.resources.limits")


def _add(total: Nanos, amounts: Nanos) -> None:
    for name, nanos in amounts.items():
        total[name] = total.get(name, 0) + nanos


def _series(pod: Pod, amounts: Nanos) -> Iterator[tuple[LabelValues, float]]:
    spec = pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    whose = (pod.namespace, pod.name, spec.node_name, spec.scheduler_name, priority)
    for name, nanos in amounts.items():
        if nanos:
            yield (*whose, name, unit_of(name)), nanos / NANO


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
