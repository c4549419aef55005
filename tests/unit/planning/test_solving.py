"""The solver: it is quiet, whatever it has to say."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from kubesched.planning.solving import integer_program, linear_program

optimize = pytest.importorskip("scipy.optimize")


def test_what_the_solver_prints_past_python_goes_nowhere(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real = optimize.milp

    def chatty(*args: Any, **options: Any) -> Any:
        os.write(1, b"HighsMipSolverData: trouble")
        return real(*args, **options)

    monkeypatch.setattr(optimize, "milp", chatty)
    sys.stdout.write("before\n")
    assert integer_program([1.0], bounds=optimize.Bounds(2, 5), integrality=[1]).x == [2.0]
    sys.stdout.write("after\n")
    assert capfd.readouterr().out == "before\nafter\n"


def test_without_a_standard_output_it_solves_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_fd: int) -> int:
        raise OSError

    monkeypatch.setattr(os, "dup", closed)
    assert linear_program([1.0], bounds=[(3, None)]).x == [3.0]
