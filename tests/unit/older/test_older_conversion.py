"""What older configurations become today: the manifest, and what the user is told."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.older.config.conversion import Converted, load_any
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.scheduler.config import ConfigError, default, load, resolve_profiles
from kubesched.scheduler.plugins.registry import capabilities

GROUP = "kubescheduler.config.k8s.io"
BETA_VERSIONS = ["v1alpha2", "v1beta1", "v1beta2", "v1beta3"]


def converted_policy(**policy: Any) -> Converted:
    return load_any({"apiVersion": "v1", "kind": "Policy", **policy}, "policy.yaml")


def converted(version: str, **fields: Any) -> Converted:
    return load_any({"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", **fields}, "old.yaml")


def running(found: Converted, point: str) -> dict[str, int]:
    [profile] = resolve_profiles(found.config, capabilities())
    return {plugin.name: plugin.weight for plugin in profile.points[point]}


def args_of(found: Converted, plugin: str) -> dict[str, Any]:
    [profile] = found.manifest["profiles"]
    [args] = [entry["args"] for entry in profile["pluginConfig"] if entry["name"] == plugin]
    return {name: item for name, item in args.items() if name not in ("apiVersion", "kind")}


# -- Policy ------------------------------------------------------------------------------------------------------------


def test_a_policy_without_lists_is_the_default() -> None:
    found = converted_policy()
    assert found.config == default()
    assert [note.partition(":")[0] for note in found.notes] == ["predicates", "priorities"]


def test_predicates_that_are_not_named_do_not_run() -> None:
    filters = running(converted_policy(predicates=[{"name": "GeneralPredicates"}], priorities=[]), "filter")
    assert {"NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"} <= filters.keys()
    assert {"NodeUnschedulable", "TaintToleration"} <= filters.keys()
    assert not {"InterPodAffinity", "VolumeBinding", "PodTopologySpread"} & filters.keys()


def test_no_priorities_mean_no_scores() -> None:
    assert running(converted_policy(priorities=[]), "score") == {}


def test_priorities_become_scores_with_their_weights() -> None:
    priorities = [{"name": "ImageLocalityPriority", "weight": 4}, {"name": "MostRequestedPriority", "weight": 2}]
    found = converted_policy(priorities=priorities)
    assert running(found, "score") == {"ImageLocality": 4, "NodeResourcesFit": 2}
    assert args_of(found, "NodeResourcesFit") == {"scoringStrategy": {"type": "MostAllocated"}}


def test_of_two_strategies_the_heavier_one_stays() -> None:
    priorities = [{"name": "LeastRequestedPriority", "weight": 1}, {"name": "MostRequestedPriority", "weight": 5}]
    found = converted_policy(priorities=priorities)
    assert args_of(found, "NodeResourcesFit")["scoringStrategy"]["type"] == "MostAllocated"
    assert any(note.startswith("NodeResourcesLeastAllocated: dropped") for note in found.notes)


def test_a_shape_becomes_a_strategy() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    argument = {"shape": shape, "resources": [{"name": "example.com/gpu", "weight": 3}]}
    entry = {"name": "r", "weight": 2, "argument": {"requestedToCapacityRatioArguments": argument}}
    strategy = args_of(converted_policy(priorities=[entry]), "NodeResourcesFit")["scoringStrategy"]
    assert strategy == {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {"shape": shape},
        "resources": [{"name": "example.com/gpu", "weight": 3}],
    }


def test_label_rules_become_an_affinity_of_every_pod() -> None:
    found = converted_policy(
        predicates=[{"name": "p", "argument": {"labelsPresence": {"labels": ["disk"], "presence": True}}}],
        priorities=[{"name": "q", "weight": 9, "argument": {"labelPreference": {"label": "old", "presence": False}}}],
    )
    affinity = args_of(found, "NodeAffinity")["addedAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    [preferred] = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    wanted = {"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}
    assert preferred == {"weight": 9, "preference": wanted}
    assert "NodeAffinity" in running(found, "filter")


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        pytest.param(
            {"predicates": [{"name": "s", "argument": {"serviceAffinity": {"labels": ["rack"]}}}]},
            "s: dropped: use pod affinity",
            id="service affinity",
        ),
        pytest.param(
            {"priorities": [{"name": "a", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "rack"}}}]},
            "a: dropped: give PodTopologySpread a default constraint",
            id="service anti-affinity",
        ),
        pytest.param(
            {"priorities": [{"name": "NodePreferAvoidPodsPriority", "weight": 1}]},
            "NodePreferAvoidPodsPriority: dropped",
            id="avoided pods",
        ),
        pytest.param({"predicates": [{"name": "CheckNodeCondition"}]}, "CheckNodeCondition: dropped", id="conditions"),
        pytest.param({"alwaysCheckAllPredicates": True}, "alwaysCheckAllPredicates: dropped", id="checking all"),
    ],
)
def test_what_has_no_successor_is_dropped_with_a_note(policy: dict[str, Any], told: str) -> None:
    assert any(note.startswith(told) for note in converted_policy(**policy).notes)


def test_an_unknown_predicate_is_an_error_that_lists_what_exists() -> None:
    with pytest.raises(ConfigError, match=r'predicates\[0\]\.name: .*"GeneralPredicates"'):
        converted_policy(predicates=[{"name": "Mine"}])


def test_the_autoscaler_provider_becomes_a_strategy() -> None:
    found = GivenConfiguration(provider="ClusterAutoscalerProvider").as_of_today()
    assert args_of(found, "NodeResourcesFit") == {"scoringStrategy": {"type": "MostAllocated"}}


# -- component configurations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v1alpha1", *BETA_VERSIONS])
def test_an_empty_configuration_of_any_version_is_the_default(version: str) -> None:
    assert converted(version).config == default()


def test_a_configuration_of_v1_is_left_alone() -> None:
    manifest = {"apiVersion": f"{GROUP}/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 4}
    assert load_any(manifest, "c").config == load(manifest, "c")


def test_v1alpha1_has_its_profile_at_the_top() -> None:
    found = converted(
        "v1alpha1",
        schedulerName="mine",
        hardPodAffinitySymmetricWeight=5,
        bindTimeoutSeconds=60,
        disablePreemption=True,
        plugins={"score": {"disabled": [{"name": "ImageLocality"}]}},
    )
    [profile] = found.config.profiles
    assert profile.scheduler_name == "mine"
    assert args_of(found, "InterPodAffinity") == {"hardPodAffinityWeight": 5}
    assert args_of(found, "VolumeBinding") == {"bindTimeoutSeconds": 60}
    assert running(found, "postFilter").keys() == {"DynamicResources"}
    assert "ImageLocality" not in running(found, "score")


def test_v1alpha1_may_name_the_autoscaler() -> None:
    found = converted("v1alpha1", algorithmSource={"provider": "ClusterAutoscalerProvider"})
    assert args_of(found, "NodeResourcesFit") == {"scoringStrategy": {"type": "MostAllocated"}}


def test_a_policy_elsewhere_cannot_be_converted_from_here() -> None:
    with pytest.raises(ConfigError, match=r"algorithmSource\.policy: convert the Policy itself"):
        converted("v1alpha1", algorithmSource={"policy": {"file": {"path": "/p"}}})


@pytest.mark.parametrize("version", BETA_VERSIONS)
def test_leader_election_uses_leases_today(version: str) -> None:
    found = converted(version, leaderElection={"resourceLock": "endpoints"}, healthzBindAddress="0.0.0.0:10251")
    assert found.config.leader_election.resource_lock == "leases"
    assert any(note.startswith("healthzBindAddress: dropped") for note in found.notes)


def test_the_lock_object_has_another_name_today() -> None:
    election = {"lockObjectName": "lock", "lockObjectNamespace": "ns"}
    found = converted("v1alpha1", leaderElection=election).config.leader_election
    assert (found.resource_name, found.resource_namespace) == ("lock", "ns")


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_strategies_that_were_plugins(version: str) -> None:
    score = {
        "disabled": [{"name": "NodeResourcesLeastAllocated"}],
        "enabled": [{"name": "NodeResourcesMostAllocated", "weight": 5}],
    }
    args = {"apiVersion": f"{GROUP}/{version}", "kind": "X", "resources": [{"name": "cpu", "weight": 2}]}
    profile = {"plugins": {"score": score}, "pluginConfig": [{"name": "NodeResourcesMostAllocated", "args": args}]}
    found = converted(version, profiles=[profile])
    assert running(found, "score")["NodeResourcesFit"] == 5
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}]}
    assert args_of(found, "NodeResourcesFit") == {"scoringStrategy": strategy}


def test_without_selector_spread_there_are_no_default_constraints() -> None:
    profile = {"plugins": {"score": {"disabled": [{"name": "SelectorSpread"}]}}}
    assert args_of(converted("v1beta1", profiles=[profile]), "PodTopologySpread") == {"defaultingType": "List"}


def test_constraints_that_were_given_stay_the_only_ones() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
    config = [{"name": "PodTopologySpread", "args": {"defaultConstraints": [constraint]}}]
    found = args_of(converted("v1beta1", profiles=[{"pluginConfig": config}]), "PodTopologySpread")
    assert found == {"defaultConstraints": [constraint], "defaultingType": "List"}


def test_arguments_of_plugins_from_outside_are_left_alone() -> None:
    config = [{"name": "Mine", "args": {"depth": 3}}]
    found = converted("v1beta2", profiles=[{"pluginConfig": config}])
    assert args_of(found, "Mine") == {"depth": 3}


def test_plugins_that_are_gone_are_told() -> None:
    profile = {"plugins": {"filter": {"enabled": [{"name": "ServiceAffinity"}, {"name": "EBSLimits"}]}}}
    found = converted("v1beta1", profiles=[profile])
    assert any(note.startswith("ServiceAffinity at filter: dropped") for note in found.notes)
    assert "NodeVolumeLimits" in running(found, "filter")


def test_what_no_version_knew_is_still_a_mistake() -> None:
    with pytest.raises(ConfigError, match='unknown field "nonsense"'):
        converted("v1beta1", nonsense=1)


def test_gates_of_an_older_version_mean_nothing_today() -> None:
    with pytest.raises(ConfigError, match="unrecognized feature gate: EvenPodsSpread"):
        GivenConfiguration(feature_gates={"EvenPodsSpread": True}).as_of_today()


def test_only_one_kind_of_configuration_can_be_given() -> None:
    with pytest.raises(ConfigError, match="only one of"):
        GivenConfiguration(policy={"kind": "Policy"}, provider="DefaultProvider").as_of_today()


def _preference(name: str, weight: int) -> dict[str, Any]:
    return {"name": name, "weight": weight, "argument": {"labelPreference": {"label": name, "presence": True}}}


@pytest.mark.parametrize(
    ("policy", "note"),
    [
        pytest.param(
            {"predicates": [{"name": "GeneralPredicates"}, {"name": "PodFitsResources"}]},
            "PodFitsResources: is a part of GeneralPredicates, too: v1.17 and later refused such a Policy",
            id="a part of GeneralPredicates beside it",
        ),
        pytest.param(
            {"priorities": [_preference("one", 1), _preference("two", 2)]},
            "two: has a different weight with one: v1.17 and later refused such a Policy",
            id="label preferences with different weights",
        ),
    ],
)
def test_what_only_some_versions_took_is_translated_with_a_note(policy: dict[str, Any], note: str) -> None:
    assert note in load_any({"kind": "Policy", **policy}, "policy").notes


def test_a_priority_without_weight_is_refused_as_every_version_did() -> None:
    with pytest.raises(ConfigError, match="Priority EqualPriority should have a positive weight applied to it"):
        load_any({"kind": "Policy", "priorities": [{"name": "EqualPriority"}]}, "policy")
