"""What a profile's plugins come to: order and weights at each extension point."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.scheduler.config import (
    EXTENSION_POINTS,
    Capabilities,
    ConfigError,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    NodeResourcesFitArgs,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    default,
    load,
    resolve,
    resolve_profiles,
)
from kubesched.scheduler.config.plugin_args import API_VERSION

PLUGINS: Capabilities = {
    "All": frozenset(EXTENSION_POINTS),
    "Sort": {"queueSort"},
    "Bind": {"bind"},
    "Score1": {"preScore", "score"},
    "Score2": {"score"},
    "Place": {"placementGenerate"},
    "Rank": {"placementScore"},
    "Idle": frozenset(),
}


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    """`"A B:5"` is plugin A, then plugin B with weight 5."""
    return PluginSet(_refs(enabled), _refs(disabled))


def _refs(text: str) -> tuple[PluginRef, ...]:
    pairs = (word.partition(":") for word in text.split())
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


def points_of(plugins: Plugins, capabilities: Capabilities = PLUGINS) -> dict[str, str]:
    """The points that have plugins, each as `"A B:5"`."""
    resolved = resolve(KubeSchedulerProfile("x", plugins=plugins), capabilities)
    assert tuple(resolved.points) == EXTENSION_POINTS
    return {
        point: " ".join(f"{plugin.name}:{plugin.weight}" if plugin.weight else plugin.name for plugin in found)
        for point, found in resolved.points.items()
        if found
    }


def messages_of(plugins: Plugins) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        resolve(KubeSchedulerProfile("x", plugins=plugins), PLUGINS, "profiles[0]", "f")
    return str(caught.value).splitlines()


def configuration(*profiles: dict[str, Any], **fields: Any) -> KubeSchedulerConfiguration:
    header = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    return load({**header, "profiles": list(profiles), **fields}, "f")


EVERYWHERE = dict.fromkeys(EXTENSION_POINTS, "All") | {"score": "All:1", "placementScore": "All:1"}


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(
            Plugins(multi_point=plugin_set("All:5")),
            EVERYWHERE | {"score": "All:5", "placementScore": "All:5"},
            id="a plugin of multiPoint runs wherever it can, with its weight",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("All Score1 Idle Rank")),
            EVERYWHERE | {"preScore": "All Score1", "score": "All:1 Score1:1", "placementScore": "All:1 Rank:1"},
            id="several plugins keep their order, and weight 0 counts as 1",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind Score1 Score2"), score=plugin_set(disabled="Score1")),
            {"queueSort": "Sort", "bind": "Bind", "preScore": "Score1", "score": "Score2:1"},
            id="a plugin disabled at a point runs at the others",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind Score1 Score2"), score=plugin_set("Score2:4", "*")),
            {"queueSort": "Sort", "bind": "Bind", "preScore": "Score1", "score": "Score2:4"},
            id="an asterisk at a point keeps multiPoint away from it",
        ),
        pytest.param(
            Plugins(
                multi_point=plugin_set("Sort Bind Score2 All Score1"),
                score=plugin_set("Score1 All"),
                queue_sort=plugin_set(disabled="All"),
            ),
            dict.fromkeys(EXTENSION_POINTS, "All")
            | {
                "queueSort": "Sort",
                "bind": "Bind All",
                "preScore": "All Score1",
                "score": "Score1:1 All:1 Score2:1",
                "placementScore": "All:1",
            },
            id="plugins named at the point go first, in the order given there",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind Score1"), score=plugin_set("Score2 Score1")),
            {"queueSort": "Sort", "bind": "Bind", "preScore": "Score1", "score": "Score1:1 Score2:1"},
            id="plugins named at the point alone go last",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind Score1:9 Score2:8"), score=plugin_set("Score2:5")),
            {"queueSort": "Sort", "bind": "Bind", "preScore": "Score1", "score": "Score2:5 Score1:9"},
            id="the weight given at the point is the one that counts",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind Score1:9"), score=plugin_set("Score1")),
            {"queueSort": "Sort", "bind": "Bind", "preScore": "Score1", "score": "Score1:1"},
            id="even if it is absent there",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind Score1", "Score1 *")),
            {"queueSort": "Sort", "bind": "Bind", "preScore": "Score1", "score": "Score1:1"},
            id="enabled beats disabled",
        ),
        pytest.param(
            Plugins(score=plugin_set("Score1"), queue_sort=plugin_set("Sort"), bind=plugin_set("Bind All")),
            {"queueSort": "Sort", "bind": "Bind All", "score": "Score1:1"},
            id="without multiPoint a plugin runs only where it is named",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind"), score=plugin_set("Score1:-2")),
            {"queueSort": "Sort", "bind": "Bind", "score": "Score1:-2"},
            id="a negative weight is let through",
        ),
    ],
)
def test_plugins_are_spread_over_the_points(plugins: Plugins, expected: dict[str, str]) -> None:
    assert points_of(plugins) == expected


def test_the_default_profile_comes_to_what_kube_scheduler_runs(capabilities: Capabilities) -> None:
    assert points_of(default().profiles[0].plugins, capabilities) == {
        "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption",
        "queueSort": "PrioritySort",
        "preFilter": "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding "
        "VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
        "filter": "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
        "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity "
        "DynamicResources NodeDeclaredFeatures",
        "postFilter": "DynamicResources DefaultPreemption",
        "preScore": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
        "NodeResourcesBalancedAllocation",
        "score": "TaintToleration:3 NodeAffinity:2 NodeResourcesFit:1 VolumeBinding:1 PodTopologySpread:2 "
        "InterPodAffinity:2 DynamicResources:2 NodeResourcesBalancedAllocation:1 ImageLocality:1",
        "reserve": "VolumeBinding DynamicResources",
        "preBind": "VolumeBinding DynamicResources",
        "bind": "DefaultBinder",
        "placementScore": "NodeResourcesFit:1",
    }


def test_a_resolved_profile_has_names_arguments_and_percentage(capabilities: Capabilities) -> None:
    config = configuration(
        {
            "schedulerName": "mine",
            "percentageOfNodesToScore": 30,
            "plugins": {
                "multiPoint": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": name} for name in ("PrioritySort", "DefaultBinder", "NodeName")],
                }
            },
            "pluginConfig": [{"name": "NodeName", "args": {"a": 1}}],
        }
    )
    (profile,) = resolve_profiles(config, capabilities)
    assert profile.scheduler_name == "mine"
    assert profile.percentage_of_nodes_to_score == 30
    assert profile.plugin_names == ("DefaultBinder", "NodeName", "PrioritySort")
    assert profile.plugin_args == {"NodeName": {"a": 1}}


KNOWN = "plugins that exist: All, Bind, Idle, Place, Rank, Score1, Score2, Sort"


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind Foo"), score=plugin_set("Bar")),
            [
                f'f: profiles[0].plugins.score.enabled: ScorePlugin "Bar" does not exist; {KNOWN}',
                f'f: profiles[0].plugins.multiPoint.enabled: Plugin "Foo" does not exist; {KNOWN}',
            ],
            id="plugins that do not exist",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind"), filter=plugin_set("Score1")),
            ['f: profiles[0].plugins.filter.enabled: plugin "Score1" does not extend FilterPlugin plugin'],
            id="a plugin at a point that it does not implement",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Bind"), queue_sort=plugin_set("Score1")),
            ['f: profiles[0].plugins.queueSort.enabled: plugin "Score1" does not extend QueueSortPlugin plugin'],
            id="plugins are not counted while some are wrong",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind"), score=plugin_set("Score1 Score1:2")),
            ['f: profiles[0].plugins.score.enabled: plugin "Score1" already registered as "ScorePlugin"'],
            id="a plugin twice at a point",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind Score1 Score1")),
            ['f: profiles[0].plugins.multiPoint.enabled: plugin "Score1" already registered as "PreScorePlugin"'],
            id="a plugin twice at multiPoint",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort All")),
            [
                "f: profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler name "
                '"x", but got 2'
            ],
            id="two queue sort plugins",
        ),
        pytest.param(
            Plugins(),
            [
                "f: profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler name "
                '"x", but got 0',
                'f: profiles[0].plugins.bind: at least one bind plugin is needed for profile with scheduler name "x"',
            ],
            id="nothing",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("All Place")),
            [
                "f: profiles[0].plugins.placementGenerate: at most one placement generate plugin is allowed "
                'for profile with scheduler name "x"'
            ],
            id="two plugins that propose placements",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind"), score=plugin_set(f"Score1:{2**62} Score2:{2**62}")),
            ["f: profiles[0].plugins.score: score plugins: total score of Score plugins could overflow"],
            id="weights that could overflow the total score",
        ),
        pytest.param(
            Plugins(multi_point=plugin_set("Sort Bind"), placement_score=plugin_set(f"Rank:{2**62}")),
            [
                "f: profiles[0].plugins.placementScore: placement score plugins: "
                "total score of Score plugins could overflow"
            ],
            id="weights that could overflow the score of placements",
        ),
    ],
)
def test_profiles_that_cannot_be_built_are_told_why(plugins: Plugins, expected: list[str]) -> None:
    assert messages_of(plugins) == expected


def test_the_greatest_total_weight_is_let_through() -> None:
    greatest = (2**63 - 1) // 100
    assert points_of(Plugins(multi_point=plugin_set("Sort Bind"), score=plugin_set(f"Score1:{greatest}")))


def test_arguments_given_twice_are_told() -> None:
    entries = (PluginConfig("A"), PluginConfig("B"), PluginConfig("A"))
    with pytest.raises(ConfigError) as caught:
        resolve(KubeSchedulerProfile("x", plugin_config=entries), PLUGINS)
    assert str(caught.value) == "profile.pluginConfig[2]: repeated config for plugin A"


def test_no_profiles_resolve_to_none() -> None:
    assert resolve_profiles(KubeSchedulerConfiguration(), PLUGINS) == ()


def test_mistakes_of_all_profiles_are_told(capabilities: Capabilities) -> None:
    config = configuration(
        {"schedulerName": "a", "plugins": {"score": {"enabled": [{"name": "Foo"}]}}},
        {"schedulerName": "b", "plugins": {"bind": {"disabled": [{"name": "*"}]}}},
        sorted_by("c", "PrioritySort DefaultBinder"),
        sorted_by("d", "OtherSort DefaultBinder"),
        extenders=EXTENDERS,
    )
    with pytest.raises(ConfigError) as caught:
        resolve_profiles(config, {**capabilities, "OtherSort": {"queueSort"}}, "f")
    assert [error.path for error in caught.value.errors] == [
        "profiles[0].plugins.score.enabled",
        "profiles[1].plugins.bind",
        "profiles[2].pluginConfig",
        "profiles[3].pluginConfig",
    ]


def sorted_by(name: str, multi_point: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    """A profile whose queue sort plugin comes from multiPoint, where validation does not see it."""
    return {
        "schedulerName": name,
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": n} for n in multi_point.split()]}},
        "pluginConfig": [{"name": "Sort", "args": args}],
    }


@pytest.mark.parametrize(
    ("second", "message"),
    [
        pytest.param(
            sorted_by("b", "All"),
            'f: profiles[1].plugins.queueSort: different queue sort plugins for profile "b": "All", first: "Sort"',
            id="another plugin",
        ),
        pytest.param(
            sorted_by("b", "Sort Bind", {"a": 1}),
            'f: profiles[1].plugins.queueSort: different queue sort plugin args for profile "b"',
            id="other arguments",
        ),
    ],
)
def test_all_profiles_must_sort_the_queue_alike(second: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_profiles(configuration(sorted_by("a", "Sort Bind"), second), PLUGINS, "f")
    assert str(caught.value) == message


EXTENDERS = [
    {
        "urlPrefix": "u",
        "managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}, {"name": "example.com/b"}],
    }
]


def test_resources_left_to_extenders_replace_the_ignored_ones(capabilities: Capabilities) -> None:
    entry = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/c"]}}
    (profile,) = resolve_profiles(configuration({"pluginConfig": [entry]}, extenders=EXTENDERS), capabilities)
    assert profile.plugin_args["NodeResourcesFit"] == NodeResourcesFitArgs(ignored_resources=("example.com/a",))


def test_resources_left_to_extenders_need_a_plugin_that_ignores_them(capabilities: Capabilities) -> None:
    plugins = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    with pytest.raises(ConfigError) as caught:
        resolve_profiles(configuration({"plugins": plugins}, extenders=EXTENDERS), capabilities, "f")
    assert str(caught.value) == "f: profiles[0].pluginConfig: can't find NodeResourcesFitArgs in plugin config"
