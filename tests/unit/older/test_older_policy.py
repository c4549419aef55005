"""Policy: how it is read, and what each version makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.older.config import EMULATED_VERSIONS, EmulatedProfile, emulate, generation_of
from kubesched.older.config.emulated import RefusedConfigurationError
from kubesched.older.config.policy import load_policy
from kubesched.scheduler.config import ConfigError

MANDATORY = {"PodToleratesNodeTaints", "CheckNodeUnschedulable", "TaintToleration", "NodeUnschedulable"}
PRESENCE = {"labelsPresence": {"labels": ["disk"], "presence": True}}


def profile_of(version: str, gates: dict[str, bool] | None = None, **policy: Any) -> EmulatedProfile:
    generation = generation_of(version)
    assert generation is not None
    found = emulate(generation, policy={"apiVersion": "v1", "kind": "Policy", **policy}, gates=gates)
    return found.profiles[0]


def filters(profile: EmulatedProfile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def weights(profile: EmulatedProfile) -> dict[str, int]:
    return {plugin.name: plugin.weight for plugin in profile.scores}


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_lists_that_are_left_out_mean_the_defaults(version: str) -> None:
    generation = generation_of(version)
    assert generation is not None
    standard = emulate(generation).profiles[0]
    given = profile_of(version)
    assert set(filters(given)) == set(filters(standard))
    assert weights(given) == weights(standard)


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_empty_lists_mean_none_but_the_mandatory_ones(version: str) -> None:
    found = profile_of(version, predicates=[], priorities=[])
    assert set(filters(found)) <= MANDATORY
    assert len(found.filters) == 2
    assert found.scores == ()


def test_before_taints_the_node_condition_is_mandatory() -> None:
    found = profile_of("1.14", {"TaintNodesByCondition": False}, predicates=[])
    assert filters(found) == ["CheckNodeCondition"]


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
@pytest.mark.parametrize(("field", "what"), [("predicates", "Predicate"), ("priorities", "Priority")])
def test_an_unknown_name_ended_the_scheduler_on_the_spot(version: str, field: str, what: str) -> None:
    name = "NoSuch" if version in ("1.13", "1.14", "1.17") else '"NoSuch"'
    with pytest.raises(RefusedConfigurationError) as refused:
        profile_of(version, None, **{field: [{"name": "NoSuch", **({"weight": 1} if field == "priorities" else {})}]})
    assert refused.value.text == f"Invalid configuration: {what} type not found for {name}"


def test_predicates_are_ordered_as_then_whatever_the_order_of_the_file() -> None:
    found = profile_of("1.14", predicates=[{"name": "MatchInterPodAffinity"}, {"name": "GeneralPredicates"}])
    order = ["CheckNodeUnschedulable", "GeneralPredicates", "PodToleratesNodeTaints", "MatchInterPodAffinity"]
    assert filters(found) == order


def test_general_predicates_are_four_plugins_from_1_17_on() -> None:
    found = profile_of("1.17", predicates=[{"name": "GeneralPredicates"}])
    assert filters(found)[1:5] == ["NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"]


@pytest.mark.parametrize(
    ("version", "name", "expected"),
    [
        pytest.param("1.14", "custom", None, id="1.14 never runs a predicate outside of its order"),
        pytest.param("1.14", "CheckServiceAffinity", {"presentLabels": ["disk"]}, id="1.14 takes the argument's word"),
        pytest.param("1.17", "custom", {"presentLabels": ["disk"]}, id="1.17 runs any name"),
        pytest.param("1.19", "custom", {"presentLabels": ["disk"]}, id="1.19 runs any name that it does not know"),
        pytest.param("1.19", "CheckNodeLabelPresence", {}, id="1.19 drops the argument of a name that it knows"),
    ],
)
def test_a_label_predicate_by_its_name(version: str, name: str, expected: dict[str, Any] | None) -> None:
    found = profile_of(version, predicates=[{"name": name, "argument": PRESENCE}])
    args = [dict(plugin.args) for plugin in found.filters if plugin.kind == "NodeLabel"]
    assert args == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("1.14", {"x1": 3, "x2": 3}, id="each by itself in 1.14"),
        pytest.param("1.17", {"NodeLabel": 6}, id="weights added up in 1.17"),
        pytest.param("1.19", {"NodeLabel": 6}, id="one weight as many times in 1.19"),
    ],
)
def test_label_preferences_are_merged_as_then(version: str, expected: dict[str, int]) -> None:
    preferences = [
        {"name": name, "weight": 3, "argument": {"labelPreference": {"label": name, "presence": True}}}
        for name in ("x1", "x2")
    ]
    assert weights(profile_of(version, priorities=preferences)) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("1.14", {"hardPodAffinityWeight": 7}, id="counts in 1.14"),
        pytest.param("1.17", {}, id="was lost in 1.17"),
        pytest.param("1.19", {"hardPodAffinityWeight": 7}, id="counts again in 1.19"),
    ],
)
def test_the_weight_of_hard_affinity(version: str, expected: dict[str, int]) -> None:
    found = profile_of(version, hardPodAffinitySymmetricWeight=7)
    [args] = [dict(plugin.args) for plugin in found.scores if plugin.kind == "InterPodAffinity"]
    assert args == expected


@pytest.mark.parametrize(("version", "expected"), [("1.14", True), ("1.17", False), ("1.18", True), ("1.19", True)])
def test_all_predicates_are_checked_on_request(version: str, expected: bool) -> None:
    assert profile_of(version, alwaysCheckAllPredicates=True).checks_all is expected


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        pytest.param(
            {"predicates": [{"name": "GeneralPredicates"}, {"name": "PodFitsResources"}]},
            'plugin "NodeResourcesFit" already registered as "PreFilterPlugin"',
            id="a part of GeneralPredicates beside it",
        ),
        pytest.param(
            {"predicates": [{"name": "GeneralPredicates"}, {"name": "HostName"}]},
            'plugin "NodeName" already registered as "FilterPlugin"',
            id="a part that has no pre-filter",
        ),
        pytest.param(
            {"priorities": [{"name": "LeastRequestedPriority", "weight": 0}]},
            "Priority LeastRequestedPriority should have a positive weight applied to it or it has overflown",
            id="no weight",
        ),
        pytest.param(
            {
                "predicates": [
                    {"name": "a", "argument": {"labelsPresence": {"labels": ["x"], "presence": True}}},
                    {"name": "b", "argument": {"labelsPresence": {"labels": ["x"], "presence": False}}},
                ]
            },
            'detecting at least one label (e.g., "x") that exist in both the present([x]) and absent([x]) label list',
            id="a label both wanted and unwanted",
        ),
    ],
)
def test_what_1_19_refused_is_refused_in_its_words(policy: dict[str, Any], text: str) -> None:
    with pytest.raises(RefusedConfigurationError) as refused:
        profile_of("1.19", **policy)
    assert refused.value.text.startswith("couldn't create scheduler from policy: ")
    assert text in refused.value.text


def _ratio(*points: tuple[int, int], **argument: Any) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    arguments = {"requestedToCapacityRatioArguments": {"shape": shape, **argument}}
    return {"priorities": [{"name": "r", "weight": 1, "argument": arguments}]}


@pytest.mark.parametrize(
    ("version", "policy", "text"),
    [
        pytest.param("1.19", _ratio(), "at least one point must be specified", id="no point"),
        pytest.param(
            "1.19",
            _ratio((50, 1), (50, 2)),
            "utilization values must be sorted. Utilization[0]==50 >= Utilization[1]==50",
            id="points out of order",
        ),
        pytest.param(
            "1.19", _ratio((0, 11)), "score values must not be greater than 10. Score[0]==11", id="too high a score"
        ),
        pytest.param(
            "1.18", _ratio((0, 11)), "score values not be greater than 100. Score[0]==110", id="the same in 1.18"
        ),
        pytest.param(
            "1.19",
            _ratio((0, 1), resources=[{"name": "cpu", "weight": 0}]),
            "resource cpu weight 0 must not be less than 1",
            id="a resource without weight",
        ),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(version: str, policy: dict[str, Any], text: str) -> None:
    with pytest.raises(RefusedConfigurationError) as refused:
        profile_of(version, **policy)
    assert refused.value.text.endswith(f'error initializing plugin "RequestedToCapacityRatio": {text}')


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.14", "Priority for extender http://e should have a positive weight applied to it"),
        ("1.19", "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"),
    ],
)
def test_an_extender_that_scores_needs_a_weight(version: str, text: str) -> None:
    with pytest.raises(RefusedConfigurationError) as refused:
        profile_of(version, extenders=[{"urlPrefix": "http://e", "prioritizeVerb": "score"}])
    assert refused.value.text == f"couldn't create scheduler from policy: {text}"


def _preferring(name: str, weight: int, label: str) -> dict[str, Any]:
    return {"name": name, "weight": weight, "argument": {"labelPreference": {"label": label, "presence": True}}}


REFUSED = [
    pytest.param(
        {"priorities": [{"name": "LeastRequestedPriority"}]},
        dict.fromkeys(
            EMULATED_VERSIONS,
            "couldn't create scheduler from policy: "
            "Priority LeastRequestedPriority should have a positive weight applied to it or it has overflown",
        ),
        id="a weight of 0",
    ),
    pytest.param(
        {"priorities": [_preferring("one", 1, "x"), _preferring("two", 2, "y")]},
        {
            "1.14": None,
            "1.17": 'couldn\'t create scheduler from policy: LabelPreference  priority "two" has a different weight '
            'with "one"',
            "1.18": 'couldn\'t create scheduler from policy: LabelPreference  priority "two" has a different weight '
            'with "one"',
            "1.19": 'couldn\'t create scheduler from policy: LabelPreference  priority "two" has a different weight '
            'with "one"',
        },
        id="label preferences with different weights",
    ),
    pytest.param(
        {"predicates": [{"name": "GeneralPredicates"}, {"name": "PodFitsHostPorts"}]},
        {
            "1.14": None,
            "1.17": "error initializing the scheduling framework: "
            'plugin "NodePorts" already registered as "FilterPlugin"',
            "1.18": "couldn't create scheduler from policy: initializing profiles: creating profile for scheduler name "
            'default-scheduler: plugin "NodePorts" already registered as "PreFilterPlugin"',
            "1.19": "couldn't create scheduler from policy: initializing profiles: creating profile for scheduler name "
            'default-scheduler: plugin "NodePorts" already registered as "PreFilterPlugin"',
        },
        id="a part of GeneralPredicates beside it",
    ),
    pytest.param(
        {"predicates": [{"name": "mine", "argument": {}}]},
        dict.fromkeys(EMULATED_VERSIONS, "Exactly 1 predicate argument is required, numArgs: 0, Predicate: mine"),
        id="an argument that says nothing",
    ),
    pytest.param(
        {"priorities": [{"name": "mine", "weight": 1, "argument": {}}]},
        {
            "1.13": "Exactly 1 priority argument is required, numArgs: 0, Priority: mine",
            "1.14": "Exactly 1 priority argument is required, numArgs: 0, Priority: mine",
            "1.17": "couldn't create scheduler from policy: No priority arguments set for priority mine",
            "1.18": "couldn't create scheduler from policy: No priority arguments set for priority mine",
        },
        id="a priority's argument that says nothing",
    ),
    pytest.param(
        _ratio((0, 1), (0, 2)),
        {
            "1.17": "invalid RequestedToCapacityRatioPriority arguments: utilization values must be sorted. "
            "Utilization[0]==0 >= Utilization[1]==0",
        },
        id="a shape out of order, which ended 1.17 on the spot",
    ),
    pytest.param(
        {"hardPodAffinitySymmetricWeight": 101},
        {
            "1.14": "couldn't create scheduler from policy: "
            "invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100",
            "1.18": "couldn't create scheduler from policy: "
            "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0-100]",
        },
        id="a weight of hard affinity out of range",
    ),
    pytest.param(
        {"priorities": [{"name": "a_b", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "zone"}}}]},
        {
            "1.14": "Algorithm name a_b does not match the name validation regexp "
            '"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$".',
            "1.17": None,
        },
        id="a name that is no name",
    ),
    pytest.param(
        {"priorities": [_preferring(name, 2**63 // 20 + 1, name) for name in ("one", "two", "three")]},
        {
            "1.13": "couldn't create scheduler from policy: Total priority of priority functions has overflown",
            "1.14": "couldn't create scheduler from policy: total priority of priority functions has overflown",
        },
        id="weights that are too large in sum",
    ),
    pytest.param(
        {
            "extenders": [
                {"urlPrefix": "http://e", "managedResources": [{"name": "cpu"}]},
                {"urlPrefix": "http://f", "managedResources": [{"name": "cpu"}]},
            ]
        },
        {
            "1.13": "couldn't create scheduler from policy: [cpu is an invalid extended resource name, "
            "cpu is an invalid extended resource name, Duplicate extender managed resource name cpu]",
            "1.14": "couldn't create scheduler from policy: "
            "[cpu is an invalid extended resource name, Duplicate extender managed resource name cpu]",
            "1.19": "couldn't create scheduler from policy: ["
            'extenders[0].managedResources[0].name: Invalid value: "cpu": cpu is an invalid extended resource name, '
            'extenders[1].managedResources[0].name: Invalid value: "cpu": cpu is an invalid extended resource name, '
            'extenders[1].managedResources[0].name: Invalid value: "cpu": duplicate extender managed resource name]',
        },
        id="resources of extenders",
    ),
]


@pytest.mark.parametrize(("policy", "words"), REFUSED)
def test_what_each_version_refused_is_refused_in_its_words(
    policy: dict[str, Any], words: dict[str, str | None]
) -> None:
    for version, text in words.items():
        if text is None:
            profile_of(version, **policy)
            continue
        with pytest.raises(RefusedConfigurationError) as refused:
            profile_of(version, **policy)
        assert refused.value.text == text, version


def test_resources_of_extenders_are_left_to_them() -> None:
    extender = {
        "urlPrefix": "http://e",
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}, {"name": "example.com/nic"}],
    }
    for version, kind in (("1.14", "GeneralPredicates"), ("1.19", "NodeResourcesFit")):
        found = profile_of(version, extenders=[extender])
        [args] = [dict(plugin.args) for plugin in found.filters if plugin.kind == kind]
        assert args == {"ignoredResources": ["example.com/gpu"]}


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        pytest.param("PodToleratesNodeNoExecuteTaints", True, id="a place without a check of its own"),
        pytest.param("EvenPodsSpread", False, id="a name of later versions"),
    ],
)
def test_an_argument_gives_a_place_its_meaning_in_1_14(name: str, runs: bool) -> None:
    found = profile_of("1.14", predicates=[{"name": name, "argument": PRESENCE}])
    assert (name in filters(found)) is runs


def test_yaml_and_json_say_the_same() -> None:
    yaml = "kind: Policy\npredicates:\n- name: HostName\npriorities: []\n"
    json = '{"kind": "Policy", "predicates": [{"name": "HostName"}], "priorities": []}'
    assert load_policy(yaml, "p.yaml") == load_policy(json, "p.json")


def test_extenders_of_a_policy_have_nanoseconds_and_any_case() -> None:
    extender = {"urlPrefix": "http://e", "filterVerb": "filter", "httpTimeout": 100000000, "EnableHttps": True}
    [found] = load_policy({"kind": "Policy", "extenders": [extender]}, "p").extenders
    assert (found.http_timeout.seconds, found.enable_https) == (0.1, True)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        pytest.param({"kind": "Polity"}, r'kind: Unsupported value: "Polity"', id="another kind"),
        pytest.param({"kind": "Policy", "predicate": []}, r'predicate: unknown field "predicate"', id="unknown field"),
        pytest.param(
            {"kind": "Policy", "predicates": [{"name": "x", "argument": {}}]},
            r"predicates\[0\]\.argument: exactly 1 argument is required, numArgs: 0",
            id="an argument that says nothing",
        ),
    ],
)
def test_a_mistake_names_the_field(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_policy(policy, "policy.yaml")
