"""Reports as metrics: gauges in the text format of Prometheus (`-o prometheus`), as for a textfile collector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gauge:
    name: str
    help: str
    samples: tuple[tuple[Mapping[str, str], float], ...]
    """Labels and value of each."""


def gauge(name: str, text: str, value: float | None, **labels: str) -> Gauge:
    """With one sample, or none if there is no value."""
    return Gauge(name, text, () if value is None else ((labels, value),))


def exposition(gauges: Iterable[Gauge]) -> str:
    lines = []
    for one in gauges:
        if one.samples:
            lines += [f"# HELP {one.name} {one.help}", f"# TYPE {one.name} gauge"]
            lines += [f"{one.name}{_labels(labels)} {_number(value)}" for labels, value in one.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 9))
