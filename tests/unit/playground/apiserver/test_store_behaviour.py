"""Both stores: revisions, conflicts, lists of now and of then, history, compaction, opening again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.playground.apiserver.storage.memory import HistoryLimits, MemoryStore
from kubesched.playground.apiserver.storage.sqlite import SqliteStore
from kubesched.playground.apiserver.storage.store import (
    CompactedError,
    ObjectKey,
    RevisionConflictError,
    StoreFailedError,
    metadata_fields,
)

Check = Callable[[MemoryStore], Awaitable[None]]


def _obj(key: ObjectKey, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": key.name, "namespace": key.namespace, "labels": labels}}


def _put(store: MemoryStore, name: str, expected: int | None = None, **labels: str) -> int:
    key = ObjectKey("ns", name)
    return store.put("pods", key, _obj(key, **labels), metadata_fields, expected).revision


def _delete(store: MemoryStore, name: str) -> int:
    key = ObjectKey("ns", name)
    return store.delete("pods", key, _obj(key), metadata_fields).revision


def _names(store: MemoryStore, revision: int | None = None) -> list[str]:
    listed = store.list("pods") if revision is None else store.list_at("pods", "", revision)
    return [stored.key.name for stored in listed]


@pytest.fixture(params=["memory", "sqlite"])
def check(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Check], None]:
    async def run(body: Check) -> None:
        if request.param == "memory":
            await body(MemoryStore())
            return
        store = await SqliteStore.open(tmp_path / "s.sqlite", {})
        await body(store)
        await store.close()

    return lambda body: asyncio.run(run(body))


def test_revisions_rise_and_are_the_versions_of_objects(check: Callable[[Check], None]) -> None:
    async def body(store: MemoryStore) -> None:
        first, second = _put(store, "a"), _put(store, "b")
        assert second == first + 1 == store.revision
        stored = store.get("pods", ObjectKey("ns", "b"))
        assert stored is not None
        assert f'"resourceVersion":"{second}"'.encode() in stored.raw

    check(body)


def test_a_write_on_another_revision_than_expected_is_refused(check: Callable[[Check], None]) -> None:
    async def body(store: MemoryStore) -> None:
        revision = _put(store, "a", 0)
        with pytest.raises(RevisionConflictError):
            _put(store, "a", 0)
        with pytest.raises(RevisionConflictError):
            _put(store, "a", revision - 1)
        assert _put(store, "a", revision) > revision

    check(body)


def test_lists_are_in_order_of_namespace_and_name(check: Callable[[Check], None]) -> None:
    async def body(store: MemoryStore) -> None:
        for name in ("b", "a", "c"):
            _put(store, name)
        other = ObjectKey("aa", "z")
        store.put("pods", other, _obj(other), metadata_fields)
        assert _names(store) == ["z", "a", "b", "c"]
        assert [stored.key.name for stored in store.list("pods", "ns")] == ["a", "b", "c"]

    check(body)


def test_a_list_of_an_older_revision_shows_that_state(check: Callable[[Check], None]) -> None:
    async def body(store: MemoryStore) -> None:
        _put(store, "a")
        then = _put(store, "b")
        _put(store, "c")
        _delete(store, "a")
        await store.settle()
        assert _names(store, then) == ["a", "b"]
        assert _names(store) == ["b", "c"]

    check(body)


def test_history_gives_what_came_after_a_revision_and_waits_for_more(check: Callable[[Check], None]) -> None:
    async def body(store: MemoryStore) -> None:
        then = _put(store, "a")
        _put(store, "a", x="1")
        _delete(store, "a")
        await store.settle()
        history = store.history("pods")
        position = history.position_after(then)
        assert [change.type for change in history.read(position)] == ["MODIFIED", "DELETED"]
        waiting = asyncio.ensure_future(history.wait_beyond(position + 2, 5.0))
        await asyncio.sleep(0)
        _put(store, "b")
        assert await waiting
        assert not await history.wait_beyond(position + 3, 0.0)

    check(body)


def test_compacted_revisions_are_refused_and_never_give_a_gap(check: Callable[[Check], None]) -> None:
    async def body(store: MemoryStore) -> None:
        then = _put(store, "a")
        later = _put(store, "b")
        await store.settle()
        store.compact(later)
        with pytest.raises(CompactedError):
            store.history("pods").position_after(then)
        with pytest.raises(CompactedError):
            store.list_at("pods", "", then)
        assert store.history("pods").position_after(later) == 2

    check(body)


def test_history_is_bounded_and_forgets_the_oldest_first() -> None:
    store = MemoryStore(HistoryLimits(changes=10))
    first = _put(store, "a")
    for number in range(20):
        _put(store, "a", n=str(number))
    with pytest.raises(CompactedError):
        store.history("pods").position_after(first)
    assert len(store.history("pods").read(store.history("pods").position_after(store.compacted))) <= 10


_STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("put", "delete", "compact"))), max_size=25)


@given(_STEPS, st.integers(0, 25))
@settings(max_examples=60, deadline=None)
def test_a_list_and_its_later_changes_are_the_list_of_now(steps: list[tuple[str, str]], look_at: int) -> None:
    store = MemoryStore()
    shown: dict[str, int] = {}
    since = store.revision
    look_at = min(look_at, max(len(steps) - 1, 0))
    for number, (name, action) in enumerate(steps):
        if number == look_at:
            shown, since = {s.key.name: s.revision for s in store.list("pods")}, store.revision
        if action == "put":
            _put(store, name)
        elif action == "delete" and store.get("pods", ObjectKey("ns", name)):
            _delete(store, name)
        elif action == "compact" and number < look_at:
            store.compact(store.revision)
    history = store.history("pods")
    for change in history.read(history.position_after(since)):
        if change.type == "DELETED":
            del shown[change.now.key.name]
        else:
            shown[change.now.key.name] = change.revision
    assert shown == {s.key.name: s.revision for s in store.list("pods")}


def test_opening_again_finds_objects_revision_and_history(tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "s.sqlite"
        store = await SqliteStore.open(path, {})
        then = _put(store, "a", x="1")
        _put(store, "b")
        last = _delete(store, "b")
        await store.close()
        again = await SqliteStore.open(path, {})
        assert _names(again) == ["a"]
        assert again.revision == last
        assert again.list("pods")[0].labels == {"x": "1"}
        history = again.history("pods")
        assert [change.type for change in history.read(history.position_after(then))] == ["ADDED", "DELETED"]
        again.compact(last)
        await again.close()
        third = await SqliteStore.open(path, {})
        assert (_names(third), third.revision, third.compacted) == (["a"], last, last)
        await third.close()

    asyncio.run(body())


def test_a_revision_is_never_used_again_after_its_object_was_compacted_away(tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "s.sqlite"
        store = await SqliteStore.open(path, {})
        _put(store, "a")
        last = _delete(store, "a")
        await store.settle()
        store.compact(last)
        await store.close()
        again = await SqliteStore.open(path, {})
        assert _names(again) == []
        assert _put(again, "a") > last
        await again.close()

    asyncio.run(body())


def test_a_durable_store_compacts_while_it_is_written_to(tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "s.sqlite"
        store = await SqliteStore.open(path, {}, HistoryLimits(changes=20))
        for number in range(200):
            _put(store, f"p{number % 7}", n=str(number))
            if number % 3 == 0:
                await store.settle()
        await store.close()
        again = await SqliteStore.open(path, {}, HistoryLimits(changes=20))
        assert {s.key.name: s.labels["n"] for s in again.list("pods")} == {f"p{n % 7}": str(n) for n in range(193, 200)}
        assert again.compacted > 200
        await again.close()

    asyncio.run(body())


def test_a_store_whose_disk_fails_acknowledges_nothing_more(tmp_path: Path) -> None:
    async def body() -> None:
        store = await SqliteStore.open(tmp_path / "s.sqlite", {})
        _put(store, "a")
        await store.settle()
        store._connection.execute("DROP TABLE log")
        _put(store, "b")
        with pytest.raises(StoreFailedError):
            await store.settle()
        with pytest.raises(StoreFailedError):
            _put(store, "c")
        await store.close()

    asyncio.run(body())


def test_compaction_leaves_only_states_and_history_on_the_disk(tmp_path: Path) -> None:
    async def body() -> None:
        store = await SqliteStore.open(tmp_path / "s.sqlite", {}, HistoryLimits(changes=20))
        for number in range(300):
            _put(store, f"p{number % 7}", n=str(number))
            if number % 50 == 49:
                _delete(store, f"p{number % 7}")
            await store.settle()
        await store.close()
        again = await SqliteStore.open(tmp_path / "s.sqlite", {}, HistoryLimits(changes=20))
        (n_rows,) = again._connection.execute("SELECT count(*) FROM log").fetchone()
        history = again.history("pods")
        kept = history.read(history.position_after(again.compacted))
        replaced = [change.before for change in kept if change.before and change.before.revision <= again.compacted]
        unchanged = [stored for stored in again.list("pods") if stored.revision <= again.compacted]
        assert n_rows == len(kept) + len(replaced) + len(unchanged)
        await again.close()

    asyncio.run(body())


def test_who_waits_is_told_once_of_many_quick_changes(check: Callable[[Check], None]) -> None:
    async def body(store: MemoryStore) -> None:
        _put(store, "a")
        await store.settle()
        history = store.history("pods")
        position = history.position_after(store.revision)
        told: list[int] = []

        async def follow() -> None:
            at = position
            while at < position + 40:
                assert await history.wait_beyond(at, 5.0)
                told.append(len(history.read(at)))
                at += told[-1]

        following = asyncio.ensure_future(follow())
        await asyncio.sleep(0)
        for number in range(40):
            _put(store, f"p{number}")
            await store.settle()
        await following
        assert sum(told) == 40
        assert len(told) < 40

    check(body)


def test_waking_ends_the_waiting_of_all(check: Callable[[Check], None]) -> None:
    async def body(store: MemoryStore) -> None:
        history = store.history("pods")
        waiting = asyncio.gather(*(history.wait_beyond(history.position_after(store.revision), 60.0) for _ in range(3)))
        await asyncio.sleep(0)
        store.wake()
        assert await waiting == [False, False, False]

    check(body)
