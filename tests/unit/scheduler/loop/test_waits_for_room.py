"""Pods that could make room for themselves, but for a plugin that stands against the evictions: what brings them back.

Queueing hints are asked of the plugins that rejected the pod where it was tried. A plugin that rejects it only where
others would be evicted is not among them, so what changes its mind brings nobody back: such a pod waits its five
minutes. kube-scheduler v1.36.4 did the same in both of these worlds.
"""

from __future__ import annotations

import pytest

from kubesched.framework.effects import CallExtender, Failed
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default, load
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make
from kubesched.testing.make import HOSTNAME, ZONE, Manifest
from kubesched.testing.world import World

_IN_A = {ZONE: "a"}
_NEAR_WEB = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    make.affinity_term(ZONE, {"app": "web"}),
]}}}  # fmt: skip
_SPREAD = {"topologySpreadConstraints": [make.spread(HOSTNAME, labels={"app": "db"})]}


def _add(world: World, *items: Manifest) -> None:
    world.add(*manifests.from_dicts(items).objects)


def _full_world(spec: Manifest) -> World:
    """Room for the pod could be made on a, and a plugin other than NodeResourcesFit stands against it."""
    world = World(build_loop(default(), ByName()))
    _add(
        world,
        make.node("a", cpu=2, labels=_IN_A),
        make.node("b", cpu="500m", labels=_IN_A),
        make.pod("stays", on="a", cpu=1, priority=10, labels={"app": "db"}),
        make.pod("victim", on="a", cpu=1, labels={"app": "web"}),
        make.pod("p", cpu=1, priority=5, labels={"app": "db"}, spec=spec),
    )
    return world


@pytest.mark.parametrize(
    ("spec", "reason", "app"),
    [
        pytest.param(_NEAR_WEB, "node(s) didn't match pod affinity rules", "web", id="the victim is whom it wants"),
        pytest.param(_SPREAD, "node(s) didn't match pod topology spread constraints", "db", id="it would be too many"),
    ],
)
def test_what_would_let_a_pod_preempt_does_not_bring_it_back(spec: Manifest, reason: str, app: str) -> None:
    world = _full_world(spec)
    world.run()
    assert f"1 {reason}." in world.events[-1].note
    assert world.loop.queue.contents.unschedulable[0].rejectors == {"NodeResourcesFit"}
    _add(world, make.pod("help", on="b", cpu="100m", priority=10, labels={"app": app}))
    world.run(for_s=290)
    assert world.evicted == []
    world.run(for_s=60)
    assert world.evicted == ["default/victim"]
    assert world.bound == {"default/p": "a"}


def test_a_plugin_that_rejects_it_somewhere_does() -> None:
    world = _full_world(_NEAR_WEB)
    _add(world, make.node("c", cpu=2, labels={ZONE: "c"}))
    world.run()
    assert world.loop.queue.contents.unschedulable[0].rejectors == {"NodeResourcesFit", "InterPodAffinity"}
    _add(world, make.pod("help", on="b", cpu="100m", priority=10, labels={"app": "web"}))
    world.run(for_s=15)
    assert world.bound == {"default/p": "a"}


def test_after_an_extender_failed_no_plugin_has_to_be_asked() -> None:
    """An attempt that broke has no rejectors: when its backoff is over the pod is tried, whatever happened."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://extender.example", "filterVerb": "filter"}],
    }
    loop = build_loop(load(config, "test"), ByName())
    world = World(loop)
    _add(world, make.node("a", cpu=2, labels=_IN_A), make.pod("p", cpu=2, priority=5))
    loop.schedule_one(0.0)
    (call,) = [effect for effect in loop.take_effects() if isinstance(effect.action, CallExtender)]
    loop.answer(call.id, Failed("deadline exceeded"), 0.0)
    assert [queued.rejectors for queued in loop.queue.contents.backoff] == [frozenset()]
    _add(world, make.pod("victim", on="a", cpu=1))
    world.run(for_s=5)
    assert world.evicted == ["default/victim"]
