"""A seed that fails is cut down to the shortest trace that still does, which is printed and can be run again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.chaos import ChaosTrace, parse_trace, run_seed, run_trace, shrink
from harness.chaos.__main__ import main
from harness.chaos.checks import places
from kubesched.scheduler.queue import SchedulingQueue

SEED = 1


@pytest.fixture(autouse=True)
def planted_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that was deleted stays in the queue."""
    monkeypatch.setattr(SchedulingQueue, "delete", lambda self, info: None)


def test_no_step_of_the_shortest_trace_can_be_left_out() -> None:
    found = run_seed(SEED).failure
    assert found is not None
    shortest = shrink(found)
    assert shortest.invariant == places.INVARIANT
    steps = shortest.trace.steps
    assert len(steps) < len(found.trace.steps)
    for index in range(len(steps)):
        fewer = ChaosTrace(shortest.trace.options, (*steps[:index], *steps[index + 1 :]))
        assert run_trace(fewer).failure is None


def test_the_shortest_trace_is_printed_and_fails_again_when_replayed(tmp_path: Path) -> None:
    printed = CliRunner().invoke(main, ["--seed", str(SEED)])
    assert printed.exit_code == 1
    assert f"# seed {SEED}: {places.INVARIANT}" in printed.output
    lines = printed.output.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("options "))
    text = "\n".join(lines[start : lines.index("", start)])
    assert parse_trace(text).steps
    file = tmp_path / "trace.txt"
    file.write_text(text, encoding="utf-8")
    replayed = CliRunner().invoke(main, ["--replay", str(file)])
    assert replayed.exit_code == 1
    assert places.INVARIANT in replayed.output


def test_a_run_again_is_the_same_to_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    run = run_seed(SEED)
    assert run.failure is None
    assert run_trace(run.trace).digest == run.digest == run_seed(SEED).digest
