"""Bindings decided again in the state that they were made in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from recorded_runs import configuration, manifests, recorded_run, write

from kubesched.k8s.model.core import Pod
from kubesched.simulator.recording.anonymous import Anonymiser
from kubesched.simulator.recording.lines import BindingSeen
from kubesched.simulator.recording.reader import BoundSeen, ObjectSeen, Recorded, RecordingReader
from kubesched.simulator.replay.agreement import Agreement
from kubesched.simulator.replay.judge import AGREEMENT, BindingJudge, BindingVerdict
from kubesched.simulator.replay.library import judged, open_replay
from kubesched.simulator.replay.suspects import ConfigChange

_PACKED = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
            ],
        }
    ],
}
_NO_SPREAD = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}}}],
}


@pytest.fixture(scope="module")
def events() -> list[Recorded]:
    return recorded_run(manifests(9))


def _judge(events: list[Recorded], document: object = None) -> Agreement:
    return judged(BindingJudge(configuration(document)), events)


def test_a_scheduler_agrees_with_itself(events: list[Recorded]) -> None:
    found = _judge(events)
    assert found.n_decided > 100
    assert found.n_agreed == found.n_decided
    assert found.headline == f"Agrees in all {found.n_decided} decisions."


def test_in_a_cluster_where_searches_are_cut_short_it_agrees_too() -> None:
    found = _judge(recorded_run(manifests(130), until_s=100.0))
    assert found.n_agreed == found.n_decided > 30


def test_another_scoring_strategy_is_found_and_named() -> None:
    found = _judge(recorded_run(manifests(9), _PACKED))
    assert found.counts[BindingVerdict.DIFFERS] > 5
    assert {plugin for _, plugin, _ in found.groups} & {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
    first = found.differences[0]
    assert first.ours != first.node and {gap.plugin for gap in first.scores} >= {"NodeResourcesFit"}
    assert "NodeResourcesFit" in str(found)


def test_a_missing_filter_is_found_and_named() -> None:
    lasting = re.sub(r", annotations: {kubesched.dev/duration: \d+s}", "", manifests(9))
    lasting = lasting.replace("replicas: 12", "replicas: 60")
    found = _judge(recorded_run(lasting, _NO_SPREAD))
    infeasible = [group for group in found.groups if group[0] is BindingVerdict.INFEASIBLE]
    assert {plugin for _, plugin, _ in infeasible} == {"PodTopologySpread"}
    assert "node(s) didn't match pod topology spread constraints" in infeasible[0][2]


def _lasting() -> str:
    """More pods, which do not end."""
    lasting = re.sub(r", annotations: {kubesched.dev/duration: \d+s}", "", manifests(9))
    return lasting.replace("replicas: 12", "replicas: 60").replace("replicas: 6\n", "replicas: 40\n")


def _planted(kind: str) -> dict[str, Any]:
    """A scheduler that is not as ours, and what names it."""
    weights: dict[str, Any] = {
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 9}]}}}]
    }
    missing: dict[str, Any] = {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}}]}
    base = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    planted: dict[str, dict[str, Any]] = {
        "other weights": {"document": base | weights},
        "a missing score plugin": {"document": base | missing},
        "a missing filter": {"document": _NO_SPREAD},
        "v1.19": {"emulate": "1.19"},
        "v1.13": {"emulate": "1.13"},
    }
    return planted[kind]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("other weights", {"InterPodAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"}),
        ("a missing score plugin", {"InterPodAffinity"}),
        ("a missing filter", {"PodTopologySpread"}),
        ("v1.19", {"InterPodAffinity", "NodeResourcesFit", "PodTopologySpread", "NodeResourcesBalancedAllocation"}),
        ("v1.13", {"InterPodAffinity", "NodeResourcesFit", "PodTopologySpread", "NodeResourcesBalancedAllocation"}),
    ],
)
def test_a_planted_change_is_found_and_named_within_200_decisions(kind: str, names: set[str]) -> None:
    events = recorded_run(_lasting(), **_planted(kind))
    judge = BindingJudge(configuration())
    found = [one for event in events for one in judge.feed(event)] + list(judge.finish())
    other = [number for number, one in enumerate(found, 1) if one.verdict not in AGREEMENT]
    assert other and other[0] <= 200
    assert {one.plugin for one in found if one.verdict not in AGREEMENT} <= names


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (
            "a missing score plugin",
            "One change would explain 8 of 8: there, the scheduler may run without InterPodAffinity",
        ),
        (
            "a missing filter",
            "One change would explain 15 of 15: there, the scheduler may run without PodTopologySpread",
        ),
    ],
)
def test_the_change_that_explains_most_is_named(kind: str, told: str) -> None:
    assert _judge(recorded_run(_lasting(), **_planted(kind))).suspects == [told]


def test_another_weight_is_named() -> None:
    changes = _judge(recorded_run(_lasting(), **_planted("other weights"))).changes
    assert changes[ConfigChange("NodeResourcesFit", 9, 1)] == max(changes.values())


def test_a_plugin_that_is_missing_here_is_named() -> None:
    found = _judge(recorded_run(_lasting()), _planted("a missing score plugin")["document"])
    assert list(found.changes) == [ConfigChange("InterPodAffinity", 2, 0)]
    assert str(ConfigChange("InterPodAffinity", 2, 0)) == "with weight 2 of InterPodAffinity"


def test_pods_of_other_schedulers_do_not_count(events: list[Recorded]) -> None:
    renamed: list[Recorded] = [
        ObjectSeen(event.at_s, replace(event.item, spec=replace(event.item.spec, scheduler_name="theirs")))
        if isinstance(event, ObjectSeen) and isinstance(event.item, Pod)
        else event
        for event in events
    ]
    found = _judge(renamed)
    assert found.n_decided == 0 and found.counts[BindingVerdict.FOREIGN] > 100
    assert found.headline.startswith("No decision to compare")


def test_a_pod_that_comes_with_its_node_is_foreign(events: list[Recorded]) -> None:
    bound = BoundSeen(events[-1].at_s, "shop/unseen", BindingSeen("node-1"))
    found = _judge([*events, bound])
    assert found.counts[BindingVerdict.FOREIGN] == 1


def test_bindings_that_are_seen_out_of_order_are_stale_and_not_different(events: list[Recorded]) -> None:
    """Every binding trades places with the next one, as when they overlap."""
    pairs: list[list[Recorded]] = []
    for event in events:
        if isinstance(event, BoundSeen):
            pairs.append([event])
        elif pairs and len(pairs[-1]) == 1 and isinstance(event, ObjectSeen):
            pairs[-1].append(event)
    order = {id(one): at for at, one in enumerate(events)}
    mixed: list[Recorded] = list(events)
    for first, second in zip(pairs[::2], pairs[1::2], strict=False):
        if len(first) == len(second) == 2 and first[0].at_s == second[0].at_s:
            for a, b in zip(first, second, strict=True):
                mixed[order[id(a)]], mixed[order[id(b)]] = b, a
    assert mixed != events
    found = _judge(mixed)
    assert found.n_agreed == found.n_decided


def test_a_recording_gives_what_the_run_gave(events: list[Recorded], tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl.gz", events)
    assert open_replay(path, configuration()).to_dict() == _judge(events).to_dict()


def test_an_anonymised_recording_is_decided_alike(events: list[Recorded], tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl.gz", events, Anonymiser(b"key"))
    found = open_replay(path, configuration())
    assert found.counts == _judge(events).counts
    names = {item.item.key for item in RecordingReader(path) if isinstance(item, ObjectSeen)}
    assert not any("web" in name or "shop" in name or "node" in name for name in names)


def test_only_the_time_that_was_asked_for_is_judged(events: list[Recorded], tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl.gz", events)
    begin_s = events[0].at_s
    early = open_replay(path, configuration(), to_s=begin_s + 30)
    late = open_replay(path, configuration(), from_s=begin_s + 30.001)
    assert early.n_decided and late.n_decided
    assert early.n_decided + late.n_decided == _judge(events).n_decided
