"""Every rule on the arguments of in-tree plugins, with the messages of kube-scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Mistakes = Callable[[dict[str, Any]], list[str]]

PATH = "profiles[0].pluginConfig[0].args"


def found(problems: Mistakes, plugin: str, args: dict[str, Any]) -> list[str]:
    messages = problems({"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]})
    assert all(message.startswith(f"{PATH}.") for message in messages)
    return [message.removeprefix(f"{PATH}.") for message in messages]


def ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}}


def weights(*pairs: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name, weight in pairs]


def spread(**changes: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **changes}
    return {"defaultingType": "List", "defaultConstraints": [constraint]}


STRATEGIES = 'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"

REJECTED = [
    pytest.param(
        "DefaultPreemption",
        {"minCandidateNodesPercentage": -1, "minCandidateNodesAbsolute": -1},
        [
            "minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ],
        id="negative numbers of candidates",
    ),
    pytest.param(
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 101},
        ["minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
        id="more than all nodes as candidates",
    ),
    pytest.param(
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
        [
            "minCandidateNodesPercentage: Invalid value: 0: "
            "cannot be zero at the same time as minCandidateNodesAbsolute",
            "minCandidateNodesAbsolute: Invalid value: 0: "
            "cannot be zero at the same time as minCandidateNodesPercentage",
        ],
        id="no candidates at all",
    ),
    pytest.param(
        "DynamicResources",
        {"filterTimeout": "-1s", "bindingTimeout": "999ms"},
        [
            'filterTimeout: Invalid value: "-1s": must be zero or positive',
            'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
        ],
        id="timeouts too short",
    ),
    pytest.param(
        "InterPodAffinity",
        {"hardPodAffinityWeight": 101},
        ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
        id="an affinity weight too great",
    ),
    pytest.param(
        "InterPodAffinity",
        {"hardPodAffinityWeight": -1},
        ["hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"],
        id="a negative affinity weight",
    ),
    pytest.param(
        "NodeResourcesBalancedAllocation",
        {"resources": weights(("cpu", 2), ("cpu", 1))},
        [
            "resources[0].weight: Invalid value: 2: must be 1",
            'resources[1].name: Duplicate value: "cpu"',
        ],
        id="resources to balance with a weight, and twice",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"ignoredResourceGroups": ["example.com/x"]},
        ["ignoredResourceGroups[0]: Invalid value: \"example.com/x\": resource group name can't contain '/'"],
        id="an ignored group that is a resource",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "Foo"}},
        [f'scoringStrategy.type: Unsupported value: "Foo": {STRATEGIES}'],
        id="a strategy that is not known",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"resources": weights(("cpu", 1))}},
        [f'scoringStrategy.type: Unsupported value: "": {STRATEGIES}'],
        id="a strategy without type",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "LeastAllocated", "resources": weights(("cpu", -1), ("memory", 101))}},
        [
            "scoringStrategy.resources[0].weight: Invalid value: -1: "
            "resource weight of cpu not in valid range (0, 100]",
            "scoringStrategy.resources[1].weight: Invalid value: 101: "
            "resource weight of memory not in valid range (0, 100]",
        ],
        id="resource weights out of range",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
        [
            "scoringStrategy.requestedToCapacityRatio: Required value: "
            "must be specified when type is RequestedToCapacityRatio"
        ],
        id="a ratio without its function",
    ),
    pytest.param(
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": {"shape": []}}},
        ["scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio"],
        id="a function without the ratio",
    ),
    pytest.param(
        "NodeResourcesFit",
        ratio(),
        [f"{SHAPE}: Required value: at least one point must be specified"],
        id="a function without points",
    ),
    pytest.param(
        "NodeResourcesFit",
        ratio((0, 0), (50, 1), (50, 2), (40, 3)),
        [f"{SHAPE}[2].utilization: Invalid value: 50: values must be sorted in increasing order"],
        id="points out of order are told once",
    ),
    pytest.param(
        "NodeResourcesFit",
        ratio((-1, -1), (101, 11)),
        [
            f"{SHAPE}[0].utilization: Invalid value: -1: not in valid range [0, 100]",
            f"{SHAPE}[0].score: Invalid value: -1: not in valid range [0, 10]",
            f"{SHAPE}[1].utilization: Invalid value: 101: not in valid range [0, 100]",
            f"{SHAPE}[1].score: Invalid value: 11: not in valid range [0, 10]",
        ],
        id="points out of range",
    ),
    pytest.param(
        "PodTopologySpread",
        {"defaultingType": "Foo"},
        ['defaultingType: Unsupported value: "Foo": supported values: "System", "List"'],
        id="a defaulting type that is not known",
    ),
    pytest.param(
        "PodTopologySpread",
        {**spread(), "defaultingType": "System"},
        ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
        id="the system's constraints and a list",
    ),
    pytest.param(
        "PodTopologySpread",
        spread(maxSkew=0),
        ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
        id="no skew",
    ),
    pytest.param(
        "PodTopologySpread",
        {"defaultingType": "List", "defaultConstraints": [{}]},
        [
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
            "defaultConstraints[0].topologyKey: Required value: can not be empty",
            "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
        ],
        id="an empty constraint",
    ),
    pytest.param(
        "PodTopologySpread",
        {"defaultingType": "List", "defaultConstraints": [None, {"topologyKey": "a"}]},
        [
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
            "defaultConstraints[0].topologyKey: Required value: can not be empty",
            "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            "defaultConstraints[1].maxSkew: Invalid value: 0: not in valid range (0, inf)",
            "defaultConstraints[1].whenUnsatisfiable: Required value: can not be empty",
        ],
        id="null is an empty constraint",
    ),
    pytest.param(
        "PodTopologySpread",
        spread(whenUnsatisfiable="Pray"),
        [
            'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Pray": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"'
        ],
        id="an action that is not known",
    ),
    pytest.param(
        "PodTopologySpread",
        spread(labelSelector={"matchLabels": {"a": "b"}}),
        [
            "defaultConstraints[0].labelSelector: Forbidden: "
            "constraint must not define a selector, as they deduced for each pod"
        ],
        id="a constraint with a selector",
    ),
    pytest.param(
        "PodTopologySpread",
        {"defaultingType": "List", "defaultConstraints": spread()["defaultConstraints"] * 2},
        ['defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'],
        id="a constraint twice",
    ),
    pytest.param(
        "VolumeBinding",
        {"bindTimeoutSeconds": -10},
        ["bindTimeoutSeconds: Invalid value: -10: invalid BindTimeoutSeconds, should not be a negative value"],
        id="a negative timeout of volume binding",
    ),
    pytest.param(
        "VolumeBinding",
        {"shape": [{"utilization": 0, "score": 10}]},
        [
            'shape: Invalid value: [{"Utilization":0,"Score":10}]: '
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        ],
        id="a shape without its feature gate",
    ),
    pytest.param(
        "VolumeBinding",
        {"shape": []},
        [
            "shape: Invalid value: []: "
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        ],
        id="an empty shape is a shape",
    ),
]


@pytest.mark.parametrize(("plugin", "args", "expected"), REJECTED)
def test_arguments_that_break_a_rule_are_told(
    problems: Mistakes, plugin: str, args: dict[str, Any], expected: list[str]
) -> None:
    assert found(problems, plugin, args) == expected


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        pytest.param("NodeResourcesFit", {"ignoredResources": ["a b"]}, id="an ignored resource"),
        pytest.param("NodeResourcesFit", {"ignoredResourceGroups": ["a b"]}, id="an ignored group"),
        pytest.param("PodTopologySpread", spread(topologyKey="a b"), id="a topology key"),
    ],
)
def test_names_must_be_label_names(problems: Mistakes, plugin: str, args: dict[str, Any]) -> None:
    (message,) = found(problems, plugin, args)
    assert ': Invalid value: "a b": name part must consist of alphanumeric characters' in message


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        pytest.param("DefaultPreemption", {"minCandidateNodesPercentage": 0}, id="one number of candidates may be 0"),
        pytest.param("DynamicResources", {"filterTimeout": "0s", "bindingTimeout": "1s"}, id="the shortest timeouts"),
        pytest.param("InterPodAffinity", {"hardPodAffinityWeight": 100}, id="the greatest affinity weight"),
        pytest.param("NodeResourcesFit", ratio((0, 0), (100, 10)), id="a function over the whole range"),
        pytest.param("NodeResourcesFit", {"ignoredResourceGroups": ["example.com"]}, id="an ignored group"),
        pytest.param("PodTopologySpread", {"defaultingType": "List"}, id="an empty list of constraints"),
        pytest.param("VolumeBinding", {"bindTimeoutSeconds": 0}, id="no waiting for volumes"),
    ],
)
def test_arguments_that_keep_the_rules_load(problems: Mistakes, plugin: str, args: dict[str, Any]) -> None:
    assert found(problems, plugin, args) == []
