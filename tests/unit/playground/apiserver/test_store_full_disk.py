"""A disk that takes no more: writes are refused and taken back, reads go on, health says so, and it ends by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from apiserver_serving import PODS, TestClient, pod, running

from kubesched.playground.apiserver.storage import sqlite as sqlite_module
from kubesched.playground.apiserver.storage.sqlite import SqliteStore
from kubesched.playground.apiserver.storage.store import ObjectKey, StoreFailedError


def _fill(store: SqliteStore) -> None:
    """From now on the database may not grow."""
    [pages] = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")


def _empty(store: SqliteStore) -> None:
    store._connection.execute("PRAGMA max_page_count = 1073741823")


def _put(store: SqliteStore, name: str, size: int = 10) -> None:
    store.put("pods", ObjectKey("default", name), {"metadata": {"name": name}, "x": "x" * size}, lambda _: {})


def _delete(store: SqliteStore, name: str) -> None:
    store.delete("pods", ObjectKey("default", name), {"metadata": {"name": name}}, lambda _: {})


def _names(store: SqliteStore) -> list[str]:
    return [stored.key.name for stored in store.list("pods")]


@pytest.fixture(autouse=True)
def _trying_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_module, "_TRY_AGAIN_EVERY_S", 0.01)


async def _until_well(store: SqliteStore) -> None:
    while store.failure:
        await asyncio.sleep(0.01)


def test_what_the_disk_refused_is_as_if_never_written(tmp_path: Path) -> None:
    async def body() -> None:
        store = await SqliteStore.open(tmp_path / "s.sqlite", {})
        for name in ("stays", "changes", "goes"):
            _put(store, name)
        await store.settle()
        before = [(stored.key, stored.revision, stored.raw) for stored in store.list("pods")]
        revision = store.revision
        _fill(store)
        _put(store, "new", 10**6)
        _put(store, "new", 10**6)
        _put(store, "changes", 10**6)
        _delete(store, "goes")
        _put(store, "goes", 10**6)
        _delete(store, "new")
        with pytest.raises(StoreFailedError, match="database or disk is full"):
            await store.settle()
        assert [(stored.key, stored.revision, stored.raw) for stored in store.list("pods")] == before
        assert store.revision == revision
        assert "disk is full" in store.failure
        await store.settle()  # reads go on
        await store.close()
        again = await SqliteStore.open(tmp_path / "s.sqlite", {})
        assert [(stored.key, stored.revision, stored.raw) for stored in again.list("pods")] == before
        await again.close()

    asyncio.run(body())


def test_writes_go_on_when_there_is_room_again(tmp_path: Path) -> None:
    async def body() -> None:
        store = await SqliteStore.open(tmp_path / "s.sqlite", {})
        taken_back: list[bool] = []
        store.on_taken_back = lambda: taken_back.append(True)
        _fill(store)
        _put(store, "a", 10**6)
        with pytest.raises(StoreFailedError):
            await store.settle()
        assert taken_back == [True]
        with pytest.raises(StoreFailedError):
            _put(store, "b")
        assert _names(store) == []
        _empty(store)
        await _until_well(store)
        _put(store, "b", 10**6)
        await store.settle()
        await store.close()
        again = await SqliteStore.open(tmp_path / "s.sqlite", {})
        assert _names(again) == ["b"]
        await again.close()

    asyncio.run(body())


def test_watches_see_nothing_of_what_was_refused(tmp_path: Path) -> None:
    async def body() -> None:
        store = await SqliteStore.open(tmp_path / "s.sqlite", {})
        _put(store, "first")
        await store.settle()
        position = store.history("pods").position_after(store.revision)
        _fill(store)
        _put(store, "refused", 10**6)
        with pytest.raises(StoreFailedError):
            await store.settle()
        _empty(store)
        await _until_well(store)
        _put(store, "second")
        await store.settle()
        assert [change.now.key.name for change in store.history("pods").read(position)] == ["second"]
        await store.close()

    asyncio.run(body())


def test_compaction_waits_for_room(tmp_path: Path) -> None:
    async def body() -> None:
        store = await SqliteStore.open(tmp_path / "s.sqlite", {})
        for _ in range(5):
            _put(store, "a")
        await store.settle()
        _fill(store)
        store.compact(store.revision)
        _put(store, "b", 10**6)
        with pytest.raises(StoreFailedError):
            await store.settle()
        store.compact(store.revision)
        await store.settle()
        _empty(store)
        await _until_well(store)
        await store.settle()
        assert store._connection.execute("SELECT count(*) FROM log").fetchone() == (1,)
        await store.close()

    asyncio.run(body())


def test_a_server_with_a_full_disk_serves_reads_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(client: TestClient, health: int, write: int, name: str) -> None:
        big = pod(name)
        big["metadata"]["annotations"] = {"a": "x" * 100_000}
        assert (await client.ask("POST", PODS, big)).status == write
        assert (await client.ask("GET", f"{PODS}/first")).status == 200
        assert (await client.ask("GET", PODS)).status == 200
        assert (await client.ask("GET", "/livez")).status == 200
        for path in ("/readyz", "/healthz", "/readyz/etcd"):
            assert (await client.ask("GET", path)).status == health
        assert (await client.ask("GET", "/readyz?exclude=etcd")).status == 200

    async def run() -> None:
        async with running(tmp_path) as client:
            store = client.server.store
            assert isinstance(store, SqliteStore)
            assert (await client.ask("POST", PODS, pod("first"))).status == 201
            _fill(store)
            monkeypatch.setattr(sqlite_module, "_TRY_AGAIN_EVERY_S", 3600.0)
            big = pod("big")
            big["metadata"]["annotations"] = {"a": "x" * 200_000}
            refused = await client.ask("POST", PODS, big)
            assert refused.status == 503
            assert "disk is full" in refused.message
            said = await client.ask("GET", "/readyz")
            assert "[-]etcd failed: the store cannot write: database or disk is full" in str(said.body)
            assert "readyz check failed" in str(said.body)
            await check(client, 500, 503, "second")
            _empty(store)
            store._try_again()
            await _until_well(store)
            await check(client, 200, 201, "third")

    asyncio.run(run())
