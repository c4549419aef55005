"""Looks for inputs that break a parser: `python tests/fuzz/run_fuzz.py [--seconds N] [--seed N] [TARGET …]`.

Each target gets its time. What breaks it is written beside its corpus as `found-…`, and printed; mend the parser and
keep the file: `make test` tries all of them again. Where atheris is installed, `--atheris TARGET` lets it guide the
search by coverage.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
import time
import traceback
from random import Random
from types import FrameType

from fuzz_targets import CORPUS, TARGETS, FuzzTarget
from mutation import mutated

_INPUT_WITHIN_S = 10


class InputTakesTooLongError(Exception):
    """Not derived from any error that a parser documents."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all if none is named")
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each target")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--atheris", action="store_true", help="search by coverage; one target")
    given = parser.parse_args()
    unknown = sorted(set(given.targets) - TARGETS.keys())
    if unknown:
        parser.error(f"unknown target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    chosen = [TARGETS[name] for name in given.targets or TARGETS]
    signal.signal(signal.SIGALRM, _too_long)
    if given.atheris:
        return _by_coverage(chosen[0])
    sys.stdout.write(f"seed {given.seed}\n")
    return max(_search(target, given.seconds, Random(f"{given.seed} {target.name}")) for target in chosen)


def _search(target: FuzzTarget, seconds: float, chance: Random) -> int:
    pool = target.corpus()
    ends_at, n_tried, found = time.monotonic() + seconds, 0, set[str]()
    while time.monotonic() < ends_at:
        data = mutated(chance.choice(pool), pool, chance)
        n_tried += 1
        trouble = _trouble(target, data)
        if trouble is not None and trouble not in found:
            found.add(trouble)
            _keep(target, data, trouble)
    sys.stdout.write(f"{target.name}: {n_tried} inputs, {len(found)} broke it\n")
    sys.stdout.flush()
    return bool(found)


def _trouble(target: FuzzTarget, data: bytes) -> str | None:
    """Where it broke, if it did."""
    signal.alarm(_INPUT_WITHIN_S)
    try:
        target.try_input(data)
    except Exception as error:  # noqa: BLE001 - to find any exception is what this is for
        frames = traceback.extract_tb(error.__traceback__)
        return f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}"
    finally:
        signal.alarm(0)
    return None


def _keep(target: FuzzTarget, data: bytes, trouble: str) -> None:
    file = CORPUS / target.name / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    file.write_bytes(data)
    sys.stdout.write(f"{target.name}: {trouble}: {file}\n")


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise InputTakesTooLongError


def _by_coverage(target: FuzzTarget) -> int:
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], str(CORPUS / target.name)], target.try_input)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
