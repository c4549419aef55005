"""Many seeds, on several cores. What is found does not depend on how the seeds are dealt out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice

from harness.chaos.run import ChaosFailure, run_seed, run_trace
from harness.chaos.shrink import shrink

_BLOCK = 20
REPLAYED_EVERY = 20

SAME_BYTES = "same inputs and seed, same bytes out"


@dataclass(frozen=True, slots=True)
class SeedResult:
    seed: int
    n_steps: int
    failure: ChaosFailure | None


def try_seed(seed: int, *, shrinks: bool = True) -> SeedResult:
    """One in twenty is run a second time, from its trace, and must come out the same."""
    run = run_seed(seed)
    failure = run.failure
    if failure is None and seed % REPLAYED_EVERY == 0 and run_trace(run.trace).digest != run.digest:
        failure = ChaosFailure(SAME_BYTES, "the trace of the run, run again, has other effects", run.trace)
    elif failure is not None and shrinks:
        failure = shrink(failure)
    return SeedResult(seed, len(run.trace.steps), failure)


def try_seeds(seeds: Iterable[int], n_jobs: int) -> Iterator[SeedResult]:
    """As they come in."""
    if n_jobs == 1:
        yield from map(try_seed, seeds)
        return
    with ProcessPoolExecutor(n_jobs) as pool:
        blocks = [pool.submit(_try_block, block) for block in _in_blocks(seeds)]
        for block in as_completed(blocks):
            yield from block.result()


def _try_block(seeds: tuple[int, ...]) -> list[SeedResult]:
    return [try_seed(seed) for seed in seeds]


def _in_blocks(seeds: Iterable[int]) -> Iterator[tuple[int, ...]]:
    rest = iter(seeds)
    while block := tuple(islice(rest, _BLOCK)):
        yield block
