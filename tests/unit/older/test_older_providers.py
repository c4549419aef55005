"""Algorithm providers: the sets and weights of each version."""

from __future__ import annotations

import pytest

from kubesched.older.config import EMULATED_VERSIONS, EmulatedProfile, emulate, generation_of
from kubesched.older.config.emulated import RefusedConfigurationError


def provided(version: str, provider: str | None = None, gates: dict[str, bool] | None = None) -> EmulatedProfile:
    generation = generation_of(version)
    assert generation is not None
    return emulate(generation, provider=provider, gates=gates).profiles[0]


def weights(profile: EmulatedProfile) -> dict[str, int]:
    return {plugin.name: plugin.weight for plugin in profile.scores}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "1.14",
            {
                "SelectorSpreadPriority": 1,
                "InterPodAffinityPriority": 1,
                "LeastRequestedPriority": 1,
                "BalancedResourceAllocation": 1,
                "NodePreferAvoidPodsPriority": 10000,
                "NodeAffinityPriority": 1,
                "TaintTolerationPriority": 1,
                "ImageLocalityPriority": 1,
            },
        ),
        (
            "1.19",
            {
                "NodeResourcesBalancedAllocation": 1,
                "ImageLocality": 1,
                "InterPodAffinity": 1,
                "NodeResourcesLeastAllocated": 1,
                "NodeAffinity": 1,
                "NodePreferAvoidPods": 10000,
                "PodTopologySpread": 2,
                "TaintToleration": 1,
                "SelectorSpread": 1,
            },
        ),
    ],
)
def test_the_default_scores_of_a_version(version: str, expected: dict[str, int]) -> None:
    assert weights(provided(version)) == expected
    assert provided(version) == provided(version, "DefaultProvider")


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_the_autoscaler_prefers_full_nodes(version: str) -> None:
    kinds = [plugin.kind for plugin in provided(version, "ClusterAutoscalerProvider").scores]
    assert "NodeResourcesMostAllocated" in kinds
    assert "NodeResourcesLeastAllocated" not in kinds


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("1.13", 'plugin "Mine" has not been registered'),
        ("1.14", 'plugin "Mine" has not been registered'),
        ("1.17", 'provider "Mine" is not registered'),
        ("1.18", 'algorithm provider "Mine" is not registered'),
        ("1.19", 'algorithm provider "Mine" is not registered'),
    ],
)
def test_an_unknown_provider_is_refused_in_the_words_of_the_version(version: str, problem: str) -> None:
    with pytest.raises(RefusedConfigurationError) as refused:
        provided(version, "Mine")
    assert refused.value.text == f'couldn\'t create scheduler using provider "Mine": {problem}'


@pytest.mark.parametrize(
    ("version", "gates", "name", "is_there"),
    [
        pytest.param("1.17", {"EvenPodsSpread": True}, "PodTopologySpread", True, id="spreading, turned on"),
        pytest.param("1.17", {}, "PodTopologySpread", False, id="spreading is off in 1.17"),
        pytest.param("1.18", {}, "PodTopologySpread", True, id="spreading is on in 1.18"),
        pytest.param("1.18", {"EvenPodsSpread": False}, "PodTopologySpread", False, id="spreading, turned off"),
        pytest.param(
            "1.14", {"ResourceLimitsPriorityFunction": True}, "ResourceLimitsPriority", True, id="limits by priority"
        ),
        pytest.param(
            "1.18", {"ResourceLimitsPriorityFunction": True}, "NodeResourceLimits", True, id="limits by plugin"
        ),
    ],
)
def test_feature_gates_add_and_remove_scores(version: str, gates: dict[str, bool], name: str, is_there: bool) -> None:
    assert (name in weights(provided(version, gates=gates))) is is_there


def test_in_1_18_spreading_comes_after_all_other_filters() -> None:
    assert provided("1.18").filters[-1].name == "PodTopologySpread"
    assert provided("1.19").filters[-1].name == "InterPodAffinity"
