"""Does something again whenever one of its files changes, until it is interrupted.

Files are looked at a few times a second. What was saved while the work was going on is seen as well.

Next: `simulate`, which does this with `--watch`; `up` with `--reload`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click

LOOK_EVERY_S = 0.3


def watch(
    work: Callable[[], object],
    files: Callable[[], Iterable[Path]],
    pause: Callable[[], None] = lambda: time.sleep(LOOK_EVERY_S),
) -> None:
    """`files` are asked for before every run: which ones there are may have changed with them. Ends with
    KeyboardInterrupt, which `pause` may raise as well."""
    from kubesched.scheduler.plugin_loading import WatchedFiles

    try:
        while True:
            watched = WatchedFiles(files())
            work()
            click.echo("watching for changes; press Ctrl-C to stop", err=True)
            while not (changed := watched.changed()):
                pause()
            click.echo(f"\n{', '.join(map(str, changed))} changed", err=True)
    except KeyboardInterrupt:
        click.echo(err=True)


def manifest_files(filenames: Iterable[str]) -> list[Path]:
    """The files of manifests, with the directories among them: a file may come to one."""
    found = []
    for filename in filenames:
        path = Path(filename)
        found.append(path)
        if path.is_dir():
            found.extend(sorted(path.rglob("*")))
    return found
