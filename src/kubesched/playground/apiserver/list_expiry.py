"""Lists of the past end: who reads a list in pieces has five to ten minutes, as with a real API server and its etcd.

After that a continue token is answered with 410 and a token to go on with, from the same key in the present. Watches
have a history of their own, bounded by its size. Read ``server.py`` for who starts this.
"""

from __future__ import annotations

import asyncio

from kubesched.playground.apiserver.storage.store import Store

EXPIRE_EVERY_S = 300.0


async def expire_lists_forever(store: Store, every_s: float = EXPIRE_EVERY_S) -> None:
    seen = store.revision
    while True:
        await asyncio.sleep(every_s)
        store.expire_lists(seen)
        seen = store.revision
