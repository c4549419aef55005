"""The defaults are those of kube-scheduler v1.36."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.scheduler.config import (
    ClientConnectionConfiguration,
    DefaultPreemptionArgs,
    Duration,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginConfig,
    PluginRef,
    Plugins,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    VolumeBindingArgs,
    default,
    load,
)
from kubesched.scheduler.config.plugin_args import API_VERSION

CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


def loaded(**fields: Any) -> KubeSchedulerConfiguration:
    return load({"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", **fields}, "test")


def args_of(plugin: str, args: dict[str, Any] | None = None, **profile: Any) -> Any:
    config = loaded(profiles=[{"pluginConfig": [{"name": plugin, "args": args}], **profile}])
    return next(entry.args for entry in config.profiles[0].plugin_config if entry.name == plugin)


def test_an_empty_file_gives_the_default_configuration() -> None:
    assert loaded() == default()


def test_the_plain_fields_have_kubernetes_defaults() -> None:
    config = default()
    assert (config.parallelism, config.percentage_of_nodes_to_score) == (16, 0)
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    assert (config.enable_profiling, config.enable_contention_profiling) == (True, True)
    assert config.delay_cache_until_active is False
    assert config.extenders == ()
    assert config.leader_election == LeaderElectionConfiguration(
        leader_elect=True,
        lease_duration=Duration.parse("15s"),
        renew_deadline=Duration.parse("10s"),
        retry_period=Duration.parse("2s"),
        resource_lock="leases",
        resource_name="kube-scheduler",
        resource_namespace="kube-system",
    )
    assert config.client_connection == ClientConnectionConfiguration(
        kubeconfig="", accept_content_types="", content_type="application/vnd.kubernetes.protobuf", qps=50.0, burst=100
    )


def test_the_default_profile_has_the_default_plugins_in_order() -> None:
    (profile,) = default().profiles
    assert profile.scheduler_name == "default-scheduler"
    assert profile.percentage_of_nodes_to_score is None
    names = [f"{plugin.name}:{plugin.weight}" for plugin in profile.plugins.multi_point.enabled]
    assert names == [
        "SchedulingGates:0",
        "PrioritySort:0",
        "NodeUnschedulable:0",
        "NodeName:0",
        "TaintToleration:3",
        "NodeAffinity:2",
        "NodePorts:0",
        "NodeResourcesFit:1",
        "VolumeRestrictions:0",
        "NodeVolumeLimits:0",
        "VolumeBinding:0",
        "VolumeZone:0",
        "PodTopologySpread:2",
        "InterPodAffinity:2",
        "DynamicResources:2",
        "DefaultPreemption:0",
        "NodeResourcesBalancedAllocation:1",
        "ImageLocality:1",
        "DefaultBinder:0",
        "NodeDeclaredFeatures:0",
    ]
    assert profile.plugins == Plugins(multi_point=profile.plugins.multi_point)


def test_every_enabled_plugin_that_takes_arguments_has_them_in_plugin_config() -> None:
    assert default().profiles[0].plugin_config == (
        PluginConfig("DefaultPreemption", DefaultPreemptionArgs(10, 100)),
        PluginConfig("DynamicResources", DynamicResourcesArgs(Duration.parse("10s"), Duration.parse("10m"))),
        PluginConfig("InterPodAffinity", InterPodAffinityArgs(1, ignore_preferred_terms_of_existing_pods=False)),
        PluginConfig("NodeAffinity", NodeAffinityArgs(None)),
        PluginConfig("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs(CPU_AND_MEMORY)),
        PluginConfig(
            "NodeResourcesFit", NodeResourcesFitArgs((), (), ScoringStrategy("LeastAllocated", CPU_AND_MEMORY))
        ),
        PluginConfig("PodTopologySpread", PodTopologySpreadArgs((), "System")),
        PluginConfig("VolumeBinding", VolumeBindingArgs(600, None)),
    )


def test_given_arguments_come_first_and_the_others_follow_by_name() -> None:
    config = loaded(profiles=[{"pluginConfig": [{"name": "VolumeBinding"}, {"name": "Mine"}]}])
    assert [entry.name for entry in config.profiles[0].plugin_config] == [
        "VolumeBinding",
        "Mine",
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
    ]


def test_a_plugin_that_is_enabled_nowhere_gets_no_arguments() -> None:
    config = loaded(
        profiles=[
            {
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}]},
                    "score": {"enabled": [{"name": "NodeAffinity"}]},
                }
            }
        ]
    )
    assert [entry.name for entry in config.profiles[0].plugin_config] == ["NodeAffinity"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, (True, True), id="both on"),
        pytest.param({"enableProfiling": False}, (False, False), id="contention profiling follows profiling"),
        pytest.param({"enableProfiling": False, "enableContentionProfiling": True}, (False, True), id="unless given"),
        pytest.param({"enableContentionProfiling": False}, (True, False), id="contention profiling alone is off"),
        pytest.param({"enableProfiling": False, "enableContentionProfiling": None}, (False, False), id="null"),
    ],
)
def test_contention_profiling_follows_profiling(fields: dict[str, Any], expected: tuple[bool, bool]) -> None:
    config = loaded(**fields)
    assert (config.enable_profiling, config.enable_contention_profiling) == expected


def test_zero_and_empty_values_of_connections_count_as_not_given() -> None:
    config = loaded(
        leaderElection={
            "leaseDuration": "0s",
            "renewDeadline": "0",
            "retryPeriod": "0ms",
            "resourceLock": "",
            "resourceName": "",
            "resourceNamespace": "",
        },
        clientConnection={"contentType": "", "qps": 0, "burst": 0},
    )
    assert config == default()


def test_given_values_of_connections_are_kept() -> None:
    config = loaded(
        leaderElection={"leaderElect": False, "leaseDuration": "1m", "resourceName": "mine"},
        clientConnection={"kubeconfig": "/k", "qps": 0.5, "burst": 7},
    )
    assert config.leader_election.leader_elect is False
    assert config.leader_election.lease_duration == Duration.parse("60s")
    assert config.leader_election.resource_name == "mine"
    assert config.client_connection == ClientConnectionConfiguration(kubeconfig="/k", qps=0.5, burst=7)


def test_only_a_sole_profile_gets_the_default_name() -> None:
    assert loaded(profiles=[{}]).profiles[0].scheduler_name == "default-scheduler"
    assert loaded(profiles=[{"schedulerName": "mine"}]).profiles[0].scheduler_name == "mine"


def test_a_profiles_percentage_stays_its_own() -> None:
    config = loaded(percentageOfNodesToScore=10, profiles=[{"percentageOfNodesToScore": 20}])
    assert config.percentage_of_nodes_to_score == 10
    assert config.profiles[0].percentage_of_nodes_to_score == 20


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, ScoringStrategy("LeastAllocated", CPU_AND_MEMORY), id="no strategy"),
        pytest.param(
            {"scoringStrategy": {"type": "MostAllocated"}},
            ScoringStrategy("MostAllocated", CPU_AND_MEMORY),
            id="no resources",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "MostAllocated", "resources": []}},
            ScoringStrategy("MostAllocated", CPU_AND_MEMORY),
            id="an empty list of resources",
        ),
        pytest.param(
            {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "a"}, {"name": "b", "weight": 0}]}},
            ScoringStrategy("LeastAllocated", (ResourceSpec("a", 1), ResourceSpec("b", 1))),
            id="no weight and weight 0",
        ),
    ],
)
def test_a_scoring_strategy_is_completed(given: dict[str, Any], expected: ScoringStrategy) -> None:
    assert args_of("NodeResourcesFit", given).scoring_strategy == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(None, CPU_AND_MEMORY, id="none"),
        pytest.param([], CPU_AND_MEMORY, id="an empty list"),
        pytest.param([{"name": "x", "weight": 0}], (ResourceSpec("x", 1),), id="weight 0"),
    ],
)
def test_resources_of_balanced_allocation_are_completed(resources: Any, expected: tuple[ResourceSpec, ...]) -> None:
    assert args_of("NodeResourcesBalancedAllocation", {"resources": resources}).resources == expected


def test_an_empty_defaulting_type_is_the_systems() -> None:
    assert args_of("PodTopologySpread", {"defaultingType": ""}).defaulting_type == "System"


def test_zero_is_kept_where_it_means_something() -> None:
    assert args_of("InterPodAffinity", {"hardPodAffinityWeight": 0}).hard_pod_affinity_weight == 0
    assert args_of("VolumeBinding", {"bindTimeoutSeconds": 0}).bind_timeout_seconds == 0
    assert args_of("DynamicResources", {"filterTimeout": "0s"}).filter_timeout == Duration(0)
    assert args_of("DefaultPreemption", {"minCandidateNodesPercentage": 0}).min_candidate_nodes_percentage == 0


def test_given_plugins_are_merged_into_the_default_ones() -> None:
    config = loaded(profiles=[{"plugins": {"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}}])
    enabled = config.profiles[0].plugins.multi_point.enabled
    assert len(enabled) == 20
    assert PluginRef("ImageLocality", 9) in enabled
