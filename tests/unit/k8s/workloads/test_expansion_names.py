"""Names that controllers draw, and hashes of templates."""

from __future__ import annotations

from itertools import islice

from kubesched.k8s.model.core import Container, PodSpec, PodTemplateSpec
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.workloads.actions import SAFE_LETTERS, SeededNames, safe_hash
from kubesched.k8s.workloads.templates import template_hash


def _names(seed: int, prefix: str, n: int) -> list[str]:
    names = SeededNames(seed)
    return list(islice((names.name(prefix) for _ in iter(int, 1)), n))


def test_the_same_seed_draws_the_same_names() -> None:
    assert _names(7, "web-", 20) == _names(7, "web-", 20)
    assert not set(_names(7, "web-", 20)) & set(_names(8, "web-", 20))


def test_a_name_is_the_prefix_and_five_safe_letters_and_never_comes_twice() -> None:
    found = _names(0, "web-", 5000)
    assert len(set(found)) == 5000
    assert all(len(name) == 9 and set(name[4:]) <= set(SAFE_LETTERS) for name in found)


def test_a_long_prefix_is_cut_so_that_the_name_fits_a_label() -> None:
    (name,) = _names(0, "x" * 80, 1)
    assert len(name) == 63


def test_other_workloads_leave_names_as_they_are() -> None:
    alone, together = SeededNames(1), SeededNames(1)
    together.name("other-")
    assert alone.name("web-") == together.name("web-")


def test_uids_are_uuids_and_never_come_twice() -> None:
    names = SeededNames(3)
    first, second = names.uid("Pod a/b"), names.uid("Pod a/b")
    assert first != second
    assert [len(part) for part in first.split("-")] == [8, 4, 4, 4, 12]


def test_a_hash_follows_the_template_but_not_the_labels_that_do_not_count() -> None:
    plain = PodTemplateSpec(ObjectMeta(labels={"app": "web"}))
    marked = PodTemplateSpec(ObjectMeta(labels={"app": "web", "mark": "x"}))
    other = PodTemplateSpec(ObjectMeta(labels={"app": "web"}), PodSpec((Container("main"),)))
    assert template_hash(plain) == template_hash(marked, without=["mark"])
    assert len({template_hash(plain), template_hash(marked), template_hash(other)}) == 3
    assert set(safe_hash(b"anything")) <= set(SAFE_LETTERS)
