"""Which objects came, went or changed since the last time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from storage_clusters import storage_class

from kubesched.k8s.model.storage import StorageClass
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
