"""What must hold of pod groups, whatever the cluster: gangs are whole or not there, counting and classes change no
answer, and a trial leaves no trace."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.cluster.self_check import self_check
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.load import default
from kubesched.scheduler.engine.score import ByName
from kubesched.testing.world import World

_GANGS = ("GenericWorkload", "GangScheduling")
_GATES = (
    _GANGS,
    (*_GANGS, "TopologyAwareWorkloadScheduling"),
    (*_GANGS, "WorkloadAwarePreemption"),
    (*_GANGS, "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"),
)


def _object(kind: type[KubeObject], name: str, **fields: Any) -> KubeObject:
    return msgspec.convert({"metadata": {"name": name, "namespace": "" if kind is Node else "d"}, **fields}, kind)


@st.composite
def _clusters(draw: st.DrawFn) -> tuple[list[KubeObject], list[KubeObject]]:
    """What is there, and the groups that come."""
    there: list[KubeObject] = []
    for i in range(draw(st.integers(1, 6))):
        labels = {"rack": f"r{draw(st.integers(0, 3))}"} if draw(st.booleans()) or i else {}
        amounts = {"cpu": str(draw(st.integers(1, 4))), "memory": "8Gi", "pods": str(draw(st.integers(2, 9)))}
        node = _object(Node, f"n{i}", status={"allocatable": amounts})
        there.append(replace(node, metadata=replace(node.metadata, labels=labels)))
    low = draw(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2)), max_size=5))
    there += [_pod(f"low-{i}", cpu, priority) for i, (cpu, priority) in enumerate(low)]
    comes: list[KubeObject] = []
    for g in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 5))
        gang = draw(st.integers(0, n))
        priority = draw(st.integers(0, 4))
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": gang}} if gang else {"basic": {}}}
        spec["priority"] = priority
        spec["disruptionMode"] = draw(st.sampled_from(["Pod", "PodGroup"]))
        if draw(st.booleans()):
            spec["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
        comes.append(_object(PodGroup, f"g{g}", spec=spec))
        cpus = [draw(st.integers(1, 2))] * n if draw(st.booleans()) else [draw(st.integers(1, 2)) for _ in range(n)]
        comes += [_pod(f"g{g}-{i}", cpu, priority, f"g{g}") for i, cpu in enumerate(cpus)]
    return there, comes


def _pod(name: str, cpu: int, priority: int, group: str = "") -> KubeObject:
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu), "memory": "1Mi"}}}],
        "priority": priority,
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return _object(Pod, name, spec=spec)


class _Outcome:
    def __init__(
        self,
        cluster: tuple[list[KubeObject], list[KubeObject]],
        gates: tuple[str, ...],
        *,
        counts: bool = True,
        keeps_classes: bool = True,
    ) -> None:
        config = with_gates(default(), dict.fromkeys(gates, True))
        self.world = world = World(build_loop(config, ByName(), keeps_classes=keeps_classes))
        if not counts:
            for scheduler in world.loop.schedulers.values():
                scheduler.has_only_in_tree_plugins = False
        there, comes = cluster
        for item in there:
            world.objects.create(item)
        world.run()
        for item in comes:
            world.objects.create(item)
        world.run(for_s=60)
        pods = world.pods.values()
        self.bound = {pod.name: pod.spec.node_name for pod in pods}
        self.messages = {pod.name: pod.status.conditions for pod in pods}
        self.evicted = sorted(world.evicted)
        self.conditions = {key: group.status.conditions for key, group in world.objects.of(PodGroup).items()}

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, _Outcome)
        return all(getattr(self, name) == getattr(other, name) for name in _COMPARED)

    __hash__ = None  # type: ignore[assignment]


_COMPARED = ("bound", "messages", "evicted", "conditions")


@settings(max_examples=25, deadline=None)
@given(_clusters(), st.sampled_from(_GATES))
def test_counting_changes_no_answer(cluster: tuple[list[KubeObject], list[KubeObject]], gates: tuple[str, ...]) -> None:
    assert _Outcome(cluster, gates) == _Outcome(cluster, gates, counts=False)


@settings(max_examples=25, deadline=None)
@given(_clusters(), st.sampled_from(_GATES))
def test_classes_change_no_answer(cluster: tuple[list[KubeObject], list[KubeObject]], gates: tuple[str, ...]) -> None:
    assert _Outcome(cluster, gates) == _Outcome(cluster, gates, keeps_classes=False)


@settings(max_examples=25, deadline=None)
@given(_clusters(), st.sampled_from(_GATES))
def test_a_gang_is_whole_or_not_there(
    cluster: tuple[list[KubeObject], list[KubeObject]], gates: tuple[str, ...]
) -> None:
    """Unless somebody else evicted pods of it afterwards."""
    found = _Outcome(cluster, gates)
    nodes = {node.name: node for node in found.world.objects.of(Node).values()}
    for group in found.world.objects.of(PodGroup).values():
        mine = [pod for pod in found.world.pods.values() if pod.spec.scheduling_group is not None]
        placed = [p for p in mine if p.name.startswith(f"{group.name}-") and p.spec.node_name]
        was_disrupted = any(key.startswith(f"d/{group.name}-") for key in found.evicted)
        if not was_disrupted:
            assert not placed or len(placed) >= group.min_count
            if group.topology_key and "TopologyAwareWorkloadScheduling" in gates:
                assert len({nodes[pod.spec.node_name].labels.get("rack") for pod in placed}) <= 1


@settings(max_examples=25, deadline=None)
@given(_clusters(), st.sampled_from(_GATES))
def test_a_trial_leaves_no_trace(cluster: tuple[list[KubeObject], list[KubeObject]], gates: tuple[str, ...]) -> None:
    world = _Outcome(cluster, gates).world
    assert self_check(world.loop.cluster, world.objects) == []
