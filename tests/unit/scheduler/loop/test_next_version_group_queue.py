"""The queue of v1.37: a pod group is one entry."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from group_worlds import add, bound, group, group_world, members, node, pod
from msgspec.structs import replace

from kubesched.framework.effects import BindPod, Failed
from kubesched.k8s.model.core import Pod, Taint
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.newer.queue import INCOMPLETE
from kubesched.scheduler.queue.sub_queues import BACKOFF, GATED
from kubesched.testing.world import World


def _world() -> World:
    return group_world("GenericWorkload", emulate="1.37")


def _members(n: int = 3, name: str = "g", **fields: Any) -> list[Pod]:
    return members(name, n, **{"priority": 0, **fields})


def _waiting(world: World) -> dict[str, int]:
    counts = world.loop.queue.contents.pending_pods()
    return {place: n for place, n in counts.items() if n}


def _attempts(world: World, name: str = "g-0") -> int:
    queued = world.loop.queue.contents.find(PodKey(f"d/{name}"))
    assert queued is not None
    return queued.attempts


@pytest.mark.parametrize(("n", "limit_s"), [(1, 10), (4, 20), (9, 30)])
def test_backoff_grows_up_to_ten_seconds_times_the_root_of_the_size(n: int, limit_s: int) -> None:
    world = _world()
    add(world, node(cpu="1"), group(gang=n), *_members(n, cpu="2"))
    tried_at: list[float] = []
    for second in range(400):
        before = _attempts(world) if second else 0
        world.run(for_s=1)
        tried_at += [world.now_s] * (_attempts(world) - before)
    waits = [later - earlier for earlier, later in pairwise(tried_at)]
    assert waits[0] < waits[1] < waits[2] <= 6  # 1, 2 and 4 seconds, rounded up as ever
    assert limit_s <= max(waits) <= limit_s + 2
    assert waits[-1] == max(waits)


def test_a_pod_that_comes_while_its_group_backs_off_waits_with_it() -> None:
    world = _world()
    add(world, node(cpu="1"), group(gang=2), *_members(2))
    world.run(for_s=8)
    n_attempts = _attempts(world)
    assert _waiting(world) == {BACKOFF: 2}
    contents = world.loop.queue.contents
    assert (len(contents), contents.lengths()) == (2, (0, 2, 0))
    assert contents.unschedulable_pods() == {("NodeResourcesFit", "default-scheduler"): 1}
    add(world, pod("late", "g", priority=0))
    world.settle()
    assert _waiting(world) == {BACKOFF: 3}
    assert (_attempts(world), _attempts(world, "late")) == (n_attempts, 0)


def test_one_pod_that_is_gated_holds_back_its_group() -> None:
    world = _world()
    gated = pod("gated", "g", priority=0, schedulingGates=[{"name": "x"}])
    add(world, node(), group(), gated, *_members(2))
    world.run(for_s=60)
    assert _waiting(world) == {GATED: 3}
    world.add(pod("gated", "g", priority=0))
    world.run(for_s=1)
    assert len(bound(world)) == 3


def test_a_group_is_called_when_the_pod_that_held_it_back_is_gone() -> None:
    world = _world()
    gated = pod("gated", "g", priority=0, schedulingGates=[{"name": "x"}])
    add(world, node(), group(), gated, *_members(2))
    world.run(for_s=1)
    world.delete(world.objects.of(Pod)["d/gated"])
    world.run(for_s=1)
    assert len(bound(world)) == 2


def test_pods_without_their_group_are_apart() -> None:
    world = _world()
    add(world, node(), *_members())
    world.run(for_s=1)
    assert _waiting(world) == {INCOMPLETE: 3}
    add(world, group(gang=3))
    world.run(for_s=1)
    assert len(bound(world)) == 3


def test_a_group_that_is_deleted_leaves_its_pods_behind() -> None:
    world = _world()
    add(world, node(cpu="1"), group(gang=3), *_members())
    world.run(for_s=1)
    world.delete(world.objects.of(PodGroup)["d/g"])
    world.run(for_s=30)
    assert _waiting(world) == {INCOMPLETE: 3}
    add(world, node("large"), group(gang=3))
    world.run(for_s=1)
    assert len(bound(world)) == 3


def test_what_is_left_of_a_group_that_was_scheduled_is_tried_again_at_once() -> None:
    world = _world()
    add(world, node(cpu="2"), group(gang=2), *_members())
    world.run(for_s=0)
    assert len(bound(world)) == 2
    assert _attempts(world, "g-2") == 2  # with its group, and then alone, which is a failure
    assert _waiting(world) == {BACKOFF: 1}


def test_a_pod_that_is_deleted_leaves_the_others_waiting_for_it() -> None:
    world = _world()
    add(world, node(cpu="1"), group(gang=3), *_members())
    world.run(for_s=1)
    assert _waiting(world) == {BACKOFF: 3}
    world.delete(world.pods[PodKey("d/g-1")])
    world.run(for_s=60)
    assert _waiting(world) == {GATED: 2}
    n_attempts = _attempts(world)
    add(world, node("large"), pod("g-1", "g", priority=0))
    world.run(for_s=1)
    assert len(bound(world)) == 3
    assert n_attempts > 0


def test_a_gang_that_needs_fewer_pods_is_called() -> None:
    world = _world()
    add(world, node(), group(gang=3), *_members(2))
    world.run(for_s=60)
    assert _waiting(world) == {GATED: 2}
    world.add(group(gang=2))
    world.run(for_s=1)
    assert len(bound(world)) == 2


def test_groups_and_pods_stand_in_one_order() -> None:
    """By the priority of the PodGroup; of equals, those that came first."""
    world = _world()
    add(world, group("low", priority=0), *_members(1, "low"), pod("plain", priority=0))
    add(world, group("high", priority=5), *_members(1, "high", priority=5), pod("middle", priority=3))
    world.run()
    add(world, node(cpu="3"))
    world.run(for_s=30)
    assert set(bound(world)) == {"high-0", "middle", "low-0"}


class _FailsOnce(World):
    """The first binding fails."""

    has_failed = False

    def carry_out(self, action: object) -> object:
        if isinstance(action, BindPod) and not self.has_failed:
            self.has_failed = True
            return Failed("conflict")
        return super().carry_out(action)


def test_a_pod_whose_binding_failed_is_tried_again_at_once() -> None:
    world = _FailsOnce(_world().loop)
    add(world, node(), group(gang=2), *_members(2))
    world.run(for_s=0)
    assert world.has_failed
    assert len(bound(world)) == 2


# -- what pods without a group wait for --------------------------------------------------------------------------------


def _anti_affinity(*apps: str) -> dict[str, Any]:
    terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}} for app in apps]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(("emulate", "n_bound"), [(None, 1), ("1.37", 2)])
def test_a_pod_that_leaves_helps_whom_any_term_kept_away_from_it(emulate: str | None, n_bound: int) -> None:
    """In v1.36 only one that all terms are about does."""
    world = group_world(emulate=emulate)
    add(world, node(), pod("a", labels={"app": "a"}), pod("b", labels={"app": "b"}))
    add(world, pod("keeps-away", priority=0, **_anti_affinity("a", "c")))
    world.run()
    world.delete(world.pods[PodKey("d/a")])
    world.run(for_s=30)
    assert len(bound(world)) == n_bound


@pytest.mark.parametrize(("emulate", "n_attempts"), [(None, 2), ("1.37", 1)])
def test_a_node_that_loses_a_taint_is_no_new_node(emulate: str | None, n_attempts: int) -> None:
    """In v1.36 whoever waits for nodes also waits for that."""
    world = group_world(emulate=emulate)
    tainted = node("tainted", cpu="1")
    add(world, replace(tainted, spec=replace(tainted.spec, taints=(Taint("x", "", "NoSchedule"),))))
    add(world, pod("large", cpu="3", tolerations=[{"key": "x", "operator": "Exists"}]))
    world.run()
    world.add(tainted)
    world.run(for_s=30)
    assert _attempts(world, "large") == n_attempts
