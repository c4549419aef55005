"""`up --reload`: plugins of the running scheduler are read again when their files change.

A file that cannot be used is told about; the plugins that run stay then, and so does the cluster in any case.

Next: `kubesched.scheduler.reload`, which replaces them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import say_error
from kubesched.cli.watching import LOOK_EVERY_S

if TYPE_CHECKING:
    from kubesched.playground.playground import Playground


def _pause() -> Awaitable[None]:
    return asyncio.sleep(LOOK_EVERY_S)


async def reload_plugins(playground: Playground, pause: Callable[[], Awaitable[None]] = _pause) -> None:
    """Until it is cancelled."""
    from kubesched.scheduler.config import ConfigError
    from kubesched.scheduler.plugin_loading import WatchedFiles

    watched = WatchedFiles(playground.plugin_paths)
    while True:
        await pause()
        changed = watched.changed()
        if not changed:
            continue
        try:
            playground.scheduler.reload_plugins()
        except ConfigError as error:
            say_error(f"{error}\nstill running the previous plugins")
        else:
            names = ", ".join(playground.scheduler.assembled.outside.classes)
            click.echo(f"{', '.join(map(str, changed))} changed: reloaded {names}")
