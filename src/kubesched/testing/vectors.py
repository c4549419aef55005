"""Runs test vectors: clusters and pods with the answers of kube-scheduler itself (tests/vectors/FORMAT.md).

    python -m kubesched.testing.vectors [FAMILY...]
    python -m kubesched.testing.vectors older [VERSION...] [FAMILY...]

prints one line per case that differs, and a count; `older` stands for the answers of older schedulers, counted by
version. Also the shared code of the tests that run all of them.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from kubesched.simulator.asking import explain

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


def older_differences(case: Case) -> list[str]:
    """The same for a case that an older scheduler answered."""
    pod = case["pod"]
    answer = explain(
        case["objects"],
        f"{pod['namespace']}/{pod['name']}",
        case["config"],
        policy=case["policy"],
        provider=case["provider"],
        feature_gates=case.get("featureGates"),
        emulate=case["version"],
    ).to_dict()
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


def main(words: list[str]) -> int:
    is_older = words[:1] == ["older"]
    folder = Path("tests/vectors/older" if is_older else "tests/vectors/cases")
    n_cases: Counter[str] = Counter()
    n_differing: Counter[str] = Counter()
    for path in sorted(folder.glob("*/*.jsonl.gz" if is_older else "*.jsonl.gz")):
        if not _is_asked_for(path, words[1:] if is_older else words):
            continue
        for case in read_cases(path):
            group = case["version"] if is_older else "all"
            n_cases[group] += 1
            found = older_differences(case) if is_older else differences(case)
            if found:
                n_differing[group] += 1
                sys.stdout.write(f"{case['name']}: {len(found)} differences: {'; '.join(found[:3])[:600]}\n")
    for group in sorted(n_cases) if is_older else ():
        sys.stdout.write(f"{group}: {n_cases[group] - n_differing[group]} of {n_cases[group]}\n")
    total = n_cases.total()
    sys.stdout.write(f"{total - n_differing.total()} of {total} cases agree\n")
    return 1 if n_differing else 0


def _is_asked_for(path: Path, words: list[str]) -> bool:
    """Whether a file is of the versions and the families that are named; all are, if none is named."""
    versions = {word for word in words if word[:1].isdigit()}
    families = set(words) - versions
    is_version = not versions or path.parent.name in versions
    return is_version and (not families or path.name.removesuffix(".jsonl.gz") in families)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
