"""The shortest trace that still fails: delta debugging over the steps, then over their settings.

A trace counts as failing in the same way if the same invariant breaks. What comes out is minimal in this sense: no
single step and no single setting can be left out any more.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.chaos.run import ChaosFailure, run_trace
from harness.chaos.trace import ChaosStep, ChaosTrace

Steps = tuple[ChaosStep, ...]
Fails = Callable[[Steps], bool]


def shrink(failure: ChaosFailure) -> ChaosFailure:
    options = failure.trace.options
    shortest = failure

    def fails(steps: Steps) -> bool:
        nonlocal shortest
        found = run_trace(ChaosTrace(options, steps)).failure
        if found is None or found.invariant != failure.invariant:
            return False
        shortest = found
        return True

    steps = failure.trace.steps
    if not fails(steps):
        return failure  # depends on something that is not in the trace; better the long one than none
    while True:
        fewer = _plainer(_fewer(steps, fails), fails)
        if fewer == steps:
            return shortest
        steps = fewer


def _fewer(steps: Steps, fails: Fails) -> Steps:
    """Leaves out parts, from halves down to single steps, as long as it still fails."""
    size = max(1, len(steps) // 2)
    while True:
        start = 0
        while start < len(steps):
            rest = steps[:start] + steps[start + size :]
            if fails(rest):
                steps = rest
            else:
                start += size
        if size == 1:
            return steps
        size //= 2


def _plainer(steps: Steps, fails: Fails) -> Steps:
    """Leaves out settings one by one."""
    for index, step in enumerate(steps):
        for key, _ in step.settings:
            plainer = (*steps[:index], steps[index].without(key), *steps[index + 1 :])
            if fails(plainer):
                steps = plainer
    return steps
