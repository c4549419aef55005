"""What the process takes of the machine, and what Python does inside it, under the Prometheus clients' names.

What the system does not tell (there is no /proc, say) is left out. Next: `metrics_pages`.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from kubesched.live.serving.pages.component_metrics import counter, gauge
from kubesched.scheduler.engine.metrics.series import LabelValues, MetricFamily

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
