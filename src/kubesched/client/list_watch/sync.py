"""Waiting until informers have heard of everything that was there when they began."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any

from kubesched.client.list_watch.informer import SharedInformer

REMIND_EVERY_S = 10.0

_log = logging.getLogger("kubesched.client.list_watch")


async def wait_for_cache_sync(informers: Iterable[SharedInformer[Any]], timeout_s: float | None = None) -> bool:
    """Whether all were synced in time; without a timeout it waits for as long as it takes."""
    try:
        async with asyncio.timeout(timeout_s):
            for informer in informers:
                await informer.wait_synced()
    except TimeoutError:
        return False
    return True


async def wait_for_named_cache_sync(
    name: str, informers: Iterable[SharedInformer[Any]], *, remind_every_s: float = REMIND_EVERY_S
) -> None:
    """The same, and the log says for whom it waits, and now and then which kinds are still missing."""
    informers = list(informers)
    began_s = time.monotonic()
    _log.info(f"Waiting for caches to sync for {name}", extra={"fields": {"controller": name}})
    while not await wait_for_cache_sync(informers, timeout_s=remind_every_s):
        waiting = [informer.name for informer in informers if not informer.has_synced]
        fields = {"controller": name, "waitingFor": waiting, "seconds": round(time.monotonic() - began_s)}
        _log.warning(f"Still waiting for caches to sync for {name}: {', '.join(waiting)}", extra={"fields": fields})
    _log.info(f"Caches are synced for {name}", extra={"fields": {"controller": name}})
