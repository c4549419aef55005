"""Deterministic fault simulation: the whole loop, a true API server in memory, and a network that is not kind.

A seed decides what happens: which pods, nodes and volumes come and go, which facts reach the loop late, twice or not at
all, which requests fail, time out or land all the same, when the process restarts or loses its lease. After every step
it is checked that what must always hold, holds. A seed that fails is cut down to the shortest trace that still does.

    make chaos SEEDS=10000
    python -m harness.chaos --seed 4711
    python -m harness.chaos --replay trace.txt

Read in this order: `trace` (what a run looks like as text), `simulation` (one run), `api_server`, `watch`, `wire` and
`shell` (the world around the loop), `steps` (what can happen), `checks` (what must hold), `weather`, `draws` and
`dice` (what happens in which run), `finale` (how a run ends), `shrink`, and `many` (many seeds on all cores).
"""

from harness.chaos.checks.violation import Violation
from harness.chaos.run import ChaosFailure, ChaosRun, run_seed, run_trace
from harness.chaos.shrink import shrink
from harness.chaos.trace import ChaosStep, ChaosTrace, parse_trace

__all__ = [
    "ChaosFailure",
    "ChaosRun",
    "ChaosStep",
    "ChaosTrace",
    "Violation",
    "parse_trace",
    "run_seed",
    "run_trace",
    "shrink",
]
