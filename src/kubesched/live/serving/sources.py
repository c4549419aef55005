"""What the scheduler tells about itself: functions that pages call, in the thread that owns the state, and its health.

The functions only look; `live_sources` makes them for a running loop. What the program is, BuildInfo says in the words
of Kubernetes' `/version` and `kubernetes_build_info`.

Health checks say the texts of Kubernetes' `/healthz`, `/livez` and `/readyz`, to the letter. Which checks stand where
is kube-scheduler's choice too (`scheduler_checks`).

Next: `component_pages`, `server`.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, NamedTuple, Protocol

from kubesched.k8s.model.core import Pod
from kubesched.scheduler.engine.metrics.series import MetricFamily


class HealthCheck(NamedTuple):
    """`problem` says what is wrong; empty if all is well."""

    name: str
    problem: Callable[[], str]


PING = HealthCheck("ping", lambda: "")


class HealthAnswer(NamedTuple):
    is_healthy: bool
    body: str
    problems: tuple[str, ...]
    """For the log: the page withholds reasons."""


@dataclass(slots=True)
class HealthRecords:
    """What checks said: `kubernetes_healthcheck` and `kubernetes_healthchecks_total` count this."""

    last: dict[tuple[str, str], bool] = field(default_factory=dict)
    """By check and page."""
    totals: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By check, page, and success or error."""

    def note(self, check: str, page: str, is_healthy: bool) -> None:
        self.last[check, page] = is_healthy
        self.totals[check, page, "success" if is_healthy else "error"] += 1


@dataclass(frozen=True, slots=True)
class HealthChecks:
    """By page; a page without checks has `ping`."""

    healthz: Sequence[HealthCheck] = ()
    livez: Sequence[HealthCheck] = ()
    readyz: Sequence[HealthCheck] = ()


def scheduler_checks(
    *,
    is_shutting_down: Callable[[], bool],
    are_handlers_synced: Callable[[], bool],
    leader_election: Callable[[], str] | None = None,
    unsynced_informers: Callable[[], Sequence[str]] | None = None,
    unanswered: Callable[[], int] | None = None,
) -> HealthChecks:
    """kube-scheduler's checks in its order. `leader_election` is the watchdog's word, if there is an election;
    `unsynced_informers` names the kinds that have not been listed yet. `unanswered`, which is ours, counts writes that
    were not answered, and of which reading did not tell either what became of them: only a restart helps."""
    alive = [] if leader_election is None else [HealthCheck("leaderElection", leader_election)]
    if unanswered is not None:
        alive.append(HealthCheck("writes-answered", lambda: _unanswered(unanswered())))
    ready = [
        *alive,
        HealthCheck("shutdown", lambda: "process is shutting down" if is_shutting_down() else ""),
        HealthCheck(
            "sched-handler-sync", lambda: "" if are_handlers_synced() else "handlers are not fully synchronized"
        ),
    ]
    if unsynced_informers is not None:
        ready.append(HealthCheck("informer-sync", lambda: _unsynced(unsynced_informers())))
    return HealthChecks(healthz=alive, readyz=ready)


