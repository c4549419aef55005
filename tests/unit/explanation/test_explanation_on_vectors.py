"""On real clusters: what all filters say agrees with what the first one said; every form of the answer can be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubesched.explanation.layout import Style
from kubesched.explanation.text import render
from kubesched.simulator.asking import explain
from kubesched.testing.vectors import read_cases

CASES = Path(__file__).parents[2] / "vectors" / "cases"
FAMILIES = (
    "unsched",
    "mix-preempt",
    "nominated-fit",
    "preempt-nominated",
    "naff-fields",
    "vol-csilimit",
    "vol-broken",
    "dra-taints",
    "spread-taintsPolicy",
    "ipa-symmetric",
    "gates",
)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_of_all_rejections_is_the_one_the_scheduler_gives(family: str) -> None:
    for case in read_cases(CASES / f"{family}.jsonl.gz"):
        explanation = explain(case["objects"], f"{case['pod']['namespace']}/{case['pod']['name']}", case["config"])
        report = explanation.report()
        for name, node in report["explanation"]["nodes"].items():
            found = report["failing"].get(name, [])
            assert bool(found) != node["fit"], f"{case['name']}: {name}"
            if not node["fit"] and node["plugin"]:
                assert found[0] == {key: node[key] for key in ("plugin", "code", "reasons")}, f"{case['name']}: {name}"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_form_of_the_answer_can_be_had(family: str) -> None:
    for case in read_cases(CASES / f"{family}.jsonl.gz"):
        explanation = explain(case["objects"], f"{case['pod']['namespace']}/{case['pod']['name']}", case["config"])
        message = explanation.to_dict()["message"]
        for text in (str(explanation), render(explanation, Style(width=60, wide=True))):
            assert text.startswith(f"Pod {explanation.pod.key} ")
            assert message is None or f"FailedScheduling: {message}" in text.splitlines()
        assert json.loads(json.dumps(explanation.report()))["pod"] == explanation.pod.key
