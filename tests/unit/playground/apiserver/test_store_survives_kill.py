"""kill -9 at any moment loses nothing that was acknowledged, and never gives a revision twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from kubesched.playground.apiserver.storage.sqlite import SqliteStore
from kubesched.playground.apiserver.storage.store import ObjectKey

KILLS = 20
_SCRIPT = Path(__file__).with_name("store_script.py")


def _run_and_kill(path: Path, run: int) -> dict[str, int]:
    """Starts a writer, lets it acknowledge some writes, kills it; returns what it acknowledged."""
    command = [sys.executable, str(_SCRIPT), str(path), f"r{run}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 + 7 * run % 40)]
        process.kill()
        lines += process.stdout.readlines()
    complete = [line.split() for line in lines if line.endswith("\n")]
    return {name: int(revision) for revision, name in complete}


async def _read_back(path: Path) -> tuple[dict[str, int], int]:
    store = await SqliteStore.open(path, {})
    found = {stored.key.name: stored.revision for stored in store.list("configmaps")}
    revision = store.revision
    assert all(store.get("configmaps", ObjectKey("ns", name)) for name in found)
    await store.close()
    return found, revision


def test_a_killed_store_keeps_all_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "objects.sqlite"
    acknowledged: dict[str, int] = {}
    for run in range(KILLS):
        fresh = _run_and_kill(path, run)
        assert fresh, "the writer acknowledged nothing"
        assert not set(fresh.values()) & set(acknowledged.values()), "a revision was given twice"
        acknowledged |= fresh
    found, revision = asyncio.run(_read_back(path))
    assert {name: found.get(name) for name in acknowledged} == acknowledged
    assert revision >= max(acknowledged.values())