def examine(
    page: str,
    checks: Sequence[HealthCheck],
    records: HealthRecords,
    excluded: Collection[str] = (),
    *,
    verbose: bool = False,
) -> HealthAnswer:
    """What a page says. Always at length if something is wrong."""
    lines, failed, problems = [], [], []
    for check in checks:
        if check.name in excluded:
            lines.append(f"[+]{check.name} excluded: ok\n")
            continue
        problem = check.problem()
        records.note(check.name, page, not problem)
        if problem:
            lines.append(f"[-]{check.name} failed: reason withheld\n")
            failed.append(check.name)
            problems.append(f"[-]{check.name} failed: {problem}")
        else:
            lines.append(f"[+]{check.name} ok\n")
    unknown = sorted(set(excluded) - {check.name for check in checks})
    if unknown:
        quoted = ",".join(map(json.dumps, unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}\n")
    if failed:
        return HealthAnswer(False, f"{''.join(lines)}{page} check failed\n", tuple(problems))
    return HealthAnswer(True, f"{''.join(lines)}{page} check passed\n" if verbose else "ok", ())


def _unanswered(n_writes: int) -> str:
    return f"{n_writes} writes were not answered, and could not be found out about" if n_writes else ""


def _unsynced(kinds: Sequence[str]) -> str:
    return f"{len(kinds)} informers not started yet: [{' '.join(kinds)}]" if kinds else ""


KUBERNETES_MAJOR = "1"
KUBERNETES_MINOR = "36"
KUBERNETES_VERSION = "1.36.4"
"""Whose decisions we make."""


def _own_version() -> str:
    """Empty where the package is not installed, only on the path."""
    try:
        return metadata.version("kubesched")
    except metadata.PackageNotFoundError:
        return ""


def _platform() -> str:
    """As Go names it."""
    machines = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    machine = platform.machine().lower()
    return f"{platform.system().lower()}/{machines.get(machine, machine)}"


@dataclass(frozen=True, slots=True)
class BuildInfo:
    major: str = KUBERNETES_MAJOR
    minor: str = KUBERNETES_MINOR
    git_version: str = f"v{KUBERNETES_VERSION}+kubesched-{_own_version()}".removesuffix("-")
    git_commit: str = ""
    git_tree_state: str = ""
    build_date: str = ""
    go_version: str = f"python{platform.python_version()}"
    """The runtime; Kubernetes' word for it is kept, as that is what is read."""
    compiler: str = platform.python_implementation().lower()
    platform: str = _platform()

    def to_dict(self) -> dict[str, str]:
        """What `/version` answers."""
        return {
            "major": self.major,
            "minor": self.minor,
            "gitVersion": self.git_version,
            "gitCommit": self.git_commit,
            "gitTreeState": self.git_tree_state,
            "buildDate": self.build_date,
            "goVersion": self.go_version,
            "compiler": self.compiler,
            "platform": self.platform,
        }


Report = dict[str, Any]
"""Made of what JSON can hold."""

DecisionReport = Callable[[str, int], Report]
"""The last decisions: of one pod (`namespace/name`, or empty for all), made after a number."""

MetricChoice = Callable[[Iterable[MetricFamily]], Iterable[MetricFamily]]


def everything(families: Iterable[MetricFamily]) -> Iterable[MetricFamily]:
    """All metrics, as they are."""
    return families


class PodExplainer(Protocol):
    def __call__(self, namespace: str, name: str, *, as_text: bool) -> Awaitable[Report | str]:
        """Raises `NotExplainableError`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What has a default may be left out; pages for what is None are not there."""

    checks: HealthChecks = field(default_factory=HealthChecks)
    metrics: Callable[[], Iterable[MetricFamily]] = tuple
    """The scheduler's own; those of the process are added."""
    shown: MetricChoice = everything
    """Leaves out what is not to be shown, of all pages with metrics."""
    requests: Callable[[], Mapping[tuple[str, str, str], float]] = dict
    """Requests to the API server by (code, method, host)."""
    leads: Callable[[], Mapping[str, bool]] = dict
    """Whether this process leads, by the name of the lease."""
    set_aside: Callable[[], tuple[Mapping[str, int], Mapping[str, int]]] = lambda: ({}, {})
    """Objects that cannot be read, by kind: how many there are, and how often one was found."""
    failures: Callable[[], Mapping[str, int]] = dict
    """What was raised in the loop and should not be, by what was being done."""
    is_leader: Callable[[], bool] = lambda: True
    """Whether it schedules; true if there is no election."""
    pods: Callable[[], Iterable[Pod]] = tuple
    """All that the informers hold."""
    configuration: Callable[[], Report] = dict
    """The effective KubeSchedulerConfiguration, as a manifest; that of the emulated version, if one decides."""
    emulation: Callable[[], Report] | None = None
    """What the emulated version runs."""
    flags: Callable[[], Mapping[str, str]] = dict
    """Flags and their values, secrets left out."""
    queue: Callable[[], Report] | None = None
    cache: Callable[[bool], Report] | None = None
    """Told whether to compare with the informers, which takes its time."""
    explain: PodExplainer | None = None
    decisions: DecisionReport | None = None
    build: BuildInfo = field(default_factory=BuildInfo)
