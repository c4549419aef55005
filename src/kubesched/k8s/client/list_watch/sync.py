"""Waiting until informers have heard of everything that was there when they began."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from kubesched.k8s.client.list_watch import log_lines
from kubesched.k8s.client.list_watch.informer import SharedInformer

REMIND_EVERY_S = 10.0


async def wait_for_cache_sync(
    informers: Iterable[SharedInformer[Any]], timeout_s: float | None = None, stopped: asyncio.Event | None = None
) -> bool:
    """Whether all were synced in time, and before `stopped`; without either it waits for as long as it takes."""
    informers = list(informers)
    waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(_all_synced(informers))]
    if stopped is not None:
        waiting.append(asyncio.ensure_future(stopped.wait()))
    try:
        await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
    return all(informer.has_synced for informer in informers)


async def wait_for_named_cache_sync(
    name: str,
    informers: Iterable[SharedInformer[Any]],
    *,
    stopped: asyncio.Event | None = None,
    remind_every_s: float = REMIND_EVERY_S,
) -> bool:
    """The same, and the log says for whom it waits, what became of it, and now and then which kinds are still missing.
    To be cancelled is to be stopped."""
    informers = list(informers)
    began_s = time.monotonic()
    log_lines.WAITING_FOR_SYNC.write(name)
    try:
        while not await wait_for_cache_sync(informers, remind_every_s, stopped):
            if stopped is not None and stopped.is_set():
                log_lines.NOT_SYNCED.write(name)
                return False
            missing = [informer.name for informer in informers if not informer.has_synced]
            log_lines.STILL_WAITING.write(name, missing, round(time.monotonic() - began_s))
    except asyncio.CancelledError:
        log_lines.NOT_SYNCED.write(name)
        raise
    log_lines.SYNCED.write(name)
    return True


async def _all_synced(informers: list[SharedInformer[Any]]) -> None:
    for informer in informers:
        await informer.wait_synced()
