"""Component configurations under emulation: merged by the rule of their time."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.older.config import (
    Emulation,
    PolicyConfigMap,
    PolicyFile,
    PolicyReference,
    emulate,
    generation_of,
)
from kubesched.older.config.emulated import RefusedConfigurationError
from kubesched.scheduler.config import ConfigError

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


PUT_TOGETHER = {
    "1.17": "error initializing the scheduling framework: ",
    "1.18": 'couldn\'t create scheduler using provider "DefaultProvider": initializing profiles: '
    "creating profile for scheduler name default-scheduler: ",
    "1.19": 'couldn\'t create scheduler using provider "DefaultProvider": initializing profiles: '
    "creating profile for scheduler name default-scheduler: ",
}
APIS = {"1.17": "v1alpha1", "1.18": "v1alpha2", "1.19": "v1beta1"}


def with_plugins(version: str, **plugins: Any) -> Emulation:
    """At the top of v1alpha1, in a profile later."""
    fields = {"plugins": plugins} if version == "1.17" else {"profiles": [{"plugins": plugins}]}
    return emulated(version, APIS[version], **fields)


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("version", "point"),
    [
        (version, point)
        for version in APIS
        for point in generation_of(version).extension_points  # type: ignore[union-attr]
        if point != "queueSort" or version == "1.17"
    ],
)
def test_an_unknown_plugin_is_refused_at_every_extension_point(version: str, point: str) -> None:
    with pytest.raises(RefusedConfigurationError) as refused:
        with_plugins(version, **{point: enabled("Mine")})
    interface = f"{point[0].upper()}{point[1:]}Plugin"
    assert refused.value.text == f'{PUT_TOGETHER[version]}{interface} "Mine" does not exist'


@pytest.mark.parametrize(
    ("version", "point", "plugin", "problem"),
    [
        pytest.param("1.17", "permit", "NodeName", 'plugin "NodeName" does not extend PermitPlugin plugin', id="1.17"),
        pytest.param("1.18", "reserve", "VolumeBinding", "does not extend ReservePlugin plugin", id="1.18"),
        pytest.param("1.19", "preBind", "NodeName", "does not extend PreBindPlugin plugin", id="1.19"),
        pytest.param("1.19", "preFilter", "NodePorts", 'already registered as "PreFilterPlugin"', id="a second time"),
        pytest.param("1.17", "filter", "NodePorts", 'already registered as "FilterPlugin"', id="a second time in 1.17"),
        pytest.param("1.19", "score", "NodeResourceLimits", "does not exist", id="gone in 1.19"),
    ],
)
def test_a_plugin_where_it_cannot_run_is_refused(version: str, point: str, plugin: str, problem: str) -> None:
    with pytest.raises(RefusedConfigurationError) as refused:
        with_plugins(version, **{point: enabled(plugin)})
    assert refused.value.text.startswith(PUT_TOGETHER[version])
    assert problem in refused.value.text


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        pytest.param(
            {"queueSort": enabled("Mine")},
            'initializing profiles: one queue sort plugin required for profile with scheduler name "default-scheduler"',
            id="two queue sort plugins",
        ),
        pytest.param({"bind": {"disabled": [{"name": "*"}]}}, "at least one bind plugin is needed", id="nobody binds"),
    ],
)
def test_what_a_profile_must_have(plugins: dict[str, Any], problem: str) -> None:
    for version in ("1.18", "1.19"):
        with pytest.raises(RefusedConfigurationError) as refused:
            with_plugins(version, **plugins)
        assert refused.value.text.endswith(problem)


@pytest.mark.parametrize("version", ["1.18", "1.19"])
def test_arguments_that_a_plugin_cannot_start_with(version: str) -> None:
    profile = {
        "plugins": {"filter": enabled("NodeLabel")},
        "pluginConfig": [{"name": "NodeLabel", "args": {"presentLabels": ["x"], "absentLabels": ["x"]}}],
    }
    with pytest.raises(RefusedConfigurationError, match='plugin "NodeLabel": detecting at least one'):
        emulated(version, APIS[version], profiles=[profile])
    profile["pluginConfig"] = [{"name": "NodeLabel"}, {"name": "NodeLabel"}]
    with pytest.raises(RefusedConfigurationError, match="repeated config for plugin NodeLabel"):
        emulated(version, APIS[version], profiles=[profile])


def test_1_17_adds_plugins_and_disables_none() -> None:
    found = with_plugins("1.17", filter={"disabled": [{"name": "*"}], **enabled("NodeLabel")})
    names = [plugin.name for plugin in found.profiles[0].filters]
    assert (names[0], names[-1], len(names)) == ("NodeUnschedulable", "NodeLabel", 15)
    assert found.notes == ("plugins.filter.disabled: v1.17 passed over it",)


@pytest.mark.parametrize("version", ["1.13", "1.14"])
def test_before_plugins_what_is_said_of_them_is_passed_over(version: str) -> None:
    found = emulated(version, "v1alpha1", plugins={"permit": enabled("Mine")})
    assert found.profiles[0].filters[0].name == "CheckNodeUnschedulable"
    assert found.notes == (f"plugins: v{version} has no plugins to configure: passed over",)


@pytest.mark.parametrize(
    ("version", "api"), [("1.13", "v1alpha1"), ("1.14", "v1alpha1"), ("1.17", "v1alpha1"), ("1.18", "v1alpha2")]
)
def test_how_long_volumes_are_waited_for(version: str, api: str) -> None:
    [profile] = emulated(version, api, bindTimeoutSeconds=7).profiles
    [args] = [plugin.args for plugin in profile.filters if plugin.kind == "VolumeBinding"]
    assert args == {"bindTimeoutSeconds": 7}


POLICY = {
    "kind": "Policy",
    "predicates": [{"name": "HostName"}],
    "priorities": [{"name": "EqualPriority", "weight": 2}],
}
IN_FILE = {"policy": {"file": {"path": "/etc/policy.json"}}}
IN_CLUSTER = {"policy": {"configMap": {"name": "mine"}}}


def of_file(version: str, source: dict[str, Any], policy: Any = None, **fields: Any) -> Emulation:
    generation = generation_of(version)
    assert generation is not None
    header = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "KubeSchedulerConfiguration", "algorithmSource": source}
    return emulate(generation, config={**header, **fields}, policy=policy)


@pytest.mark.parametrize(("version", "n_scores"), [("1.13", 1), ("1.14", 1), ("1.17", 0), ("1.18", 0)])
@pytest.mark.parametrize(
    ("source", "reference"),
    [
        pytest.param(IN_FILE, PolicyFile("/etc/policy.json"), id="file"),
        pytest.param(IN_CLUSTER, PolicyConfigMap("kube-system", "mine"), id="ConfigMap"),
    ],
)
def test_a_policy_that_the_file_names_is_what_runs(
    version: str, n_scores: int, source: dict[str, Any], reference: PolicyReference
) -> None:
    found = of_file(version, source, POLICY, schedulerName="mine", bindTimeoutSeconds=7)
    [profile] = found.profiles
    assert profile.scheduler_name == "mine"
    assert {plugin.kind for plugin in profile.filters} == {"NodeName", "NodeUnschedulable", "TaintToleration"}
    assert len(profile.scores) == n_scores
    assert found.source.reference == reference
    assert found.source.manifest()["policy"] == reference.manifest()


def test_a_policy_that_was_not_read_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"algorithmSource\.policy: the Policy itself is needed: /etc/policy\.json"):
        of_file("1.17", IN_FILE)


@pytest.mark.parametrize(
    ("source", "provider"),
    [
        pytest.param({}, "DefaultProvider", id="nothing said is the default provider"),
        pytest.param({"provider": ""}, "DefaultProvider", id="no name is none"),
        pytest.param({"provider": "ClusterAutoscalerProvider", **IN_FILE}, "ClusterAutoscalerProvider", id="both"),
    ],
)
def test_which_source_counts(source: dict[str, Any], provider: str) -> None:
    found = of_file("1.17", source)
    assert (found.source.provider, found.source.policy) == (provider, None)


def test_a_policy_without_a_place_is_one_that_says_nothing() -> None:
    found = of_file("1.14", {"policy": {}})
    assert [plugin.name for plugin in found.profiles[0].filters] == [
        plugin.name for plugin in of_file("1.14", {}).profiles[0].filters
    ]


def test_plugins_beside_a_policy() -> None:
    added = of_file("1.17", IN_FILE, POLICY, plugins={"filter": enabled("NodePorts")})
    assert [plugin.name for plugin in added.profiles[0].filters][-1] == "NodePorts"
    with pytest.raises(RefusedConfigurationError) as refused:
        of_file("1.18", IN_FILE, POLICY, plugins={"filter": enabled("NodePorts")})
    problem = "using Plugins and Policy simultaneously is not supported"
    assert refused.value.text == f"couldn't create scheduler from policy: {problem}"


@pytest.mark.parametrize(("version", "is_refused"), [("1.13", False), ("1.14", False), ("1.17", True), ("1.18", False)])
def test_a_weight_of_0_for_hard_affinity(version: str, is_refused: bool) -> None:
    def read() -> Emulation:
        return emulated(version, "v1alpha1", hardPodAffinitySymmetricWeight=0)

    if not is_refused:
        read()
        return
    with pytest.raises(RefusedConfigurationError) as refused:
        read()
    problem = "invalid hardPodAffinitySymmetricWeight: 0, must be in the range 1-100"
    assert refused.value.text == f'couldn\'t create scheduler using provider "DefaultProvider": {problem}'


def test_extenders_resources_are_left_to_them_from_1_18_on() -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    found = emulated("1.19", "v1beta1", extenders=[{"urlPrefix": "http://e", "managedResources": managed}])
    [args] = [plugin.args for plugin in found.profiles[0].filters if plugin.kind == "NodeResourcesFit"]
    assert args == {"ignoredResources": ["example.com/gpu"]}


@pytest.mark.parametrize(("version", "api"), [("1.19", "v1"), ("1.14", "v1beta1"), ("1.18", "v1beta1")])
def test_a_version_reads_only_what_it_knew(version: str, api: str) -> None:
    with pytest.raises(ConfigError, match="apiVersion: Unsupported value"):
        emulated(version, api)
