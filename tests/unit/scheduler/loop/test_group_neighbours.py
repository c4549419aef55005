"""Situations next to those that a real kube-scheduler has settled, with the outcome that its source gives: numbers
varied, pods late or deleted or gated, gates on one by one. Each is played with v1.36's flaws and without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from group_worlds import ALPHA, GANGS, PREEMPTION, TOPOLOGY, add, bound, group, group_world, members, node, pod, told

from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.scheduling import PodGroup

_WAITING = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
_NOT_ENOUGH_CPU = "Insufficient cpu"
_REFUSED = "not eligible due to workload aware preemption enabled"
_GROUP = "pod group is unschedulable"
_SCHEDULED = ("True", "Scheduled", "")


def _unschedulable(message: str = _GROUP) -> tuple[str, str, str]:
    return "False", "Unschedulable", message


@dataclass
class _Situation:
    id: str
    gates: tuple[str, ...]
    objects: list[KubeObject]
    n_bound: int
    condition: tuple[str, str, str] | None
    late: list[KubeObject] = field(default_factory=list)
    goes: tuple[str, ...] = ()
    """Pods that are deleted before the late ones come."""
    told: dict[str, str] = field(default_factory=dict)
    """By pod, a part of what it is told."""
    n_evicted: int = 0
    config: dict[str, Any] = field(default_factory=dict)


def _running(name: str, where: str, group: str = "", priority: int = 100, cpu: str = "1") -> KubeObject:
    return pod(name, group, cpu=cpu, priority=priority, nodeName=where)


_SITUATIONS = [
    _Situation("fewer pods than minCount", GANGS, [node(), group(gang=3), *members("g", 2)], 0, None),
    _Situation("as many pods as minCount", GANGS, [node(), group(gang=3), *members("g", 3)], 3, _SCHEDULED),
    _Situation(
        "more pods than fit, enough for minCount",
        GANGS,
        [node(cpu="2"), group(gang=2), *members("g", 4)],
        2,
        _SCHEDULED,
        told={"g-2": _NOT_ENOUGH_CPU, "g-3": _NOT_ENOUGH_CPU},
    ),
    _Situation(
        "one pod short of minCount",
        GANGS,
        [node(cpu="2"), group(gang=3), *members("g", 4)],
        0,
        _unschedulable(),
        told={"g-0": _WAITING, "g-1": _WAITING, "g-2": _NOT_ENOUGH_CPU, "g-3": _NOT_ENOUGH_CPU},
    ),
    _Situation("minCount of 1", GANGS, [node(cpu="1"), group(gang=1), *members("g", 3)], 1, _SCHEDULED),
    _Situation(
        "a late pod of a scheduled gang fits",
        GANGS,
        [node(), group(gang=2), *members("g", 2)],
        3,
        _SCHEDULED,
        late=[pod("late", "g")],
    ),
    _Situation(
        "a late pod of a scheduled gang does not fit",
        GANGS,
        [node(cpu="2"), group(gang=2), *members("g", 2)],
        2,
        _SCHEDULED,
        late=[pod("late", "g")],
        told={"late": _NOT_ENOUGH_CPU},
    ),
    _Situation(
        "a late pod completes a gang",
        GANGS,
        [node(), group(gang=3), *members("g", 2)],
        3,
        _SCHEDULED,
        late=[pod("late", "g")],
    ),
    _Situation(
        "a pod goes, and the rest is held back",
        GANGS,
        [node(cpu="1"), group(gang=3), *members("g", 3)],
        0,
        _unschedulable(),
        goes=("g-1",),
        late=[node("large")],
    ),
    _Situation(
        "a pod goes that the gang does not need",
        GANGS,
        [node(cpu="1"), group(gang=2), *members("g", 3)],
        2,
        _SCHEDULED,
        goes=("g-0",),
        late=[node("large")],
    ),
    _Situation(
        "a gated pod counts for the gang, and is not tried",
        GANGS,
        [node(), group(gang=3), *members("g", 2), pod("gated", "g", schedulingGates=[{"name": "x"}])],
        0,
        _unschedulable(),
        told={"g-0": _WAITING, "g-1": _WAITING, "gated": "gated"},
    ),
    _Situation(
        "a gated pod that the gang does not need",
        GANGS,
        [node(), group(gang=2), *members("g", 2), pod("gated", "g", schedulingGates=[{"name": "x"}])],
        2,
        _SCHEDULED,
    ),
    _Situation(
        "a pod that runs already counts",
        GANGS,
        [node(), group(gang=3), _running("g-0", "n", "g"), pod("g-1", "g"), pod("g-2", "g")],
        3,
        _SCHEDULED,
    ),
    _Situation(
        "the largest pod first, by priority",
        GANGS,
        [node(cpu="3"), group(gang=2), pod("small-0", "g"), pod("small-1", "g"), pod("large", "g", "2", 200)],
        2,
        _SCHEDULED,
        told={"small-1": _NOT_ENOUGH_CPU},
    ),
    _Situation(
        "a pod that fits nowhere does not stop the others",
        GANGS,
        [node(cpu="2"), group(gang=2), pod("huge", "g", "8", 200), *members("g", 2)],
        2,
        _SCHEDULED,
        told={"huge": _NOT_ENOUGH_CPU},
    ),
    _Situation(
        "host ports keep mates apart",
        GANGS,
        [
            node(),
            group(gang=2),
            *[
                pod(f"g-{i}", "g", containers=[{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}])
                for i in (0, 1)
            ],
        ],
        0,
        _unschedulable(),
        told={"g-0": _WAITING, "g-1": "didn't have free ports"},
    ),
    _Situation(
        "of two gangs the first is bound",
        GANGS,
        [node(cpu="3"), group(gang=2), *members("g", 2), group("h", gang=2), *members("h", 2)],
        2,
        _SCHEDULED,
        told={"h-0": _WAITING, "h-1": _NOT_ENOUGH_CPU},
    ),
    _Situation(
        "of two gangs the one with the more important pods is bound",
        GANGS,
        [group(gang=2), *members("g", 2), group("h", gang=2), *members("h", 2, priority=200)],
        2,
        _unschedulable(),
        late=[node(cpu="3")],
    ),
    _Situation(
        "a basic group takes what it gets",
        GANGS,
        [node(cpu="2"), group(), *members("g", 3)],
        2,
        _SCHEDULED,
        told={"g-2": _NOT_ENOUGH_CPU},
    ),
    _Situation(
        "a basic group of which nothing fits",
        GANGS,
        [node(cpu="1"), group(), *members("g", 2, cpu="2")],
        0,
        _unschedulable(),
    ),
    # -- gates one by one ----------------------------------------------------------------------------------------------
    _Situation("all gates off", (), [node(cpu="2"), group(gang=3), *members("g", 3)], 2, None),
    _Situation(
        "only GenericWorkload: every group is basic",
        ("GenericWorkload",),
        [node(cpu="2"), group(gang=3), *members("g", 3)],
        2,
        _SCHEDULED,
    ),
    _Situation(
        "only GenericWorkload: a missing PodGroup holds nobody back",
        ("GenericWorkload",),
        [node(), *members("g", 3)],
        3,
        None,
    ),
    _Situation("a missing PodGroup", GANGS, [node(), *members("g", 3)], 0, None),
    _Situation(
        "a constraint without the gate",
        GANGS,
        [node("a", "1", rack="r0"), node("b", "1", rack="r1"), group(gang=2, rack="rack"), *members("g", 2)],
        2,
        _SCHEDULED,
    ),
    # -- topology ------------------------------------------------------------------------------------------------------
    _Situation(
        "a constraint with the gate",
        TOPOLOGY,
        [node("a", "1", rack="r0"), node("b", "1", rack="r1"), group(gang=2, rack="rack"), *members("g", 2)],
        0,
        _unschedulable(f"0/2 placements are available, first placement status: {_GROUP}"),
        told={"g-0": _WAITING, "g-1": _NOT_ENOUGH_CPU},
    ),
    _Situation(
        "no node has the label",
        TOPOLOGY,
        [node(), group(gang=2, rack="rack"), *members("g", 2)],
        0,
        _unschedulable("no feasible placements found"),
        told={"g-0": "no feasible placements found", "g-1": "no feasible placements found"},
    ),
    _Situation(
        "nodes without the label are no placement",
        TOPOLOGY,
        [node("bare", "8"), node("a", "1", rack="r0"), group(gang=2, rack="rack"), *members("g", 2)],
        0,
        _unschedulable(f"0/1 placements are available, first placement status: {_GROUP}"),
    ),
    _Situation(
        "a label whose value is empty is a rack, too",
        TOPOLOGY,
        [node("a", "2", rack=""), group(gang=2, rack="rack"), *members("g", 2)],
        2,
        _SCHEDULED,
    ),
    _Situation(
        "no constraint, with the gate",
        TOPOLOGY,
        [node("a", "1", rack="r0"), node("b", "1"), group(gang=2), *members("g", 2)],
        2,
        _SCHEDULED,
    ),
    _Situation(
        "a pod that runs pins the rack",
        TOPOLOGY,
        [
            node("a", "2", rack="r0"),
            node("b", "8", rack="r1"),
            group(gang=2, rack="rack"),
            _running("g-0", "a", "g"),
            pod("g-1", "g"),
            pod("g-2", "g"),
        ],
        2,
        _SCHEDULED,
        told={"g-2": _NOT_ENOUGH_CPU},
    ),
    _Situation(
        "pods that run in two racks",
        TOPOLOGY,
        [
            node("a", "2", rack="r0"),
            node("b", "2", rack="r1"),
            group(gang=2, rack="rack"),
            _running("g-0", "a", "g"),
            _running("g-1", "b", "g"),
            pod("g-2", "g"),
        ],
        2,
        (
            "False",
            "SchedulerError",
            "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: r0, r1",
        ),
    ),
    _Situation(
        "a topology preempts nobody",
        TOPOLOGY,
        [node("a", "2", rack="r0"), _running("low", "a", priority=0), group(gang=2, rack="rack"), *members("g", 2)],
        1,
        _unschedulable(f"0/1 placements are available, first placement status: {_GROUP}"),
        told={"g-1": "not eligible due to placement-based pod group scheduling limitation"},
    ),
    # -- preemption ----------------------------------------------------------------------------------------------------
    _Situation(
        "the group's priority counts: too low",
        PREEMPTION,
        [node(cpu="2"), _running("low", "n", priority=10), group(gang=2, priority=10), *members("g", 2)],
        1,
        _unschedulable(f"{_GROUP}, No preemption victims found for incoming preemptor"),
        told={"g-1": _REFUSED},
    ),
    _Situation(
        "the group's priority counts: enough",
        PREEMPTION,
        [node(cpu="2"), _running("low", "n", priority=10), group(gang=2, priority=11), *members("g", 2, priority=0)],
        2,
        _SCHEDULED,
        n_evicted=1,
    ),
    _Situation(
        "victims are not enough",
        PREEMPTION,
        [
            node(cpu="2"),
            _running("low", "n", priority=0),
            _running("high", "n", priority=900),
            group(gang=2, priority=100),
            *members("g", 2),
        ],
        2,
        _unschedulable(f"{_GROUP}, {_GROUP}"),
    ),
    _Situation(
        "one pod that never preempts",
        PREEMPTION,
        [
            node(cpu="2"),
            _running("low", "n", priority=0),
            group(gang=2, priority=100),
            pod("g-0", "g"),
            pod("g-1", "g", preemptionPolicy="Never"),
        ],
        1,
        _unschedulable(f"{_GROUP}, not eligible due to preemptionPolicy=Never."),
    ),
    _Situation(
        "a constraint, with preemption by groups",
        PREEMPTION,
        [
            node(cpu="2"),
            _running("low", "n", priority=0),
            group(gang=2, priority=100, rack="rack"),
            *members("g", 2),
        ],
        1,
        _unschedulable(
            f"{_GROUP}, workload aware preemption is not supported for pod groups with scheduling constraints"
        ),
    ),
    _Situation(
        "without the plugin",
        PREEMPTION,
        [node(cpu="1"), group(gang=2, priority=100), *members("g", 2)],
        0,
        _unschedulable(f"{_GROUP}, default preemption plugin is not registered, workload aware preemption is disabled"),
        config={"profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}]},
    ),
    _Situation(
        "a basic group that fits in part preempts for the rest when it is tried again",
        PREEMPTION,
        [node(cpu="2"), _running("low", "n", priority=0), group(priority=100), *members("g", 2)],
        2,
        _SCHEDULED,
        n_evicted=1,
    ),
    _Situation(
        "a whole group of victims leaves for one pod's room",
        PREEMPTION,
        [
            node(cpu="3"),
            group("v", disruptionMode="PodGroup", priority=0),
            *[_running(f"v-{i}", "n", "v", priority=0) for i in range(3)],
            group(gang=1, priority=100),
            *members("g", 1),
        ],
        1,
        _SCHEDULED,
        n_evicted=3,
    ),
]


@pytest.mark.parametrize("emulate", [None, ALPHA], ids=["mended", "alpha"])
@pytest.mark.parametrize("situation", [pytest.param(one, id=one.id) for one in _SITUATIONS])
def test_situation(situation: _Situation, emulate: str | None) -> None:
    world = group_world(*situation.gates, emulate=emulate, config=situation.config)
    add(world, *situation.objects)
    world.run(for_s=0 if situation.late else 30)
    for name in situation.goes:
        world.delete(world.pods[PodKey(f"d/{name}")])
    add(world, *situation.late)
    world.run(for_s=30)
    condition = world.objects.of(PodGroup).get("d/g")
    shown = condition and condition.condition("PodGroupScheduled")
    assert len(bound(world)) == situation.n_bound
    assert (shown and (shown.status, shown.reason, shown.message)) == situation.condition
    assert len(world.evicted) == situation.n_evicted
    for name, message in situation.told.items():
        assert message in told(world, name)
