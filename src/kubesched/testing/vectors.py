"""Runs test vectors: clusters and pods with the answers of kube-scheduler itself (tests/vectors/FORMAT.md).

    python -m kubesched.testing.vectors [FAMILY...]

prints one line per case that differs, and a count. Also the shared code of the tests that run all of them.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from kubesched.explanation.explain import explain

Case = dict[str, Any]


def read_cases(path: Path) -> Iterator[Case]:
    with gzip.open(path) as lines:
        for line in lines:
            case: Case = msgspec.json.decode(line)
            yield case


def differences(case: Case) -> list[str]:
    """Every field of the expected answer that ours does not agree with, or does not have."""
    pod = case["pod"]
    answer = explain(case["objects"], f"{pod['namespace']}/{pod['name']}", case["config"]).to_dict()
    return list(compare(case["expect"], answer, ""))


def compare(expected: object, answer: object, path: str) -> Iterator[str]:
    """Paths at which two records differ. Reasons are multisets; everything else must be equal."""
    if isinstance(expected, dict) and isinstance(answer, dict):
        for key in sorted(expected.keys() | answer.keys()):
            where = f"{path}.{key}" if path else str(key)
            if key not in expected:
                yield f"{where}: unexpected {answer[key]!r}"
            elif key not in answer:
                yield f"{where}: missing, expected {expected[key]!r}"
            else:
                yield from compare(expected[key], answer[key], where)
        return
    if path.endswith("reasons") and isinstance(expected, list) and isinstance(answer, list):
        expected, answer = sorted(expected), sorted(answer)
    if expected != answer:
        yield f"{path}: {answer!r}, expected {expected!r}"


def main(families: list[str]) -> int:
    n_cases = n_differing = 0
    for path in sorted(Path("tests/vectors/cases").glob("*.jsonl.gz")):
        if families and path.name.removesuffix(".jsonl.gz") not in families:
            continue
        for case in read_cases(path):
            n_cases += 1
            found = differences(case)
            if found:
                n_differing += 1
                sys.stdout.write(f"{case['name']}: {len(found)} differences: {'; '.join(found[:3])[:600]}\n")
    sys.stdout.write(f"{n_cases - n_differing} of {n_cases} cases agree\n")
    return 1 if n_differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
