"""Which classes are kept when there are more signatures than room: those that were used last."""

from __future__ import annotations

import pytest

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.class_cache import cache
from kubesched.scheduler.engine.class_cache.cache import ClassCache, RecentlyUsed
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make


def test_what_was_used_longest_ago_makes_room() -> None:
    a, b, c = (_pod(name).signature for name in "abc")
    kept: RecentlyUsed[str] = RecentlyUsed(2)
    kept.keep(a, "A")
    kept.keep(b, "B")
    assert kept.use(a) == "A"
    kept.keep(c, "C")
    assert (kept.use(a), kept.use(b), kept.use(c)) == ("A", None, "C")


def test_what_is_replaced_counts_as_used() -> None:
    a, b, c = (_pod(name).signature for name in "abc")
    kept: RecentlyUsed[str] = RecentlyUsed(2)
    kept.keep(a, "A")
    kept.keep(b, "B")
    kept.keep(a, "newer A")
    kept.keep(c, "C")
    assert (len(kept), kept.use(a), kept.use(b)) == (2, "newer A", None)


def test_what_is_dropped_makes_room() -> None:
    a, b, c = (_pod(name).signature for name in "abc")
    kept: RecentlyUsed[str] = RecentlyUsed(2)
    kept.keep(a, "A")
    kept.keep(b, "B")
    kept.drop(b)
    kept.drop(b)
    kept.keep(c, "C")
    assert kept.use(a) == "A"


def test_the_class_of_a_big_deployment_outlives_many_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came first, and is used all the time: no class that came later makes it go."""
    monkeypatch.setattr(cache, "_MOST_CLASSES", 3)
    loop = build_loop(default(), ByName())
    for found in manifests.from_dicts([make.node("n1")]).objects:
        loop.put(found, 0.0)
    classes = ClassCache(loop.cluster, loop.schedulers["default-scheduler"].profile)
    signatures = loop.cluster.signatures
    big = signatures.info(_pod("big").pod)
    assert classes.find(big) is None  # the first with its signature
    prepared = classes.find(big)
    assert prepared is not None
    for number in range(10):
        small = signatures.info(_pod(f"small-{number}").pod)
        classes.find(small)
        assert classes.find(small) is not prepared
        assert classes.find(big) is prepared


@pytest.mark.parametrize(("most_rows", "n_kept"), [(4_000_000, 100), (90, 90), (10, 64)])
def test_as_many_classes_that_fit_nowhere_are_kept_as_there_are_rows_for(
    most_rows: int, n_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_MOST_FAILED_ROWS", most_rows)
    loop = build_loop(default(), ByName())
    for found in manifests.from_dicts([make.node("n1", cpu="1")]).objects:
        loop.put(found, 0.0)
    scheduler = loop.schedulers["default-scheduler"]
    waiting = [loop.cluster.signatures.info(_pod(f"job-{number}", cpu="2").pod) for number in range(100)]
    for _ in range(2):
        for info in waiting:
            assert not scheduler.decide(info).node_name
    before = scheduler.n_decided_by_class
    for info in reversed(waiting):
        assert not scheduler.decide(info).node_name
    assert scheduler.n_decided_by_class - before == n_kept


_SIGNATURES = build_loop(default(), ByName()).cluster.signatures


def _pod(app: str, cpu: str = "100m") -> PodInfo:
    (pod,) = manifests.from_dicts([make.pod(app, cpu=cpu, labels={"app": app})]).objects
    assert isinstance(pod, Pod)
    return _SIGNATURES.info(pod)
