"""Decoding is strict: unknown fields, wrong types and wrong kinds are errors, all of them, each with its path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubesched.scheduler.config import ConfigError, InterPodAffinityArgs, PluginConfig, load
from kubesched.scheduler.config.plugin_args import API_VERSION

Mistakes = Callable[[dict[str, Any]], list[str]]

HEADER = f"apiVersion: {API_VERSION}\nkind: KubeSchedulerConfiguration\n"


def with_args(plugin: str, args: Any) -> dict[str, Any]:
    return {"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}


ARGS = "profiles[0].pluginConfig[0].args"
CONSTRAINT_MISTAKES = (
    f'{ARGS}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
    f"{ARGS}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
    f"{ARGS}.defaultConstraints[0].topologyKey: Required value: can not be empty",
    f"{ARGS}.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
    f"{ARGS}.defaultConstraints[0].labelSelector: Forbidden: "
    "constraint must not define a selector, as they deduced for each pod",
)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"Parallelism": 1},
            ['Parallelism: unknown field "Parallelism" (did you mean "parallelism"?)'],
            id="field names are case-sensitive",
        ),
        pytest.param({"zzz": 1}, ['zzz: unknown field "zzz"'], id="a field unlike any other"),
        pytest.param(
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "A", "wait": 1}]}}}]},
            ['profiles[0].plugins.score.enabled[0].wait: unknown field "wait" (did you mean "weight"?)'],
            id="deep inside",
        ),
        pytest.param(
            with_args("NodeResourcesFit", {"ignoredResource": []}),
            [f'{ARGS}.ignoredResource: unknown field "ignoredResource" (did you mean "ignoredResources"?)'],
            id="in the arguments of an in-tree plugin",
        ),
        pytest.param(
            with_args(
                "PodTopologySpread",
                {
                    "defaultingType": "List",
                    "defaultConstraints": [
                        {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "x": 1}
                    ],
                },
            ),
            [f'{ARGS}.defaultConstraints[0].x: unknown field "x"'],
            id="in an object of the core group",
        ),
        pytest.param(
            with_args("PodTopologySpread", {"defaultConstraints": [{"labelSelector": {"matchLabels": "a=b"}}]}),
            [
                f'{ARGS}.defaultConstraints[0].labelSelector.matchLabels: Invalid value: "a=b": must be of type object',
                *CONSTRAINT_MISTAKES,
            ],
            id="text for a mapping",
        ),
        pytest.param(
            with_args(
                "PodTopologySpread", {"defaultConstraints": [{"labelSelector": {"matchLabels": {"a": 1, "b": "c"}}}]}
            ),
            [
                f"{ARGS}.defaultConstraints[0].labelSelector.matchLabels[a]: Invalid value: 1: must be of type string",
                *CONSTRAINT_MISTAKES,
            ],
            id="a number within a mapping",
        ),
        pytest.param({"parallelism": "16"}, ['parallelism: Invalid value: "16": must be of type int32'], id="text"),
        pytest.param({"parallelism": True}, ["parallelism: Invalid value: true: must be of type int32"], id="bool"),
        pytest.param({"parallelism": 1.5}, ["parallelism: Invalid value: 1.5: must be of type int32"], id="fraction"),
        pytest.param(
            {"parallelism": 2**31},
            ["parallelism: Invalid value: 2147483648: must be of type int32"],
            id="an integer beyond 32 bits",
        ),
        pytest.param(
            {"podMaxBackoffSeconds": 2**63},
            ["podMaxBackoffSeconds: Invalid value: 9223372036854775808: must be of type int64"],
            id="an integer beyond 64 bits",
        ),
        pytest.param(
            {"clientConnection": {"qps": "fast"}},
            ['clientConnection.qps: Invalid value: "fast": must be of type number'],
            id="text for a number",
        ),
        pytest.param(
            {"enableProfiling": "true"},
            ['enableProfiling: Invalid value: "true": must be of type boolean'],
            id="text for a boolean",
        ),
        pytest.param(
            {"profiles": {"schedulerName": "x"}},
            ['profiles: Invalid value: {"schedulerName":"x"}: must be of type array'],
            id="an object for a list",
        ),
        pytest.param(
            {"leaderElection": ["x" * 80]},
            [f'leaderElection: Invalid value: ["{"x" * 58}...: must be of type object'],
            id="a list for an object, cut short",
        ),
        pytest.param(
            {"profiles": ["a"]},
            ['profiles[0]: Invalid value: "a": must be of type object'],
            id="text for an element",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": 15, "retryPeriod": "2 s"}},
            [
                "leaderElection.leaseDuration: Invalid value: 15: must be of type duration",
                'leaderElection.retryPeriod: Invalid value: "2 s": time: unknown unit " s" in duration "2 s"',
            ],
            id="durations",
        ),
        pytest.param(
            {"extenders": [{"tlsConfig": {"keyData": "secret!", "caData": 1}}]},
            [
                "extenders[0].tlsConfig.keyData: Invalid value: illegal base64 data",
                "extenders[0].tlsConfig.caData: Invalid value: 1: must be of type base64 string",
            ],
            id="bytes, which are not shown",
        ),
        pytest.param(
            with_args("NodeAffinity", "x"),
            [f'{ARGS}: Invalid value: "x": must be of type object'],
            id="arguments of an in-tree plugin that are no object",
        ),
        pytest.param(
            with_args("Mine", [1]),
            [f"{ARGS}: Invalid value: [1]: must be of type object"],
            id="arguments of another plugin that are no object",
        ),
        pytest.param(
            {"profiles": [{"pluginConfig": ["x"]}]},
            ['profiles[0].pluginConfig[0]: Invalid value: "x": must be of type object'],
            id="an entry of pluginConfig that is no object",
        ),
        pytest.param(
            with_args("DefaultPreemption", {"kind": "InterPodAffinityArgs", "hardPodAffinityWeight": 1}),
            [
                f'{ARGS}.kind: Invalid value: "InterPodAffinityArgs": args for plugin DefaultPreemption '
                "were not of type DefaultPreemptionArgs.kubescheduler.config.k8s.io"
            ],
            id="arguments of another kind",
        ),
        pytest.param(
            with_args("DefaultPreemption", {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}),
            [
                f'{ARGS}.apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1beta3": '
                f'supported values: "{API_VERSION}"'
            ],
            id="arguments of another version",
        ),
        pytest.param(
            {"parallelism": "x", "percentageOfNodesToScore": 101, "nope": 1},
            [
                'nope: unknown field "nope"',
                'parallelism: Invalid value: "x": must be of type int32',
                "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            ],
            id="validation errors of decoding and of validation together",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "x", "renewDeadline": "20s"}},
            ['leaderElection.leaseDuration: Invalid value: "x": time: invalid duration "x"'],
            id="nothing is said of a field's default when its value could not be read",
        ),
    ],
)
def test_mistakes_are_told_with_their_path(problems: Mistakes, fields: dict[str, Any], expected: list[str]) -> None:
    assert problems(fields) == expected


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"parallelism": None, "profiles": None, "leaderElection": None}, id="null is not given"),
        pytest.param({"profiles": [None]}, id="a null profile is an empty one"),
        pytest.param(with_args("NodeAffinity", None), id="null arguments are the default ones"),
        pytest.param(with_args("NodeAffinity", {"apiVersion": "", "kind": ""}), id="an empty kind is not given"),
        pytest.param({"clientConnection": {"qps": 5}}, id="an integer is a number"),
        pytest.param(
            {"extenders": [{"urlPrefix": "u", "tlsConfig": {"caData": "aGk=\n"}}]}, id="base64 may have line breaks"
        ),
    ],
)
def test_what_kubernetes_takes_is_taken(problems: Mistakes, fields: dict[str, Any]) -> None:
    assert problems(fields) == []


def test_a_whole_number_with_a_fraction_is_an_integer_in_yaml_but_not_in_json() -> None:
    assert load(HEADER + "parallelism: 2.0", "f").parallelism == 2
    with pytest.raises(ConfigError, match=r"parallelism: Invalid value: 2.0: must be of type int32"):
        load(f'{{"apiVersion": "{API_VERSION}", "kind": "KubeSchedulerConfiguration", "parallelism": 2.0}}', "f")


def test_arguments_of_other_plugins_pass_through() -> None:
    config = load(HEADER + "profiles: [{pluginConfig: [{name: Mine, args: {kind: X, deep: [1, {a: 2}]}}]}]", "f")
    assert config.profiles[0].plugin_config[0] == PluginConfig("Mine", {"kind": "X", "deep": [1, {"a": 2}]})


def test_arguments_of_in_tree_plugins_become_their_kind() -> None:
    config = load(
        HEADER + "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 7}}]}]", "f"
    )
    assert config.profiles[0].plugin_config[0].args == InterPodAffinityArgs(7)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            "",
            [
                f"f.yaml: apiVersion: Required value: must be {API_VERSION}",
                "f.yaml: kind: Required value: must be KubeSchedulerConfiguration",
            ],
            id="an empty file",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nspec: {}",
            [
                f'f.yaml: apiVersion: Unsupported value: "v1": supported values: "{API_VERSION}"',
                'f.yaml: kind: Unsupported value: "Pod": supported values: "KubeSchedulerConfiguration"',
            ],
            id="another kind, of which nothing more is said",
        ),
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nkind: x",
            [
                'f.yaml: kind: duplicate field "kind" (line 3)',
                'f.yaml: apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1beta3": '
                f'supported values: "{API_VERSION}"',
                'f.yaml: kind: Unsupported value: "x": supported values: "KubeSchedulerConfiguration"',
            ],
            id="an older version, and a key given twice",
        ),
        pytest.param("- a", ['f.yaml: Invalid value: ["a"]: must be of type object'], id="a list"),
        pytest.param(
            HEADER + "parallelism: 1\nparallelism: 0",
            ['f.yaml: parallelism: duplicate field "parallelism" (line 4)'],
            id="a key given twice",
        ),
    ],
)
def test_every_line_of_the_error_names_the_file(text: str, lines: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text, "f.yaml")
    assert str(caught.value).splitlines() == lines
    assert caught.value.source == "f.yaml"
    assert [f"f.yaml: {error}" for error in caught.value.errors] == lines
