"""What becomes of a group of three, by what Filter, PostFilter and Permit say of each; and what its pods are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from group_worlds import ALPHA, GANGS, TOPOLOGY, add, bound, condition, group, group_world, members, node, shown, told

from kubesched.framework.effects import Effect, PatchPodGroupStatus
from kubesched.framework.extension_points import PermitResult
from kubesched.framework.results import NominatingMode, PostFilterResult
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.engine.group_cycle import condition_of
from kubesched.scheduler.engine.observations import GroupDecided
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing.world import World, listen_for

_PASS, _REJECT, _ERROR, _WAIT, _NOMINATE = "pass", "reject", "error", "wait", "nominate"
_STATUSES = {
    _PASS: OK,
    _REJECT: Status.unschedulable("no"),
    _ERROR: Status.error("broken"),
    _WAIT: Status.wait("later"),
}


@dataclass
class _Script:
    """Answers by pod, for pods g-0, g-1 and g-2."""

    filter: tuple[str, str, str] = (_PASS,) * 3
    post_filter: tuple[str, str, str] = (_REJECT,) * 3
    permit: tuple[str, str, str] = (_PASS,) * 3
    reserved: list[str] = field(default_factory=list)

    def plugin(self) -> type:
        script = self

        class Scripted:
            name = "Scripted"

            def __init__(self, _args: object, _handle: object) -> None: ...

            def filter_node(self, _cycle: object, pod: Any, _node: object) -> Status:
                return _STATUSES[script.filter[int(pod.name[-1])]]

            def post_filter(self, _cycle: object, pod: Any, _statuses: object) -> PostFilterResult:
                said = script.post_filter[int(pod.name[-1])]
                if said == _NOMINATE:
                    return PostFilterResult(OK, NominatingMode.OVERRIDE, "n")
                return PostFilterResult(_STATUSES[said])

            def reserve(self, _cycle: object, pod: Any, _node_name: str) -> Status:
                script.reserved.append(pod.name)
                return OK

            def unreserve(self, _cycle: object, pod: Any, _node_name: str) -> None:
                script.reserved.remove(pod.name)

            def permit(self, _cycle: object, pod: Any, _node_name: str) -> PermitResult:
                return PermitResult(_STATUSES[script.permit[int(pod.name[-1])]], 300.0)

        return Scripted


_PROFILE = {
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "Scripted"}]},
                "postFilter": {"enabled": [{"name": "Scripted"}], "disabled": [{"name": "*"}]},
            }
        }
    ]
}


def _tried(script: _Script, gates: tuple[str, ...]) -> tuple[World, GroupDecided]:
    registry = REGISTRY.merged_with({"Scripted": script.plugin()})
    world = group_world(*gates, config=_PROFILE, registry=registry)
    found = listen_for(world.loop, GroupDecided)
    add(world, node(), group(), *members())
    world.loop.schedule_one(world.now_s)
    world.settle()
    return world, found[0]


@pytest.mark.parametrize("gates", [GANGS, TOPOLOGY], ids=["plain", "topology"])
@pytest.mark.parametrize(
    ("script", "code", "waits"),
    [
        pytest.param(_Script(), "Success", False, id="all feasible"),
        pytest.param(_Script(permit=(_WAIT, _WAIT, _PASS)), "Success", False, id="two wait"),
        pytest.param(_Script(permit=(_WAIT, _WAIT, _WAIT)), "Unschedulable", False, id="all wait"),
        pytest.param(_Script(permit=(_PASS, _PASS, _WAIT)), "Success", False, id="the last waits"),
        pytest.param(_Script(permit=(_WAIT, _REJECT, _PASS)), "Success", False, id="one waits, one is rejected"),
        pytest.param(
            _Script(filter=(_REJECT,) * 3, post_filter=(_NOMINATE,) * 3), "Unschedulable", True, id="all need evictions"
        ),
        pytest.param(
            _Script(filter=(_REJECT,) * 3, post_filter=(_NOMINATE,) * 3, permit=(_WAIT,) * 3),
            "Unschedulable",
            False,
            id="all need evictions, and wait",
        ),
        pytest.param(
            _Script(
                filter=(_REJECT, _PASS, _PASS), post_filter=(_NOMINATE, _REJECT, _REJECT), permit=(_WAIT, _WAIT, _PASS)
            ),
            "Unschedulable",
            True,
            id="one needs evictions, two fit",
        ),
        pytest.param(
            _Script(filter=(_REJECT, _REJECT, _PASS), post_filter=(_NOMINATE, _REJECT, _REJECT)),
            "Unschedulable",
            True,
            id="one needs evictions, one does not fit, one does",
        ),
        pytest.param(_Script(filter=(_REJECT,) * 3), "Unschedulable", False, id="none fits"),
        pytest.param(_Script(filter=(_PASS, _ERROR, _PASS)), "Error", False, id="a filter breaks"),
        pytest.param(_Script(permit=(_PASS, _ERROR, _PASS)), "Error", False, id="permit breaks"),
        pytest.param(
            _Script(filter=(_REJECT, _ERROR, _PASS), post_filter=(_NOMINATE, _REJECT, _REJECT)),
            "Error",
            False,
            id="a filter breaks after a pod that needs evictions",
        ),
        pytest.param(
            _Script(filter=(_REJECT, _PASS, _PASS), post_filter=(_NOMINATE,) * 3, permit=(_PASS, _ERROR, _PASS)),
            "Error",
            False,
            id="permit breaks after a pod that needs evictions",
        ),
    ],
)
def test_outcome_of_a_group(script: _Script, code: str, waits: bool, gates: tuple[str, ...]) -> None:
    script = _Script(script.filter, script.post_filter, script.permit)
    world, decided = _tried(script, gates)
    assert (decided.outcome.status.code.value, decided.outcome.waits_for_preemption) == (code, waits)
    n_bound = len(bound(world)) + len(world.loop.bindings)
    assert (n_bound > 0) == (code == "Success")
    if code != "Success":
        assert script.reserved == []  # all that was reserved in the trial was given back
        assert world.loop.cluster.n_pods == 0


def test_what_pods_are_told_when_the_group_breaks() -> None:
    world, _ = _tried(_Script(filter=(_PASS, _ERROR, _PASS)), GANGS)
    own = 'running "Scripted" filter plugin: broken'
    assert told(world, "g-1") == own
    assert told(world, "g-0") == told(world, "g-2") == f"failed to schedule other pod from a pod group: {own}"
    assert shown(world) == ("False", "SchedulerError", f"failed to schedule other pod from a pod group: {own}")


def test_what_pods_are_told_when_the_group_waits_for_evictions() -> None:
    script = _Script(filter=(_REJECT, _PASS, _PASS), post_filter=(_NOMINATE, _REJECT, _REJECT))
    world, _ = _tried(script, GANGS)
    waiting = "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert told(world, "g-0") == "0/1 nodes are available: 1 no."
    assert told(world, "g-1") == told(world, "g-2") == waiting
    assert {pod.status.nominated_node_name for pod in world.pods.values()} == {"n"}
    assert shown(world) == ("False", "Unschedulable", waiting)


def test_what_a_pod_is_told_whose_evictions_do_not_help_the_group() -> None:
    script = _Script(filter=(_REJECT,) * 3, post_filter=(_NOMINATE,) * 3, permit=(_WAIT,) * 3)
    world, _ = _tried(script, GANGS)
    text = "pod group is unschedulable, later, one or more plugins asked to wait and no plugin rejected pod"
    assert {told(world, f"g-{i}") for i in range(3)} == {text}
    assert {pod.status.nominated_node_name for pod in world.pods.values()} == {""}


def test_a_pod_that_permit_rejects_goes_back_alone() -> None:
    world, _ = _tried(_Script(permit=(_PASS, _REJECT, _PASS)), GANGS)
    world.run(for_s=0.5)
    assert set(bound(world)) == {"g-0", "g-2"}
    assert told(world, "g-1") == "0/1 nodes are available: 1 no."


@pytest.mark.parametrize("cpu", ["2", "3", "5"], ids=["too few fit", "just enough", "more than enough"])
@pytest.mark.parametrize("exists", [True, False], ids=["", "the group is gone when its turn comes"])
def test_permit_that_is_answered_by_counting_says_what_it_says_pod_by_pod(cpu: str, exists: bool) -> None:
    found = []
    for is_followed in (True, False):
        world = group_world(*GANGS)
        if is_followed:  # then Permit is asked about each
            listen_for(world.loop, GroupDecided)
        gang = group(gang=3)
        add(world, node(cpu=cpu), gang, *members(n=4))
        if not exists:
            world.loop.cluster.objects.pod_groups.pop("d/g")
        world.loop.schedule_one(world.now_s)
        world.settle()
        found.append((bound(world), [told(world, f"g-{i}") for i in range(4)], shown(world)))
    assert found[0] == found[1]
    assert len(found[0][0]) == (min(int(cpu), 4) if cpu != "2" and exists else 0)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (OK, ("True", "Scheduled", "")),
        (Status.unschedulable("a", "b"), ("False", "Unschedulable", "a, b")),
        (Status.unresolvable("a"), ("False", "Unschedulable", "a")),
        (Status.error("a"), ("False", "SchedulerError", "a")),
    ],
)
def test_what_an_attempt_says_of_its_group(status: Status, expected: tuple[str, str, str]) -> None:
    found = condition_of(status)
    assert (found.status, found.reason, found.message) == expected


def test_a_group_that_was_scheduled_stays_so() -> None:
    world = group_world(*GANGS)
    add(world, node(cpu="3"), group(gang=3), *members(n=3))
    world.run(for_s=1)
    before = condition(world)
    assert before is not None
    assert before.status == "True"
    add(world, *members("more", n=0), *[members(n=5)[3]])
    world.run(for_s=30)
    assert condition(world) == before
    assert told(world, "g-3").startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_the_condition_turns_once_and_keeps_its_time_until_then() -> None:
    world = group_world(*GANGS)
    add(world, node(cpu="2"), group(gang=3), *members())
    world.run(for_s=1)
    first = condition(world)
    assert first is not None
    version = world.objects.of(PodGroup)["d/g"].metadata.resource_version
    world.run(for_s=30)
    assert world.objects.of(PodGroup)["d/g"].metadata.resource_version == version  # the same is not written again
    add(world, node("more"))
    world.run(for_s=30)
    assert shown(world) == ("True", "Scheduled", "")


def test_a_group_that_was_just_scheduled_stays_so_before_the_watch_shows_it() -> None:
    world = group_world(*GANGS, emulate=ALPHA)
    add(world, node(cpu="2"), group(gang=2), *members(n=3))
    effects: list[Effect] = []
    while world.loop.schedule_one(world.now_s) and len(effects) < 20:
        effects += world.loop.take_effects()  # nobody carries them out
    written = [one.action.condition.status for one in effects if isinstance(one.action, PatchPodGroupStatus)]
    assert written == ["True"]
