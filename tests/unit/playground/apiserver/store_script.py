"""A process that writes to a durable store and says what was acknowledged, until somebody kills it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from kubesched.playground.apiserver.storage.sqlite import SqliteStore
from kubesched.playground.apiserver.storage.store import ObjectKey, metadata_fields


async def write_until_killed(path: Path, run: str) -> None:
    store = await SqliteStore.open(path, {})

    async def write(number: int) -> None:
        key = ObjectKey("ns", f"{run}-{number}")
        obj = {"metadata": {"name": key.name, "namespace": "ns"}, "data": {"x": "y" * 200}}
        stored = store.put("configmaps", key, obj, metadata_fields, 0)
        await store.settle()
        sys.stdout.write(f"{stored.revision} {key.name}\n")
        sys.stdout.flush()

    for begin in range(0, 1_000_000, 8):
        await asyncio.gather(*(write(number) for number in range(begin, begin + 8)))


asyncio.run(write_until_killed(Path(sys.argv[1]), sys.argv[2]))
