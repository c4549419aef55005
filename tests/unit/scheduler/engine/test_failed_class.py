"""A class that fits nowhere: kept from its first failure on, while rows open and are taken, and asked of changed rows
alone."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.framework import (
    CycleState,
    Handle,
    NodeInfo,
    NodeStatuses,
    PodInfo,
    PostFilterResult,
    Status,
)
from kubesched.framework.status import OK
from kubesched.framework.verdicts import Verdicts
from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import default, load
from kubesched.scheduler.engine.class_cache.failed_class import KeptRejections
from kubesched.scheduler.engine.filter import FilterOutcome, PluginVerdicts
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.score import ByName, Seeded
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing import make

_CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def _full_cluster(*nodes: make.Manifest, loop: Scheduler | None = None) -> Scheduler:
    loop = build_loop(default(), ByName()) if loop is None else loop
    pods = [make.pod(f"on-{name}", cpu=1, on=name) for name in "abc"]
    for item in manifests.from_dicts([*(nodes or (make.node(name, cpu=1) for name in "abc")), *pods]).objects:
        loop.put(item, 0.0)
    return loop


def _waiting(loop: Scheduler, name: str) -> PodInfo:
    (pod,) = manifests.from_dicts([make.pod(name, cpu=1, labels={"app": "web"})]).objects
    loop.put(pod, 0.0)
    return loop.cluster.pending[PodKey(f"default/{name}")]


def _end(loop: Scheduler, name: str) -> None:
    loop.remove(loop.cluster.placed[PodKey(f"default/{name}")].pod, 0.0)


def test_a_row_that_opens_is_taken_and_the_class_fits_nowhere_again() -> None:
    loop = _full_cluster()
    scheduler = loop.schedulers["default-scheduler"]
    first, second, third = (_waiting(loop, f"web-{number}") for number in (1, 2, 3))
    assert not scheduler.decide(first).node_name
    assert scheduler.n_decided_by_class == 0
    _end(loop, "on-b")
    decision = scheduler.decide(first)
    assert (decision.node_name, decision.n_evaluated, decision.n_feasible) == ("b", 3, 1)
    loop.cluster.assume(first, "b")
    assert scheduler.decide(second).message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert scheduler.n_decided_by_class == 2
    _end(loop, "on-a")
    _end(loop, "on-c")
    assert scheduler.decide(third).node_name == "a"


def test_only_rows_that_changed_are_asked_and_only_by_plugins_that_look_at_pods() -> None:
    loop = _full_cluster(make.node("a", cpu=1), make.node("b", cpu=1, unschedulable=True), make.node("c", cpu=1))
    scheduler = loop.schedulers["default-scheduler"]
    pod = _waiting(loop, "web")
    scheduler.decide(pod)
    asked: list[str] = []
    original = NodeResourcesFit.filter_node

    def noting(self: NodeResourcesFit, cycle: CycleState, info: PodInfo, node: NodeInfo) -> Status:
        asked.append(node.name)
        return original(self, cycle, info, node)

    for step in scheduler.profile.filter:
        if step.name == "NodeResourcesFit":
            plugin = scheduler.profile.plugins["NodeResourcesFit"]
            assert isinstance(plugin, NodeResourcesFit)
            object.__setattr__(step, "filter_node", noting.__get__(plugin))
    _end(loop, "on-b")  # cordoned: whatever pods it has, it takes none
    assert not scheduler.decide(pod).node_name
    assert asked == []
    _end(loop, "on-c")
    assert scheduler.decide(pod).node_name == "c"
    assert asked == ["c"]


def test_statuses_are_counted_by_kind() -> None:
    bits = np.array([[True, True, False, False], [False, True, True, False]])
    verdicts = Verdicts(("few cpus", "no memory"), bits, np.array([False, False, True, False]))
    nodes = Cluster.from_objects(manifests.from_dicts([make.node(name) for name in "abcd"]).objects).nodes
    outcome = FilterOutcome(nodes, ~verdicts.rejected, verdicts.unresolvable)
    outcome.by_plugin.append(PluginVerdicts("Fit", verdicts, None, verdicts.rejected))
    outcome.overrides[3] = Status.unschedulable("nominated").by("Ports")
    outcome.fits[3] = False
    kept = KeptRejections(outcome)
    assert [kept.status(row) for row in range(4)] == [outcome.status(row) for row in range(4)]
    assert kept.reason_counts() == outcome.reason_counts() == {"few cpus": 2, "no memory": 2, "nominated": 1}
    assert kept.rejecting_plugins() == outcome.rejecting_plugins() == ["Fit", "Ports"]
    kept.replace(3, OK)
    kept.replace(2, Status.unschedulable("few cpus").by("Fit"))
    assert kept.reason_counts() == {"few cpus": 3, "no memory": 1}
    assert kept.rejecting_plugins() == ["Fit"]
    assert not kept.unresolvable.any()


def test_many_reasons_make_many_kinds() -> None:
    """As from a plugin that answers node by node and names each."""
    cluster = Cluster.from_objects(manifests.from_dicts([make.node(f"n{i}") for i in range(40)]).objects)
    bits = np.eye(40, dtype=np.bool_)
    verdicts = Verdicts(tuple(f"reason {i}" for i in range(40)), bits, np.zeros(40, dtype=np.bool_))
    outcome = FilterOutcome(cluster.nodes, np.zeros(40, dtype=np.bool_), verdicts.unresolvable)
    outcome.by_plugin.append(PluginVerdicts("Names", verdicts, None, verdicts.rejected))
    kept = KeptRejections(outcome)
    assert [kept.status(row).reasons for row in range(40)] == [(f"reason {i}",) for i in range(40)]


class Undecided:
    """A plugin from outside that does not say that its answer lasts."""

    name = "Undecided"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        return PostFilterResult(Status.unschedulable("perhaps later"))


_REGISTRY = REGISTRY.merged_with({"Undecided": Undecided})


@pytest.mark.parametrize("has_outside_plugin", [False, True])
def test_post_filter_is_spared_as_long_as_nothing_changes_unless_a_plugin_may_change_its_mind(
    has_outside_plugin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    original = DefaultPreemption.post_filter

    def noting(self: DefaultPreemption, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        asked.append(pod.name)
        return original(self, cycle, pod, statuses)

    monkeypatch.setattr(DefaultPreemption, "post_filter", noting)
    enabled = [{"name": "Undecided"}] if has_outside_plugin else []
    config = {**_CONFIG, "profiles": [{"plugins": {"postFilter": {"enabled": enabled}}}]}
    loop = _full_cluster(loop=build_loop(load(config, "test"), Seeded(1), registry=_REGISTRY))
    scheduler = loop.schedulers["default-scheduler"]
    pods = [_waiting(loop, f"web-{number}") for number in range(5)]
    messages = {scheduler.decide(pod).message for pod in pods}
    assert len(messages) == 1
    assert asked == [pod.name for pod in pods] if has_outside_plugin else ["web-0", "web-1"]
    chance = scheduler.tie_break.offset(1_000_000)
    uncached = _full_cluster(
        loop=build_loop(load(config, "test"), Seeded(1), registry=_REGISTRY, keeps_classes=False)
    ).schedulers["default-scheduler"]
    assert {uncached.decide(pod).message for pod in pods} == messages
    assert uncached.tie_break.offset(1_000_000) == chance  # the same was drawn for every attempt
