"""What is measured: real time over the windows of a workload and per decision, pods, attempts, memory.

A window's time is that of engine and loop, and of the world's answers; it stands still while the benchmark makes the
objects that it is going to show them.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

import numpy as np

from kubesched.k8s.model.core import Pod


@dataclass(frozen=True, slots=True)
class PodFilter:
    """Which pods count in a window."""

    namespaces: frozenset[str]
    labels: Mapping[str, str]

    def matches(self, pod: Pod) -> bool:
        return pod.metadata.namespace in self.namespaces and (not self.labels or has_labels(pod, self.labels))


def has_labels(pod: Pod, wanted: Mapping[str, str]) -> bool:
    labels = pod.labels
    return all(labels.get(key) == value for key, value in wanted.items())


class Measurement:
    """Sums over all windows of a run."""

    def __init__(self) -> None:
        self.n_pods = 0
        self.n_scheduled = 0
        self.took_ns = array("Q")
        """Of every decision in a window."""
        self._window: PodFilter | None = None
        self._elapsed_ns = 0
        self._started_ns = 0

    @property
    def is_open(self) -> bool:
        return self._window is not None

    def open(self, pods: PodFilter) -> None:
        self._window = pods
        self._started_ns = perf_counter_ns()

    def close(self) -> None:
        if self._window is not None:
            self._elapsed_ns += perf_counter_ns() - self._started_ns
            self._window = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """For what a benchmark does on its own account."""
        if self._window is None:
            yield
            return
        began_ns = perf_counter_ns()
        try:
            yield
        finally:
            self._started_ns += perf_counter_ns() - began_ns

    def pod_created(self, pod: Pod) -> None:
        if self._window is not None and self._window.matches(pod):
            self.n_pods += 1

    def pod_bound(self, pod: Pod) -> None:
        if self._window is not None and self._window.matches(pod):
            self.n_scheduled += 1

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def n_attempts(self) -> int:
        return len(self.took_ns)

    @property
    def elapsed_s(self) -> float:
        return self._elapsed_ns / 1e9

    @property
    def pods_per_s(self) -> float:
        return self.n_scheduled / self.elapsed_s if self._elapsed_ns else 0.0

    def percentile_us(self, percent: float) -> float:
        if not self.took_ns:
            return 0.0
        return float(np.percentile(np.frombuffer(self.took_ns, dtype=np.uint64), percent)) / 1e3


_STATM = Path("/proc/self/statm")


def peak_mb() -> float:
    """The most since the process began, in MB of 10⁶ bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def current_mb() -> float:
    """What it holds now; 0 where the system does not tell."""
    try:
        import resource

        pages = int(_STATM.read_text().split()[1])
    except (ImportError, OSError):
        return 0.0
    return pages * resource.getpagesize() / 1e6
