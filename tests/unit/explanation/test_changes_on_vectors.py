"""Every vector in which the pod fits nowhere: each change that is told, carried out on the manifests, makes it fit."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from applied_changes import apply_change

from kubesched.explanation.answer import Explanation
from kubesched.simulator.asking import explain
from kubesched.testing.vectors import Case, read_cases

CASES = Path(__file__).parents[2] / "vectors" / "cases"
WITHOUT_REMEDY = {"dra-allocated-004", "vol-ephemeral-003", "vol-ephemeral-006"}
"""A device class or claim is missing, or not the pod's own: nothing about pod or nodes would help."""


def _is_stuck(case: Case) -> bool:
    expected = case["expect"]
    return not expected["best"] and expected["gated"] is None and not expected.get("error")


STUCK = [
    pytest.param(case, id=case["name"])
    for family in sorted(CASES.glob("*.jsonl.gz"))
    if not family.name.startswith("vol-broken")  # claims that are broken: nothing about pod or nodes would help
    for case in read_cases(family)
    if _is_stuck(case)
]


def _explain(case: Case, objects: list[dict[str, Any]]) -> Explanation:
    key = f"{case['pod']['namespace']}/{case['pod']['name']}"
    found: Explanation = explain(objects, key, case["config"])
    return found


@pytest.mark.parametrize("case", STUCK)
def test_every_change_makes_the_pod_fit(case: Case) -> None:
    changes = [change.to_dict() for change in _explain(case, case["objects"]).changes]
    assert bool(changes) == (case["name"] not in WITHOUT_REMEDY)
    for change in changes:
        after = _explain(case, apply_change(case["objects"], change)).to_dict()
        if change["kind"] == "raise-priority":
            assert after["preemption"]["node"] == change["node"], change["description"]
        else:
            assert after["nodes"][change["node"]]["fit"], change["description"]


@pytest.mark.parametrize("case", [case for case in STUCK if str(case.id).startswith(("preempt-spread", "spread-"))])
def test_a_skew_is_raised_no_more_than_it_must_be(case: Case) -> None:
    raised = [c.to_dict() for c in _explain(case, case["objects"]).changes if c.kind.value == "raise-max-skew"]
    for change in raised:
        less = copy.deepcopy(change)
        less["actions"][0]["patch"][0]["value"] -= 1
        assert not _explain(case, apply_change(case["objects"], less)).fits
    assert raised


def test_there_are_vectors_to_try() -> None:
    assert len(STUCK) > 130
