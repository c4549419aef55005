"""Events are forgotten an hour after they were written last, as by any API server: nobody else deletes them.

Looked for every few minutes. Read ``server.py`` for who starts this.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from kubesched.playground.apiserver.api import Api, decode_stored
from kubesched.playground.apiserver.storage.store import ObjectKey, StoreFailedError

KEPT_FOR = timedelta(hours=1)
LOOK_EVERY_S = 150.0

_EVENTS = "events"
_AT_ONCE = 200
"""After so many, others get their turn."""


async def expire_forever(api: Api) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            await expire_events(api)
        except StoreFailedError:
            continue  # some other time


async def expire_events(api: Api) -> int:
    """How many were too old."""
    resource = api.resource_of(_EVENTS)
    assert resource is not None
    oldest, n_gone = api.clock() - KEPT_FOR, 0
    for stored in list(api.store.list(_EVENTS)):
        event = decode_stored(stored)
        if last_written(event) >= oldest:
            continue
        key = ObjectKey(event["metadata"]["namespace"], event["metadata"]["name"])
        now = api.store.get(_EVENTS, key)
        if now is None or now.revision != stored.revision:
            continue
        api.store.delete(_EVENTS, key, event, resource.selectable_fields)
        n_gone += 1
        if n_gone % _AT_ONCE == 0:
            await api.store.settle()
    return n_gone


def last_written(event: dict[str, Any]) -> datetime:
    """As far as the event itself tells."""
    times = (
        event["metadata"].get("creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        (event.get("series") or {}).get("lastObservedTime"),
    )
    return max((_moment(text) for text in times if text), default=datetime.max.replace(tzinfo=UTC))


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
