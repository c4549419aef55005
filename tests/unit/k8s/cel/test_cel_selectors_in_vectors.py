"""Every selector that the recorded decisions contain compiles and runs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubesched.k8s import cel
from kubesched.k8s.model import quantity

CASES = Path(__file__).parents[3] / "vectors" / "cases"
DEVICE = cel.DeviceView.of("gpu.example.com", {"model": "a100"}, {"memory": quantity.parse("80Gi")})


def expressions() -> list[str]:
    found: set[str] = set()
    for path in CASES.glob("dra-*.jsonl.gz"):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                found.update(_selectors(json.loads(line)))
    return sorted(found)


def _selectors(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        selector = part.get("cel")
        if isinstance(selector, dict):
            yield str(selector["expression"])
        for inner in part.values():
            yield from _selectors(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _selectors(inner)


def test_there_are_selectors_to_try() -> None:
    assert len(expressions()) >= 5


@pytest.mark.parametrize("expression", expressions())
def test_recorded_selectors_answer_for_a_device(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) in (True, False)
