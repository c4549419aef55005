"""What an API server forgets with time: lists of the past, and events.

Who reads a list in pieces has five to ten minutes, as with a real API server and its etcd; after that a continue token
is answered with 410 and a token to go on with, from the same key in the present. Watches have a history of their own,
bounded by its size. Events go an hour after they were written last: nobody else deletes them.

Read ``server.py`` for who starts this.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from kubesched.playground.apiserver.storage.store import ObjectKey, Store, StoreFailedError
from kubesched.playground.apiserver.verbs.api import Api, decode_stored

EXPIRE_EVERY_S = 300.0


async def expire_lists_forever(store: Store, every_s: float = EXPIRE_EVERY_S) -> None:
    seen = store.revision
    while True:
        await asyncio.sleep(every_s)
        store.expire_lists(seen)
        seen = store.revision


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
