"""Work on many cases, spread over the cores of this machine or over a Dask cluster.

Each case is worked on by itself, with what all of them share, which is sent to each worker once. Results come back in
the order of the cases: where the work was done cannot be seen from them.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any, Generic, TypeVar

from kubesched.k8s.errors import KubeschedError

Shared = TypeVar("Shared")
Case = TypeVar("Case")
Result = TypeVar("Result")

_CONNECT_S = 15.0


class SpreadError(KubeschedError):
    """The work cannot be spread as it was asked for."""


def spread_over(
    work: Callable[[Shared, Case], Result], shared: Shared, cases: Sequence[Case], *, jobs: int = 1, dask: str = ""
) -> Iterator[Result]:
    """What `work` makes of each case. `jobs` is the number of processes, `dask` the address of a Dask scheduler to use
    in their place. A function, and what it is given, must be such that other processes can have them: importable, and
    picklable. What `work` raises is raised here."""
    if dask:
        return _on_dask(_packed((work, shared)), cases, dask)
    if jobs > 1 and len(cases) > 1:
        return _in_processes(_packed((work, shared)), cases, min(jobs, len(cases)))
    return (work(shared, case) for case in cases)


class StayingWorkers(Generic[Shared, Case, Result]):
    """Processes for work that comes bit by bit: they start when the first work comes, and stay until `close`."""

    def __init__(self, work: Callable[[Shared, Case], Result], shared: Shared, jobs: int) -> None:
        self._work = work
        self._shared = shared
        self._jobs = jobs
        self._processes: ProcessPoolExecutor | None = None

    def each(self, cases: Sequence[Case]) -> Iterator[Result]:
        """In the order of the cases. Who stops listening needs no more of them: what has not begun is not done."""
        if self._processes is None:
            packed = _packed((self._work, self._shared))
            self._processes = _started(packed, self._jobs)
        with _interrupts_blocked():
            futures = [self._processes.submit(_work_on, case) for case in cases]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """What is under way is waited for."""
        if self._processes is not None:
            self._processes.shutdown(cancel_futures=True)
            self._processes = None


def _packed(item: object) -> bytes:
    try:
        return pickle.dumps(item)
    except (pickle.PicklingError, AttributeError, TypeError) as problem:
        raise SpreadError(f"other processes cannot be given this, so there can be one only: {problem}") from None


# -- processes ---------------------------------------------------------------------------------------------------------

_task: tuple[Callable[[Any, Any], Any], Any] | None = None
"""In a worker: what is done with each case, and what all of them share."""


def _in_processes(packed: bytes, cases: Sequence[Any], jobs: int) -> Iterator[Any]:
    with _started(packed, jobs) as processes:
        with _interrupts_blocked():
            results = processes.map(_work_on, cases)
        yield from results


def _started(packed: bytes, jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_take_up, initargs=(packed,))


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """For good in workers that start in here: Ctrl-C is the business of the process that asked, which may want
    what was done so far. Here it comes through afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_up(packed: bytes) -> None:
    global _task
    _task = pickle.loads(packed)


def _work_on(case: Any) -> Any:
    assert _task is not None
    work, shared = _task
    return work(shared, case)


# -- Dask --------------------------------------------------------------------------------------------------------------


def _on_dask(packed: bytes, cases: Sequence[Any], address: str) -> Iterator[Any]:
    try:
        from distributed import Client

        connect: Any = Client  # which is not typed
    except ImportError:
        raise SpreadError("a Dask cluster is reached through distributed: pip install '.[dask]' in a clone") from None
    try:
        client: Any = connect(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as problem:
        raise SpreadError(f"{address}: no Dask scheduler answers there: {problem}") from None
    with client:
        _check_versions(client, address)
        everywhere = client.scatter(packed, broadcast=True)
        futures = client.map(_work_on_packed, cases, packed=everywhere, pure=False)
        for future in futures:
            yield future.result()


def _check_versions(client: Any, address: str) -> None:
    """Another version may decide otherwise."""
    ours = version("kubesched")
    found: dict[str, str] = client.run(_version)
    if not found:
        raise SpreadError(f"{address}: the Dask cluster has no workers")
    for worker, theirs in sorted(found.items()):
        if theirs != ours:
            raise SpreadError(f"{worker}: this worker has {theirs or 'no kubesched'}, and here it is {ours}")


def _version() -> str:
    return version("kubesched")


def _work_on_packed(case: Any, packed: bytes) -> Any:
    global _task, _packed_task
    if _task is None or _packed_task != packed:
        _task, _packed_task = pickle.loads(packed), packed
    return _work_on(case)


_packed_task = b""
