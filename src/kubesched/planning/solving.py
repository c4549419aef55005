"""Linear programs, by HiGHS through scipy (the extra `plan`).

HiGHS writes some of its troubles to the standard output of the process, past Python, where they would stand in the
middle of somebody's JSON. While it solves, nothing gets there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STDOUT = 1


def linear_program(*args: Any, **options: Any) -> Any:
    """As `scipy.optimize.linprog`, by HiGHS."""
    from scipy.optimize import linprog

    with _nothing_printed():
        return linprog(*args, method="highs", **options)


def integer_program(*args: Any, **options: Any) -> Any:
    """As `scipy.optimize.milp`."""
    from scipy.optimize import milp

    with _nothing_printed():
        return milp(*args, **options)


@contextmanager
def _nothing_printed() -> Iterator[None]:
    sys.stdout.flush()  # what Python has still to write goes first
    try:
        kept = os.dup(_STDOUT)
    except OSError:  # there is none
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, _STDOUT)
        yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)
        os.close(nowhere)
