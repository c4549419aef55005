"""Metrics that every component of Kubernetes has: the process, the build, its requests, its leadership, its health.

Names, kinds and labels are Kubernetes' (and the Prometheus clients'). Next: `metrics_pages`.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.live.serving.build_info import BuildInfo
from kubesched.live.serving.health import HealthRecords
from kubesched.scheduler.engine.metrics.definitions import MetricDefinition, MetricKind
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
