"""Every rule on the configuration outside of plugin arguments, with the messages of kube-scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.scheduler.config import PluginConfig, VolumeBindingArgs, default
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.feature_gates import GateError, check_switches
from kubesched.scheduler.config.plugin_args import API_VERSION
from kubesched.scheduler.config.validation import validate

Mistakes = Callable[[dict[str, Any]], list[str]]

REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'


def elect(**fields: Any) -> dict[str, Any]:
    return {"leaderElection": fields}


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"clientConnection": {"burst": -1}},
            ["clientConnection.burst: Invalid value: -1: must be non-negative"],
            id="burst",
        ),
        pytest.param(
            elect(leaseDuration="-1s"),
            [
                'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
                'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
            ],
            id="lease duration",
        ),
        pytest.param(
            elect(renewDeadline="-1s"),
            ['leaderElection.renewDeadline: Invalid value: "-1s": must be greater than zero'],
            id="renew deadline",
        ),
        pytest.param(
            elect(retryPeriod="-1ms"),
            ['leaderElection.retryPeriod: Invalid value: "-1ms": must be greater than zero'],
            id="retry period",
        ),
        pytest.param(
            elect(leaseDuration="10s"),
            ['leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
            id="a lease as long as the deadline",
        ),
        pytest.param(
            elect(resourceLock="configmaps"),
            ['leaderElection.resourceLock: Invalid value: "configmaps": resourceLock value must be "leases"'],
            id="another lock",
        ),
        pytest.param(
            {"parallelism": 0},
            ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
            id="parallelism",
        ),
        pytest.param(
            {"percentageOfNodesToScore": -1, "profiles": [{"percentageOfNodesToScore": 101}]},
            [
                "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
                "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
            ],
            id="percentages",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
            id="initial backoff",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 4},
            ["podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to PodInitialBackoffSeconds"],
            id="maximal backoff",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": ""}]},
            ["profiles[0].schedulerName: Required value"],
            id="an empty name is no name",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {}]},
            ["profiles[1].schedulerName: Required value"],
            id="of several profiles each needs a name",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}, {"schedulerName": "a"}]},
            ['profiles[2].schedulerName: Duplicate value: "profiles[0].schedulerName"'],
            id="a name given twice",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"filter": enabled("NodeName", "EBSLimits"), "score": enabled("GCEPDLimits")}}]},
            [
                f'profiles[0].plugins.filter.enabled[1]: Invalid value: "EBSLimits": {REMOVED}',
                f'profiles[0].plugins.score.enabled[0]: Invalid value: "GCEPDLimits": {REMOVED}',
            ],
            id="removed plugins",
        ),
        pytest.param(
            {"profiles": [{"pluginConfig": [{"name": "AzureDiskLimits"}, {"name": "CinderLimits"}]}]},
            [
                f'profiles[0].pluginConfig[0]: Invalid value: "AzureDiskLimits": {REMOVED}',
                f'profiles[0].pluginConfig[1]: Invalid value: "CinderLimits": {REMOVED}',
            ],
            id="arguments for removed plugins",
        ),
        pytest.param(
            {"profiles": [{"pluginConfig": [{"name": "NodeAffinity"}, {"name": "X"}, {"name": "NodeAffinity"}]}]},
            ['profiles[0].pluginConfig[2]: Duplicate value: "NodeAffinity"'],
            id="arguments given twice",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"queueSort": enabled("A", "B")}}]},
            ["profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"],
            id="two queue sort plugins",
        ),
        pytest.param(
            {
                "profiles": [
                    {"schedulerName": "a", "plugins": {"queueSort": enabled("A")}},
                    {"schedulerName": "b", "plugins": {"queueSort": {"disabled": [{"name": "*"}]}}},
                ]
            },
            [
                'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":[{"Name":"*","Weight":0}]}: '
                "must be the same for all profiles"
            ],
            id="different queue sort plugins",
        ),
        pytest.param(
            {
                "profiles": [
                    {
                        "schedulerName": name,
                        "plugins": {"queueSort": enabled("A")},
                        "pluginConfig": [{"name": "A", "args": {"x": name}}],
                    }
                    for name in ("a", "b")
                ]
            },
            ['profiles[1].pluginConfig.args: Invalid value: {"x":"b"}: queueSort must be the same for all profiles'],
            id="different arguments of the queue sort plugin",
        ),
        pytest.param(
            {"extenders": [{"prioritizeVerb": "p"}]},
            ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
            id="an extender that scores without weight",
        ),
        pytest.param(
            {"extenders": [{"bindVerb": "b"}, {"bindVerb": "b"}]},
            ['extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind'],
            id="two extenders that bind",
        ),
        pytest.param(
            {"extenders": [{"managedResources": [{"name": "cpu"}, {"name": "kubernetes.io/x"}]}]},
            [
                'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
                'extenders[0].managedResources[1].name: Invalid value: "kubernetes.io/x": '
                "is an invalid extended resource name",
            ],
            id="managed resources that are not extended ones",
        ),
        pytest.param(
            {
                "extenders": [
                    {"managedResources": [{"name": "example.com/a"}]},
                    {"managedResources": [{"name": "example.com/b"}, {"name": "example.com/a"}]},
                ]
            },
            [
                'extenders[1].managedResources[1].name: Invalid value: "example.com/a": '
                "duplicate extender managed resource name"
            ],
            id="a resource managed by two extenders",
        ),
    ],
)
def test_what_breaks_a_rule_is_told(problems: Mistakes, fields: dict[str, Any], expected: list[str]) -> None:
    assert problems(fields) == expected


def test_a_managed_resource_with_a_malformed_name_is_told_its_form(problems: Mistakes) -> None:
    (message,) = problems({"extenders": [{"managedResources": [{"name": "a/b c"}]}]})
    assert message.startswith('extenders[0].managedResources[0].name: Invalid value: "a/b c": name part must consist')


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            elect(leaderElect=False, leaseDuration="1s", renewDeadline="5s", resourceLock="x"),
            id="without leader election its other fields do not matter",
        ),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": {"score": enabled("X")}}]},
            id="profiles that differ in other plugins",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"multiPoint": enabled("EBSLimits"), "placementScore": enabled("EBSLimits")}}]},
            id="removed plugins are only looked for at the points that there were",
        ),
        pytest.param(
            {
                "profiles": [
                    {
                        "schedulerName": name,
                        "plugins": {"queueSort": enabled("A")},
                        "pluginConfig": [{"name": "Z"}, {"name": "A", "args": {"x": 1}}],
                    }
                    for name in ("a", "b")
                ]
            },
            id="the same queue sort plugin with the same arguments",
        ),
        pytest.param({"podInitialBackoffSeconds": 10, "podMaxBackoffSeconds": 10}, id="equal backoffs"),
        pytest.param({"percentageOfNodesToScore": 100}, id="all nodes"),
        pytest.param(
            {"extenders": [{"prioritizeVerb": "p", "weight": 1, "bindVerb": "b"}, {"filterVerb": "f"}]}, id="extenders"
        ),
    ],
)
def test_what_keeps_the_rules_loads(problems: Mistakes, fields: dict[str, Any]) -> None:
    assert problems(fields) == []


def test_a_configuration_made_by_hand_needs_profiles_and_arguments_of_the_right_kind() -> None:
    config = default()
    profile = replace(
        config.profiles[0],
        plugin_config=(PluginConfig("NodeAffinity", VolumeBindingArgs()), PluginConfig("VolumeBinding", {"a": 1})),
    )
    errors = ErrorList()
    validate(replace(config, profiles=(profile,)), errors)
    validate(replace(config, profiles=()), errors)
    assert [str(error) for error in errors] == [
        'profiles[0].pluginConfig[0].args: Invalid value: {"apiVersion":"kubescheduler.config.k8s.io/v1",'
        '"kind":"VolumeBindingArgs","bindTimeoutSeconds":600}: has to match plugin args',
        'profiles[0].pluginConfig[1].args: Invalid value: {"a":1}: has to match plugin args',
        "profiles: Required value",
    ]


@pytest.mark.parametrize("gate", ["GangScheduling", "WorkloadAwarePreemption"])
def test_v1_37_has_no_gates_that_became_part_of_another(gate: str) -> None:
    gates = {"GenericWorkload": True, "GangScheduling": True, gate: True}
    with pytest.raises(GateError, match=r"unrecognized feature gate: \w+ \(in v1.37 it is part of GenericWorkload\)"):
        check_switches(gates, "1.37")
    assert check_switches(gates, None)[gate]
    assert check_switches({"GenericWorkload": True, "CompositePodGroup": False}, "1.37")["GenericWorkload"]
