"""Metrics as text: in the format that Prometheus reads (`render`), and as a reference page.

Pure: the same metrics give the same text. The reference page is made from the definitions.

    python -m kubesched.scheduler.engine.metrics.exposition > docs/reference/metrics.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from decimal import Decimal
from math import inf, isinf, isnan

from kubesched.scheduler.engine.metrics.definitions import DEFINITIONS, NOT_KEPT, OURS, PREFIX, MetricDefinition
from kubesched.scheduler.engine.metrics.series import Distribution, LabelValues, MetricFamily, Summary

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(families: Iterable[MetricFamily]) -> str:
    """Families by name, series by the values of their labels."""
    ordered = sorted(families, key=lambda family: family.definition.name)
    return "".join(f"{line}\n" for family in ordered for line in _lines(family))


def _lines(family: MetricFamily) -> Iterator[str]:
    definition = family.definition
    name = definition.full_name
    if not family.values and not family.distributions and not family.summaries:
        return
    stability = f"[{definition.stability}] " if definition.stability else ""
    yield f"# HELP {name} {stability}{_escaped_help(definition.help)}"
    yield f"# TYPE {name} {definition.kind.value}"
    for labels, value in sorted((family.values or {}).items()):
        yield f"{name}{_labels(definition, labels)} {number(value)}"
    for labels, distribution in sorted((family.distributions or {}).items(), key=lambda item: item[0]):
        yield from _histogram_lines(definition, labels, distribution)
    for labels, summary in sorted((family.summaries or {}).items(), key=lambda item: item[0]):
        yield from _summary_lines(definition, labels, summary)


def _histogram_lines(definition: MetricDefinition, labels: LabelValues, found: Distribution) -> Iterator[str]:
    name = definition.full_name
    for bound, count in zip((*definition.buckets, inf), found.cumulative, strict=True):
        yield f"{name}_bucket{_labels(definition, labels, le=number(bound))} {count}"
    yield f"{name}_sum{_labels(definition, labels)} {number(found.total)}"
    yield f"{name}_count{_labels(definition, labels)} {found.count}"


def _summary_lines(definition: MetricDefinition, labels: LabelValues, found: Summary) -> Iterator[str]:
    name = definition.full_name
    for share, value in found.quantiles:
        yield f"{name}{_labels(definition, labels, quantile=number(share))} {number(value)}"
    yield f"{name}_sum{_labels(definition, labels)} {number(found.total)}"
    yield f"{name}_count{_labels(definition, labels)} {found.count}"


def _labels(definition: MetricDefinition, values: LabelValues, **last: str) -> str:
    """`last` is the label that tells the lines of one series apart."""
    pairs = [*sorted(zip(definition.labels, values, strict=True)), *last.items()]
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return _escaped_help(value).replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def number(value: float) -> str:
    """The shortest text for a number as Go writes it: with an exponent below 0.0001, and from a million on."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, figures, shift = Decimal(repr(float(value))).normalize().as_tuple()
    assert isinstance(shift, int)
    digits = "".join(map(str, figures))
    exponent = len(digits) + shift - 1 if value else 0
    return ("-" if sign else "") + _written(digits, exponent)


def _written(digits: str, exponent: int) -> str:
    """`exponent` is that of the first digit."""
    if exponent < -4 or exponent >= 6:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{rest}e{exponent:+03}"
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


_OURS = ", ".join(f"`{name}`" for name in OURS)
_HEAD = f"""# Metrics

This page is generated (`make docs`). Names, types, labels and buckets are kube-scheduler's, so dashboards keep working;
only {_OURS} is ours. All names begin with `{PREFIX}`. Durations are measured only where the loop is given a
clock. `render(collect(loop))` renders them as text for Prometheus. With `--emulate`, they are those of the emulated
version: see [metrics of older versions](older-metrics.md).

| metric | kind | labels | stability | meaning |
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
