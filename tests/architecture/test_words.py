"""The house's vocabulary: words that were retired in favour of Kubernetes' own do not come back.

Docstrings, comments, names, messages and pages are all read. Where Kubernetes, Python or plain English uses such a
word in its own sense, the place is listed below with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
READ = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


class Retired(NamedTuple):
    pattern: str
    instead: str


RETIRED = [
    Retired(r"stages?\b|Stage[A-Z]|_stage|STAGE", "extension point"),
    Retired(r"\b(pods|nodes|ones?|preemptor) alike\b", "pods with the same signature"),
    Retired(r"(?i)mistake", "validation error, invalid"),
    Retired(r"(?i)(?<![a-z])rivals?(?![a-z])", "nominated pods"),
    Retired(r"(?i)\bpromised (a|the|this|which|to|it|none|one)\b|promise_over|PromiseOver", "nominated"),
    Retired(r"(?i)turn(s|ed)?[ _]down", "rejected"),
    Retired(r"(?i)\bpretend(ed)? (kubelet|node|cluster|API|provisioner|controller|volume)", "hollow, simulated"),
    Retired(r"\b_?approve(_\w+)?\b", "validate, admit"),
    Retired(r"EventTeller|\bSpeaker\b|_SPEAKER", "event broadcaster, source, record"),
    Retired(r"(?i)narrowings?\b", "list options"),
    Retired(r"(?i)ma(de|kes?|king)[ _]room", "preempt"),
    Retired(r"(?i)\bcompany\b", "matching pods"),
    Retired(r"(?i)has_stakes?\b", "needs_reserve"),
    Retired(r"(?i)\b(is|are|was|be|it) told of\b", "notified"),
    Retired(r"no less is missing|it (is|was) looked for|be it that|No evictions of pods", "plain English"),
]

GATE = "alpha, beta and GA are the stages of a feature gate"
METRIC = "a metric of kube-scheduler has it in its name"
CERTIFICATES = "the verb and condition of certificate signing requests"
TO_COME = "not reworded yet: take the line out with the word"

ALLOWED: dict[str, dict[str, str]] = {
    "extension point": {
        "src/kubesched/scheduler/config/feature_gates.py": GATE,
        "src/kubesched/live/options/reference_page.py": GATE,
        "src/kubesched/older/engine/metrics/definitions.py": METRIC,
        "src/kubesched/scheduler/engine/metrics/definitions.py": METRIC,
        "docs/reference/flags.md": GATE,
        "docs/reference/metrics.md": METRIC,
        "docs/reference/older-metrics.md": METRIC,
    },
    "validation error, invalid": {},
    "validate, admit": {
        "src/kubesched/playground/apiserver/bootstrap.py": CERTIFICATES,
        "src/kubesched/playground/apiserver/kinds/access_kinds.py": CERTIFICATES,
        "src/kubesched/playground/apiserver/verbs/escalation.py": CERTIFICATES,
        "docs/security/access.md": CERTIFICATES,
    },
    "notified": {},
}
"""By the word to write instead, where the retired one may stand, and why."""


def _uses(word: Retired) -> Iterator[tuple[str, int, str]]:
    pattern = re.compile(word.pattern)
    for path in READ:
        text = path.read_text(encoding="utf-8")
        if pattern.search(text):
            for number, line in enumerate(text.splitlines(), 1):
                if pattern.search(line):
                    yield path.relative_to(ROOT).as_posix(), number, line.strip()


@pytest.mark.parametrize("word", RETIRED, ids=lambda word: word.instead)
def test_retired_words_do_not_come_back(word: Retired) -> None:
    allowed = ALLOWED.get(word.instead, {})
    found = list(_uses(word))
    assert [f"{path}:{n}: {line}" for path, n, line in found if path not in allowed] == [], f"write: {word.instead}"
    assert set(allowed) <= {path for path, _, _ in found}, "allowed, but no longer there: shorten the list"


def test_a_retired_word_is_found() -> None:
    """The patterns find what they are there for."""
    samples = ["a stage", "pods alike", "ManifestMistake", "its rivals", "promised a node", "turned down"]
    samples += ["pretend nodes", "approve", "EventTeller", "Narrowing", "make room", "company", "has_stakes"]
    samples += ["is told of", "be it that"]
    assert [bool(re.search(word.pattern, text)) for word, text in zip(RETIRED, samples, strict=True)] == [True] * 15
