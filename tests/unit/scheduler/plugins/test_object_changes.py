"""Which objects came, went or changed since the last time."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from storage_clusters import storage_class

from kubesched.k8s.model.storage import StorageClass
from kubesched.scheduler.cluster.journal import KEPT
from kubesched.scheduler.cluster.objects import ObjectMap
from kubesched.scheduler.plugins.object_changes import ObjectChanges


def test_at_first_every_object_is_new_and_then_none() -> None:
    changes: ObjectChanges[StorageClass] = ObjectChanges()
    known = {"a": storage_class("a"), "b": storage_class("b")}
    assert changes.take(known) == [(None, known["a"]), (None, known["b"])]
    assert changes.take(known) == []


def test_a_replaced_object_comes_with_what_it_was() -> None:
    changes: ObjectChanges[StorageClass] = ObjectChanges()
    old, new = storage_class("a"), storage_class("a", provisioner="x")
    changes.take({"a": old})
    assert changes.take({"a": new}) == [(old, new)]
    assert changes.take({}) == [(new, None)]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans())))
def test_following_the_changes_gives_what_there_is(steps: list[tuple[str, bool, bool]]) -> None:
    changes: ObjectChanges[StorageClass] = ObjectChanges()
    known: dict[str, StorageClass] = {}
    followed: dict[str, StorageClass] = {}
    for name, is_put, is_asked in steps:
        if is_put:
            known[name] = storage_class(name)
        else:
            known.pop(name, None)
        if is_asked:
            for before, now in changes.take(known):
                if before is not None:
                    assert followed.pop(before.name) is before
                if now is not None:
                    followed[now.name] = now
            assert followed == known


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(("put", "remove", "take"))), max_size=40))
def test_a_map_that_logs_its_changes_tells_the_same_as_a_look_at_all_objects(steps: list[tuple[str, str]]) -> None:
    logged: ObjectMap[StorageClass] = ObjectMap()
    plain: dict[str, StorageClass] = {}
    by_log: ObjectChanges[StorageClass] = ObjectChanges()
    by_look: ObjectChanges[StorageClass] = ObjectChanges()
    for key, verb in [*steps, ("a", "take")]:
        if verb == "put":
            logged[key] = plain[key] = storage_class(key)
        elif verb == "remove":
            logged.pop(key, None)
            plain.pop(key, None)
        else:
            assert _by_name(by_log.take(logged)) == _by_name(by_look.take(plain))


def test_changes_that_the_log_has_forgotten_are_seen_all_the_same() -> None:
    known: ObjectMap[StorageClass] = ObjectMap()
    changes: ObjectChanges[StorageClass] = ObjectChanges()
    known["gone"] = gone = storage_class("gone")
    assert list(changes.take(known)) == [(None, gone)]
    known.pop("gone")
    kept = storage_class("kept")
    for _ in range(KEPT + 1):
        known["kept"] = kept
    assert _by_name(changes.take(known)) == _by_name([(gone, None), (None, kept)])


Change = tuple[StorageClass | None, StorageClass | None]


def _by_name(changes: Iterable[Change]) -> dict[str, tuple[int, int]]:
    """The identities of what was and what is."""
    return {item.name: (id(before), id(now)) for before, now in changes if (item := now or before) is not None}
