"""Every vector: clusters and pods to which kube-scheduler v1.36.4 itself gave the answer."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

import kubesched
from kubesched.testing.vectors import Case, compare, differences, read_cases

VECTORS = Path(__file__).parent / "vectors"
FAMILIES = sorted((VECTORS / "cases").glob("*.jsonl.gz"))
N_CASES = 750
N_SEQUENCES = 10
FIELDS = {"gated", "prefilter", "prefilterNodes", "nodes", "message", "best", "preemption"}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_every_case_agrees_in_every_field(family: Path) -> None:
    found = {case["name"]: problems for case in read_cases(family) if (problems := differences(case))}
    assert found == {}


SEQUENCES = list(read_cases(VECTORS / "sequences" / "seq.jsonl.gz"))


@pytest.mark.parametrize("case", SEQUENCES, ids=lambda case: case["name"])
def test_every_sequence_agrees_step_by_step(case: Case) -> None:
    sequence = [f"{pod['namespace']}/{pod['name']}" for pod in case["sequence"]]
    answer = kubesched.simulate(case["objects"], sequence=sequence, config=case["config"], tie_break="name").to_dict()
    assert list(compare(case["expect"], answer, "")) == []


def test_no_case_is_left_out() -> None:
    assert sum(1 for family in FAMILIES for _ in read_cases(family)) == N_CASES
    assert len(SEQUENCES) == N_SEQUENCES


def test_every_field_of_every_answer_is_compared() -> None:
    """Changes each single value of each expected answer in turn: the comparison must see every one."""
    for family in FAMILIES:
        for case in read_cases(family):
            expected = case["expect"]
            assert expected.keys() >= FIELDS
            for path in _leaves(expected):
                planted = copy.deepcopy(expected)
                _replace(planted, path)
                assert list(compare(expected, planted, "")), f"{case['name']}: {path} is not compared"
            break  # one case of each family has every shape its fields take


def _leaves(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, index))
    else:
        yield path


def _replace(value: object, path: tuple[object, ...]) -> None:
    for key in path[:-1]:
        value = value[key]  # type: ignore[index]
    value[path[-1]] = "planted"  # type: ignore[index]
