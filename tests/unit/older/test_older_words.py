"""What pods were told then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from older_world import OlderWorld, volume_of_a_node, with_claim

from kubesched.framework.status import Status
from kubesched.k8s.model.meta import PodKey
from kubesched.older.config import EMULATED_VERSIONS
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.testing import make

every_version = pytest.mark.parametrize("version", EMULATED_VERSIONS)
BEFORE_1_19 = ("1.14", "1.17", "1.18")


@every_version
def test_an_unschedulable_pod_is_told_so_once(version: str) -> None:
    world = OlderWorld(version, make.node("a", cpu="1"), make.pod("big", cpu="2"))
    world.run(for_s=20.0)
    assert world.notes() == ["0/1 nodes are available: 1 Insufficient cpu."]
    assert world.condition("big") == ("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def test_every_attempt_is_written_as_a_probe_in_1_13_alone() -> None:
    def n_written(version: str) -> int:
        world = OlderWorld(version, make.node("a", cpu="1"), make.pod("big", cpu="2"))
        world.run()
        world.put(make.node("a", cpu="1", labels={"zone": "x"}))
        world.run(for_s=5.0)
        assert len(world.notes()) == 2
        assert {patch.is_probe for patch in world.patches} == {version == "1.13"}
        return len(world.patches)

    assert [n_written(version) for version in EMULATED_VERSIONS] == [2, 1, 1, 1, 1]


@every_version
def test_whatever_ends_the_search_is_called_unschedulable(version: str) -> None:
    world = OlderWorld(version, make.node("a"), make.pod("p", spec=with_claim("gone")))
    world.run()
    assert world.condition("p") == ("Unschedulable", 'persistentvolumeclaim "gone" not found')
    nowhere = OlderWorld(version, make.pod("p"))
    nowhere.run()
    assert nowhere.condition("p") == ("Unschedulable", "no nodes available to schedule pods")


def _cannot_bind(version: str) -> OlderWorld:
    world = OlderWorld(version, make.node("a"), make.pod("p"))
    world.binding_fails = 'nodes "a" not found'
    world.run()
    return world


@pytest.mark.parametrize("version", ["1.14", "1.17"])
def test_a_rejected_binding_is_told_by_the_event(version: str) -> None:
    world = _cannot_bind(version)
    assert world.notes() == ['Binding rejected: nodes "a" not found']
    assert world.condition("p") == ("SchedulerError", 'nodes "a" not found')


def test_in_1_13_the_reason_alone_tells_what_failed_late() -> None:
    world = _cannot_bind("1.13")
    assert world.notes() == ['Binding rejected: nodes "a" not found']
    assert world.condition("p") == ("BindingRejected", "")
    world = _cannot_bind_volume("1.13")
    assert world.condition("p") == ("VolumeBindingFailed", "")
    [note] = world.notes()
    assert note.endswith("the volume is locked")


def test_a_rejected_binding_names_its_plugin_later() -> None:
    told = 'plugin "DefaultBinder" failed to bind pod "default/p": nodes "a" not found'
    world = _cannot_bind("1.18")
    assert world.notes() == [f"Binding rejected: {told}"]
    assert world.condition("p") == ("SchedulerError", told)
    world = _cannot_bind("1.19")
    assert world.notes() == [f"Binding rejected: {told}"]
    assert world.condition("p") == ("SchedulerError", f"Binding rejected: {told}")


@every_version
def test_a_binding_that_an_extender_refuses_is_rejected_too(version: str) -> None:
    world = OlderWorld(
        version, make.node("a"), make.pod("p"), verbs=("bind",), serve=lambda _verb, _asked: {"Error": "not today"}
    )
    world.run()
    assert world.notes() == ["Binding rejected: not today"]
    message = {"1.13": "", "1.19": "Binding rejected: not today"}.get(version, "not today")
    assert world.condition("p") == ("BindingRejected" if version == "1.13" else "SchedulerError", message)


def _cannot_bind_volume(version: str) -> OlderWorld:
    world = OlderWorld(version, make.node("a"), *volume_of_a_node("a"), make.pod("p", spec=with_claim()))
    world.volume_fails = "the volume is locked"
    world.run()
    return world


@pytest.mark.parametrize("version", BEFORE_1_19)
def test_volumes_that_cannot_be_bound_have_a_reason_of_their_own(version: str) -> None:
    world = _cannot_bind_volume(version)
    reason, message = world.condition("p")
    assert reason == "VolumeBindingFailed"
    assert message.endswith("the volume is locked")
    assert "plugin" not in message
    assert world.notes() == [message]


def test_volumes_are_bound_by_a_plugin_in_1_19() -> None:
    world = _cannot_bind_volume("1.19")
    reason, message = world.condition("p")
    assert reason == "SchedulerError"
    assert message.startswith('error while running "VolumeBinding" prebind plugin for pod "p": ')
    assert message.endswith("the volume is locked")
    assert world.notes() == [message]


def _cannot_assume_volume(version: str, monkeypatch: pytest.MonkeyPatch) -> OlderWorld:
    """The volume was taken between the decision and the reservation."""
    monkeypatch.setattr(VolumeBinding, "reserve", lambda *_: Status.error("the volume is taken"))
    world = OlderWorld(version, make.node("a"), *volume_of_a_node("a"), make.pod("p", spec=with_claim()))
    world.run()
    return world


@pytest.mark.parametrize("version", ["1.13", *BEFORE_1_19])
def test_volumes_that_cannot_be_assumed(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = _cannot_assume_volume(version, monkeypatch)
    assert world.notes() == ["AssumePodVolumes failed: the volume is taken"]
    assert world.condition("p") == ("SchedulerError", "the volume is taken")


def test_volumes_are_assumed_by_a_plugin_in_1_19(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _cannot_assume_volume("1.19", monkeypatch)
    told = 'error while running Reserve in "VolumeBinding" reserve plugin for pod "p": the volume is taken'
    assert world.notes() == [told]
    assert world.condition("p") == ("SchedulerError", told)


@every_version
def test_reasons_of_extenders_stand_beside_the_others(version: str) -> None:
    def serve(_verb: str, asked: dict[str, Any]) -> dict[str, Any]:
        names: Sequence[str] = asked["NodeNames"]
        return {"NodeNames": [], "FailedNodes": {name: "no licence" for name in names if name != "silent"}}

    nodes = [make.node("small", cpu="1"), make.node("a"), make.node("b"), make.node("silent")]
    world = OlderWorld(version, *nodes, make.pod("p", cpu="2"), verbs=("filter",), serve=serve)
    world.run(for_s=20.0)
    assert world.notes() == ["0/4 nodes are available: 1 Insufficient cpu, 2 no licence."]


@every_version
def test_a_missing_claim_ends_the_search_before_extenders_are_asked(version: str) -> None:
    asked: list[str] = []

    def serve(verb: str, said: dict[str, Any]) -> dict[str, Any]:
        asked.append(verb)
        return {"NodeNames": said["NodeNames"]}

    items = [make.node("a"), make.pod("p", spec=with_claim("gone"))]
    world = OlderWorld(version, *items, verbs=("filter",), serve=serve)
    world.run()
    assert world.condition("p") == ("Unschedulable", 'persistentvolumeclaim "gone" not found')
    assert asked == []


@every_version
def test_victims_are_told_the_name_of_their_preemptor(version: str) -> None:
    world = OlderWorld(
        version,
        make.node("a", cpu="2"),
        make.pod("low", on="a", cpu="2", priority=1),
        make.pod("high", cpu="2", priority=10),
    )
    world.run(for_s=5.0)
    head = "by" if version in ("1.13", "1.14") else "Preempted by"
    assert world.notes("Preempted") == [f"{head} default/high on node a"]
    assert world.bound == {"default/high": "a"}


def test_what_is_no_failure_of_a_stage_keeps_todays_words() -> None:
    loop = OlderWorld("1.14", make.pod("p")).loop
    pod = loop.cluster.pending[PodKey("default/p")]
    assert loop.failures.words.of_status(pod, Status.error("ValueError: a bug")).note == "ValueError: a bug"
