"""The reference page of the metrics, made from their definitions.

python -m kubesched.scheduler.engine.metrics.reference_page > docs/reference/metrics.md
"""

from __future__ import annotations

import sys

from kubesched.scheduler.engine.metrics.definitions import DEFINITIONS, NOT_KEPT, OURS, PREFIX, MetricDefinition
from kubesched.scheduler.engine.metrics.exposition import number

_OURS = ", ".join(f"`{name}`" for name in OURS)
_HEAD = f"""# Metrics

This page is generated (`make docs`). Names, kinds, labels and buckets are kube-scheduler's, so dashboards keep working;
ours alone: {_OURS}. All names begin with `{PREFIX}`. Durations are measured only where the loop is given a
clock. `render(collect(loop))` gives them as text for Prometheus. With `--emulate`, those of the version stand in their
place: [metrics of older versions](older-metrics.md) says which, and what they are called today.

| metric | kind | labels | stability | what it says |
|---|---|---|---|---|
"""

_BUCKETS = """
## Buckets

Upper bounds; each is the one before times a factor.

| metric | first | last | number |
|---|---|---|---|
"""

_NOT_KEPT = """
## Not kept

| metrics of kube-scheduler | why not |
|---|---|
"""


def page() -> str:
    histograms = [definition for definition in DEFINITIONS if definition.buckets]
    missing = "".join(f"| {_code(names)} | {why} |\n" for names, why in NOT_KEPT.items())
    return (
        _HEAD + "".join(map(_row, DEFINITIONS)) + _BUCKETS + "".join(map(_bucket_row, histograms)) + _NOT_KEPT + missing
    )


def _row(definition: MetricDefinition) -> str:
    labels = ", ".join(definition.labels)
    return (
        f"| `{definition.name}` | {definition.kind.value} | {labels} | {definition.stability} | {definition.help} |\n"
    )


def _bucket_row(definition: MetricDefinition) -> str:
    bounds = definition.buckets
    return f"| `{definition.name}` | {number(bounds[0])} | {number(bounds[-1])} | {len(bounds)} |\n"


def _code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


if __name__ == "__main__":
    sys.stdout.write(page())
