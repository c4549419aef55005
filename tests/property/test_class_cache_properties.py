"""The class cache changes the speed of decisions, never an answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.config import default, load
from kubesched.engine.build import build_loop
from kubesched.engine.class_cache.pod_class import PodClass
from kubesched.engine.select import Seeded
from kubesched.framework import OK, Cycle, Handle, NodeInfo, NodeTable, PodInfo, PreFilterResult, Status
from kubesched.framework.status import SKIP
from kubesched.model import manifests
from kubesched.model.core import Pod
from kubesched.plugins.registry import REGISTRY
from kubesched.testing import make, strategies
from kubesched.testing.make import Manifest
from kubesched.testing.world import World


@st.composite
def _histories(draw: st.DrawFn) -> list[tuple[str, Manifest]]:
    """Nodes, then pods of a few kinds in many copies, with nodes and pods that change and go in between."""
    names = [f"n{i}" for i in range(draw(st.integers(2, 5)))]
    history = [("put", draw(strategies.nodes(name))) for name in names]
    kinds = [draw(strategies.pods(f"kind{i}", st.just(""))) for i in range(draw(st.integers(1, 3)))]
    for number in range(draw(st.integers(4, 14))):
        step = draw(st.integers(0, 11))
        if step == 0:
            history.append(("put", draw(strategies.nodes(draw(st.sampled_from(names))))))
        elif step == 1:
            history.append(("put", draw(strategies.pods(f"other{number}", st.sampled_from(names)))))
        elif step == 2:
            history.append(("delete", {}))
        else:
            kind = draw(st.sampled_from(kinds))
            metadata = {**kind["metadata"], "name": f"p{number}", "uid": f"uid-{number}"}
            history.append(("put", {**kind, "metadata": metadata}))
    return history


def _outcome(history: list[tuple[str, Manifest]], *, keeps_classes: bool) -> dict[str, Any]:
    world = World(build_loop(default(), Seeded(1), keeps_classes=keeps_classes))
    for verb, manifest in history:
        if verb == "delete":
            running = sorted(key for key, pod in world.pods.items() if pod.spec.node_name)
            if running:
                world.delete(world.pods[running[0]])
        else:
            world.add(*manifests.from_dicts([manifest]).objects)
        world.run(for_s=2)
    world.run(for_s=60)
    notes = [(event.pod, event.reason, event.note) for event in world.events]
    return {"bound": world.bound, "evicted": world.evicted, "notes": notes}


@settings(max_examples=100, deadline=None)
@given(_histories())
def test_with_the_cache_off_every_decision_is_the_same(history: list[tuple[str, Manifest]]) -> None:
    kept = _outcome(history, keeps_classes=True)
    event(f"bound: {min(len(kept['bound']), 5)}, evictions: {bool(kept['evicted'])}")
    assert kept == _outcome(history, keeps_classes=False)


def test_the_comparison_sees_a_row_that_was_not_brought_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: changed rows are not asked about again."""
    history = [("put", make.node(name, cpu=2)) for name in "ab"]
    history += [("put", make.pod(f"p{i}", cpu=1)) for i in range(4)]
    right = _outcome(history, keeps_classes=True)
    assert right == _outcome(history, keeps_classes=False)
    monkeypatch.setattr(PodClass, "_refresh_row", lambda self, row: None)
    assert _outcome(history, keeps_classes=True) != right


def test_classes_are_really_kept() -> None:
    world = World(build_loop(default(), Seeded(1)))
    world.add(*manifests.from_dicts([make.node("a"), make.node("b"), *(make.pod(f"p{i}") for i in range(5))]).objects)
    world.run()
    scheduler = world.loop.schedulers["default-scheduler"]
    assert scheduler.n_decided_by_class == 4  # all but the first
    assert all(isinstance(pod, Pod) for pod in world.pods.values())


class Moody:
    """A plugin from outside whose silence depends on the pods there are, and that does not say so."""

    name = "Moody"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(OK if nodes.pod_counts.sum() >= 3 else SKIP)

    def filter_node(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("enough")


def test_a_plugin_that_does_not_say_what_it_depends_on_is_asked_for_every_pod() -> None:
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Moody"}]}}}],
    }
    registry = REGISTRY.merged_with({"Moody": Moody})
    world = World(build_loop(load(config, "test"), Seeded(1), registry=registry))
    world.add(*manifests.from_dicts([make.node("a"), *(make.pod(f"p{i}") for i in range(6))]).objects)
    world.run()
    assert len(world.bound) == 3
