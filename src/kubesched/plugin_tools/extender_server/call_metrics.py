"""What the server counts: how long calls took, by verb and result, and how much of the cluster it knows."""

from __future__ import annotations

from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.metrics.definitions import CACHE_SIZE, MetricDefinition, MetricKind
from kubesched.scheduler.engine.metrics.series import HistogramSeries, MetricFamily

CALL_DURATION = MetricDefinition(
    "extender_call_duration_seconds",
    MetricKind.HISTOGRAM,
    ("verb", "result"),
    "ALPHA",
    "How long it took to answer a call of kube-scheduler: ok, error (a plugin failed), or bad_request.",
    (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)


class CallMetrics:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.calls = HistogramSeries(CALL_DURATION)

    def families(self) -> list[MetricFamily]:
        cluster = self._cluster
        sizes = {"nodes": cluster.table.n, "pods": cluster.n_pods, "assumed_pods": cluster.n_assumed}
        return [self.calls.family(), MetricFamily(CACHE_SIZE, {(what,): n for what, n in sizes.items()})]
