"""A progress bar for a simulation, on standard error, if somebody looks at it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubesched.simulator.virtual.cluster import Progress, VirtualCluster

_EVERY_S = 0.1


@contextmanager
def shown_progress() -> Iterator[Progress | None]:
    """What the run is to call now and then; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("pods"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=None)
        last_s = 0.0

        def show(cluster: VirtualCluster) -> None:
            nonlocal last_s
            now_s = time.monotonic()
            if now_s - last_s >= _EVERY_S:
                last_s = now_s
                n_pods = len(cluster.ledger.pods)
                n_waiting = len(cluster.loop.queue.contents)
                bar.update(task, total=n_pods, completed=n_pods - n_waiting, description=_clock(cluster))

        yield show


def _clock(cluster: VirtualCluster) -> str:
    from kubesched.simulator.report.text import readable_span

    return f"at {readable_span(cluster.clock.elapsed_s)}"
