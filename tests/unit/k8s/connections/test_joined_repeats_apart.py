"""Lines with the same words about different things are not taken for repeats."""

from __future__ import annotations

import logging

from kubesched.k8s.connections.log_lines import JoinRepeats


def error(apart: str) -> logging.LogRecord:
    record = logging.LogRecord("kubesched", logging.ERROR, "a.py", 1, "Failed to watch", None, None)
    record.apart = apart
    return record


def test_the_same_refusal_of_many_kinds_is_written_for_each() -> None:
    joined = JoinRepeats(clock=lambda: 0.0)
    assert all(joined.filter(error(f"kind {number}")) for number in range(50))


def test_the_same_refusal_of_one_kind_is_written_a_few_times() -> None:
    joined = JoinRepeats(clock=lambda: 0.0)
    assert sum(joined.filter(error("pods")) for _ in range(50)) < 10
