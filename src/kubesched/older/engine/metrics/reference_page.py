"""The reference page of the metrics of then, made from their definitions: `python -m` prints it."""

from __future__ import annotations

import sys

from kubesched.older.config import EMULATED_VERSIONS
from kubesched.older.engine.metrics.definitions import METRICS, NOT_GIVEN, QUANTILES, MetricOfThen
from kubesched.scheduler.engine.metrics.definitions import PREFIX
from kubesched.scheduler.engine.metrics.exposition import number

_HEAD = f"""# Metrics of older versions

This page is generated (`make docs`). With `--emulate VERSION`, `/metrics` has the metrics of that version in the place
of [today's](metrics.md): names, kinds, labels and buckets are those of its kube-scheduler, so dashboards of that time
work. All names begin with `{PREFIX}`, also those that begin with it already: `scheduler_scheduler_goroutines`.
`strays_total`, which is ours, is always there. The last column says where to look today.

| metric | kind | labels | {" | ".join(EMULATED_VERSIONS)} | meaning | today |
|---|---|---|{"---|" * len(EMULATED_VERSIONS)}---|---|
"""

_AFTER = f"""
- `operation` is predicate_evaluation, priority_evaluation, preemption_evaluation or binding. Summaries have the
  quantiles {", ".join(map(number, QUANTILES))} of the last five hours in 1.13 and 1.14, and none later.
- 1.13 and 1.14 tell no stability level; later ones, all of these metrics are ALPHA.
- A cluster without nodes counts as `error` in 1.13 and 1.14, as `unschedulable` later.
- What prepares filters counts as predicates in 1.13, 1.14 and 1.19; in 1.17 and 1.18 what prepares scores does.
- PostFilter as an extension point is PreScore of today in 1.17, and preemption in 1.19; 1.18 has none.
- Calls to extenders do not count as predicates or priorities, nor does a binding by an extender as binding.
- Events that bring pods into queues have the names of then; those that did not exist are `Unknown`.

## Buckets

Upper bounds.

| metric | versions | first | last | number |
|---|---|---|---|---|
"""

_NOT_GIVEN = """
## Not given

| metrics of then | why not |
|---|---|
"""


def page() -> str:
    rows = "".join(map(_row, METRICS))
    buckets = "".join(_bucket_row(metric) for metric in METRICS if metric.buckets)
    missing = "".join(f"| {names} | {why} |\n" for names, why in NOT_GIVEN.items())
    return _HEAD + rows + _AFTER + buckets + _NOT_GIVEN + missing


def _row(metric: MetricOfThen) -> str:
    marks = " | ".join(_mark(metric, version) for version in EMULATED_VERSIONS)
    labels = ", ".join(metric.labels)
    return f"| `{metric.name}` | {metric.kind.value} | {labels} | {marks} | {metric.help} | {metric.today} |\n"


def _mark(metric: MetricOfThen, version: str) -> str:
    if version not in metric.versions:
        return ""
    return "deprecated" if version in metric.deprecated else "yes"


def _bucket_row(metric: MetricOfThen) -> str:
    bounds = metric.buckets
    versions = ", ".join(metric.versions)
    return f"| `{metric.name}` | {versions} | {number(bounds[0])} | {number(bounds[-1])} | {len(bounds)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
