"""Every older vector: clusters and pods to which v1.14.10, v1.17.17, v1.18.20 and v1.19.16 gave the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.testing.vectors import older_differences, read_cases

FAMILIES = sorted((Path(__file__).parent / "vectors" / "older").glob("*/*.jsonl.gz"))
CASES_BY_VERSION = {"1.14": 171, "1.17": 172, "1.18": 170, "1.19": 265}


def _name_of(path: Path) -> str:
    return f"{path.parent.name}-{path.name.removesuffix('.jsonl.gz')}"


@pytest.mark.parametrize("family", FAMILIES, ids=_name_of)
def test_every_older_case_agrees_in_every_field(family: Path) -> None:
    found = {case["name"]: problems for case in read_cases(family) if (problems := older_differences(case))}
    assert found == {}


def test_no_older_case_is_left_out() -> None:
    found = dict.fromkeys(CASES_BY_VERSION, 0)
    for family in FAMILIES:
        found[family.parent.name] += sum(1 for _ in read_cases(family))
    assert found == CASES_BY_VERSION
