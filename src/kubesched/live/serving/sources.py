"""What the scheduler tells about itself: functions that pages call, in the thread that owns the state. They only look.

`live_sources` makes them for a running loop: what there is to tell can be read off it. What the program is, BuildInfo
says in the words of Kubernetes' `/version` and `kubernetes_build_info`.

Next: `server`.
"""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Protocol

from kubesched.k8s.model.core import Pod
from kubesched.live.serving.health import HealthChecks
from kubesched.scheduler.engine.metrics.series import MetricFamily

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
