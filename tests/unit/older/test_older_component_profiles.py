"""Component configurations under emulation: merged by the rule of their time."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.config import ConfigError
from kubesched.config.older import Emulation, emulate, generation_of
from kubesched.config.older.refusal import RefusedConfigurationError

GROUP = "kubescheduler.config.k8s.io"


def emulated(version: str, api: str, **fields: Any) -> Emulation:
    generation = generation_of(version)
    assert generation is not None
    return emulate(generation, config={"apiVersion": f"{GROUP}/{api}", "kind": "KubeSchedulerConfiguration", **fields})


def test_enabled_plugins_come_after_those_that_were_not_disabled() -> None:
    score = {"disabled": [{"name": "ImageLocality"}], "enabled": [{"name": "NodeLabel", "weight": 7}]}
    config = [{"name": "NodeLabel", "args": {"presentLabelsPreference": ["disk"]}}]
    found = emulated("1.19", "v1beta1", profiles=[{"plugins": {"score": score}, "pluginConfig": config}])
    [profile] = found.profiles
    assert "ImageLocality" not in [plugin.name for plugin in profile.scores]
    last = profile.scores[-1]
    assert (last.name, last.weight, last.args) == ("NodeLabel", 7, {"presentLabelsPreference": ["disk"]})


def test_a_star_disables_all_of_a_point() -> None:
    [profile] = emulated("1.19", "v1beta1", profiles=[{"plugins": {"score": {"disabled": [{"name": "*"}]}}}]).profiles
    assert profile.scores == ()
    assert profile.filters


def test_each_profile_has_its_name() -> None:
    found = emulated("1.19", "v1beta1", profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}])
    assert [profile.scheduler_name for profile in found.profiles] == ["a", "b"]


def test_preemption_can_be_turned_off() -> None:
    off = {"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}
    assert not emulated("1.19", "v1beta1", profiles=[off]).profiles[0].preempts
    assert not emulated("1.17", "v1alpha1", disablePreemption=True).profiles[0].preempts


def test_v1alpha1_names_provider_weight_and_scheduler() -> None:
    found = emulated(
        "1.17",
        "v1alpha1",
        schedulerName="mine",
        hardPodAffinitySymmetricWeight=9,
        algorithmSource={"provider": "ClusterAutoscalerProvider"},
    )
    [profile] = found.profiles
    assert profile.scheduler_name == "mine"
    by_kind = {plugin.kind: plugin for plugin in profile.scores}
    assert "NodeResourcesMostAllocated" in by_kind
    assert by_kind["InterPodAffinity"].args == {"hardPodAffinityWeight": 9}


def test_what_is_not_about_plugins_counts_too() -> None:
    assert emulated("1.19", "v1beta1", percentageOfNodesToScore=30).config.percentage_of_nodes_to_score == 30


def test_a_plugin_named_twice_was_refused() -> None:
    with pytest.raises(RefusedConfigurationError, match='plugin "ImageLocality" already registered as "ScorePlugin"'):
        emulated("1.19", "v1beta1", profiles=[{"plugins": {"score": {"enabled": [{"name": "ImageLocality"}]}}}])


def test_an_unknown_plugin_is_an_error_that_lists_what_exists() -> None:
    with pytest.raises(ConfigError, match=r'enabled\[0\]\.name: Unsupported value: "Mine".*"NodeLabel"'):
        emulated("1.19", "v1beta1", profiles=[{"plugins": {"filter": {"enabled": [{"name": "Mine"}]}}}])


@pytest.mark.parametrize(("version", "api"), [("1.19", "v1"), ("1.14", "v1beta1"), ("1.18", "v1beta1")])
def test_a_version_reads_only_what_it_knew(version: str, api: str) -> None:
    with pytest.raises(ConfigError, match="apiVersion: Unsupported value"):
        emulated(version, api)
