"""What an emulated scheduler runs is shown as it is: to a reader, to machines, and as a file of its own version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main
from kubesched.live.options import parse_flags, read_options, write_configuration
from kubesched.older.config import EMULATED_VERSIONS, Emulation, PolicyFile, emulate, generation_of
from kubesched.older.config.running import losses, manifest_of_then, running, start_lines

PRESENCE = {"labelsPresence": {"labels": ["disk"], "presence": True}}
PREFERENCE = {"labelPreference": {"label": "ssd", "presence": False}}
GPU = {"name": "example.com/gpu", "ignoredByScheduler": True}
POLICY: dict[str, Any] = {
    "kind": "Policy",
    "predicates": [
        {"name": "GeneralPredicates"},
        {"name": "CheckVolumeBinding"},
        {"name": "CheckServiceAffinity", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
        {"name": "HasDisk", "argument": PRESENCE},
    ],
    "priorities": [
        {"name": "MostRequestedPriority", "weight": 2},
        {"name": "TaintTolerationPriority", "weight": 1},
        {"name": "NoSsd", "weight": 3, "argument": PREFERENCE},
    ],
    "extenders": [{"urlPrefix": "http://e", "filterVerb": "filter", "managedResources": [GPU]}],
    "hardPodAffinitySymmetricWeight": 10,
}
REFERENCE = PolicyFile("/etc/policy.json")


def emulated(version: str, **how: Any) -> Emulation:
    generation = generation_of(version)
    assert generation is not None
    return emulate(generation, **how)


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(POLICY))
    return path


# -- as a file of its own version --------------------------------------------------------------------------------------

WAYS = [
    pytest.param({}, id="default provider"),
    pytest.param({"provider": "ClusterAutoscalerProvider"}, id="the autoscaler's"),
    pytest.param({"policy": POLICY, "reference": REFERENCE}, id="a Policy"),
    pytest.param({"policy": {"kind": "Policy"}, "reference": REFERENCE}, id="a Policy that says nothing"),
    pytest.param({"policy": {"kind": "Policy", "predicates": [], "priorities": []}}, id="a Policy of nothing"),
]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_the_file_of_a_version_gives_the_same_scheduler(version: str, how: dict[str, Any]) -> None:
    first = emulated(version, **how).renamed("mine").with_hard_affinity_weight(10)
    manifest = yaml.safe_load(yaml.safe_dump(manifest_of_then(first)))
    needs_policy = "policy" in manifest.get("algorithmSource", {})
    again = emulated(version, config=manifest, policy=how["policy"] if needs_policy else None)
    assert running(again)["profiles"] == _with_shared_arguments(running(first)["profiles"], again)
    assert again.config.extenders == first.config.extenders
    assert losses(first) == []


def _with_shared_arguments(profiles: list[dict[str, Any]], again: Emulation) -> list[dict[str, Any]]:
    """Arguments of a file are those of a plugin wherever it runs, and say what was left to the default before."""
    for profile, read in zip(profiles, running(again)["profiles"], strict=True):
        for entries, others in _pairs(profile, read):
            for entry, other in zip(entries, others, strict=True):
                given, found = entry.get("args", {}), other.get("args", {})
                assert given.items() <= found.items()
                assert set(found) - set(given) <= {"hardPodAffinityWeight", "bindTimeoutSeconds", *_LABELS}
                if found:
                    entry["args"] = found
    return profiles


_LABELS = ("presentLabels", "absentLabelsPreference", "affinityLabels")


def _pairs(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[list[Any], list[Any]]]:
    if "plugins" in one:
        return [(one["plugins"][point], other["plugins"][point]) for point in one["plugins"]]
    return [(one[field], other[field]) for field in ("predicates", "priorities")]


def test_settings_around_the_plugins_stay() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 30,
        "bindTimeoutSeconds": 7,
        "disablePreemption": True,
        "leaderElection": {"leaderElect": False},
        "plugins": {"filter": {"enabled": [{"name": "NodeLabel"}]}},
        "pluginConfig": [{"name": "NodeLabel", "args": {"presentLabels": ["disk"]}}],
    }
    found = manifest_of_then(emulated("1.17", config=config))
    assert {name: found[name] for name in config if name != "leaderElection"} == {
        name: item for name, item in config.items() if name != "leaderElection"
    }
    assert found["leaderElection"]["leaderElect"] is False
    assert found["algorithmSource"] == {"provider": "DefaultProvider"}


def test_what_no_predicate_looks_at_is_shown_all_the_same() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
        "kind": "KubeSchedulerConfiguration",
        "algorithmSource": {"policy": {"file": {"path": "/etc/policy.json"}}},
        "bindTimeoutSeconds": 7,
        "hardPodAffinitySymmetricWeight": 9,
    }
    policy = {"kind": "Policy", "predicates": [], "priorities": []}
    for version in ("1.13", "1.14", "1.17", "1.18"):
        found = manifest_of_then(emulated(version, config=config, policy=policy))
        assert config.items() <= found.items()


def test_keys_of_extenders_are_not_told() -> None:
    tls = {"keyData": "c2VjcmV0", "certData": "Y2VydA=="}
    extender = {"urlPrefix": "https://e", "filterVerb": "filter", "enableHTTPS": True, "tlsConfig": tls}
    found = emulated("1.14", policy={"kind": "Policy", "extenders": [extender]})
    told = json.dumps(running(found)) + " ".join(text for _, text in start_lines(found))
    assert "https://e" in told
    assert "c2VjcmV0" not in told


def test_what_no_file_of_1_19_can_say_is_told() -> None:
    found = emulated("1.19", policy={"kind": "Policy", "alwaysCheckAllPredicates": True})
    assert losses(found) == ["alwaysCheckAllPredicates: has no field in this version"]
    named = emulated("1.18", policy={"kind": "Policy", "alwaysCheckAllPredicates": True}, reference=REFERENCE)
    assert losses(named) == []


def test_a_written_configuration_says_what_runs(tmp_path: Path, policy_file: Path) -> None:
    written = tmp_path / "written.yaml"
    options = read_options(parse_flags(["--emulate=1.17", f"--policy-config-file={policy_file}"]))
    write_configuration(options.configuration, written, options.emulation)
    head, *_ = written.read_text().splitlines()
    assert head == f"# kube-scheduler v1.17 runs 9 filter plugins and 3 score plugins (the Policy in {policy_file})."
    assert yaml.safe_load(written.read_text())["algorithmSource"] == {"policy": {"file": {"path": str(policy_file)}}}
    again = read_options(parse_flags(["--emulate=1.17", f"--config={written}"]))
    assert again.emulation is not None
    assert options.emulation is not None
    assert [plugin.name for plugin in again.emulation.profiles[0].filters] == [
        plugin.name for plugin in options.emulation.profiles[0].filters
    ]


# -- to a reader -------------------------------------------------------------------------------------------------------


def test_predicates_and_priorities_of_1_14(policy_file: Path) -> None:
    result = command("config", "view", "--emulate", "1.14", "--policy-config-file", policy_file)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"kube-scheduler v1.14 runs 5 predicates and 3 priorities (the Policy in {policy_file})."
    assert lines[2:8] == [
        "PREDICATE               ARGUMENTS",
        "CheckNodeUnschedulable",
        'GeneralPredicates       {"ignoredResources": ["example.com/gpu"]}',
        "PodToleratesNodeTaints",
        'CheckServiceAffinity    {"affinityLabels": ["zone"]}',
        "CheckVolumeBinding",
    ]
    assert lines[9:13] == [
        "PRIORITY                 WEIGHT  ARGUMENTS",
        "MostRequestedPriority    2",
        'NoSsd                    3       {"absentLabelsPreference": ["ssd"]}',
        "TaintTolerationPriority  1",
    ]
    assert "extender http://e                            filter" in lines


@pytest.mark.parametrize(
    ("version", "points"),
    [
        ("1.17", ["filter", "score"]),
        ("1.18", ["queueSort", "preFilter", "filter", "preScore", "score", "bind"]),
        (
            "1.19",
            [
                *("queueSort", "preFilter", "filter", "postFilter", "preScore"),
                *("score", "reserve", "preBind", "bind"),
            ],
        ),
    ],
)
def test_plugins_in_the_order_of_a_cycle(version: str, points: list[str]) -> None:
    result = command("config", "view", "--emulate", version)
    rows = [line.split() for line in result.stdout.split("\n\n")[1].splitlines()]
    assert rows[0][:3] == ["POINT", "PLUGIN", "WEIGHT"]
    assert list(dict.fromkeys(row[0] for row in rows[1:])) == points


@pytest.mark.parametrize(
    ("version", "point", "expected"),
    [
        ("1.18", "preFilter", ["NodeResourcesFit", "NodePorts", "InterPodAffinity", "PodTopologySpread"]),
        (
            "1.18",
            "preScore",
            ["InterPodAffinity", "DefaultPodTopologySpread", "TaintToleration", "PodTopologySpread"],
        ),
        ("1.19", "preScore", ["InterPodAffinity", "PodTopologySpread", "TaintToleration", "SelectorSpread"]),
        (
            "1.19",
            "score",
            [
                *("NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity"),
                *("NodeResourcesMostAllocated", "NodeAffinity", "NodePreferAvoidPods"),
                *("PodTopologySpread", "TaintToleration", "SelectorSpread"),
            ],
        ),
    ],
)
def test_plugins_in_the_order_of_the_provider(version: str, point: str, expected: list[str]) -> None:
    result = command(
        *("config", "view", "--emulate", version, "--algorithm-provider", "ClusterAutoscalerProvider", "-o", "json")
    )
    [profile] = json.loads(result.stdout)["profiles"]
    assert [entry["name"] for entry in profile["plugins"][point]] == expected


def test_plugins_of_a_policy_follow_its_predicates_and_priorities(policy_file: Path) -> None:
    result = command("config", "view", "--emulate", "1.19", "--policy-config-file", policy_file, "-o", "yaml")
    record = yaml.safe_load(result.stdout)
    [profile] = record["profiles"]
    names = {point: [entry["name"] for entry in entries] for point, entries in profile["plugins"].items()}
    assert names["preFilter"] == ["NodeResourcesFit", "NodePorts", "ServiceAffinity", "VolumeBinding"]
    assert names["preScore"] == ["TaintToleration"]
    assert [(entry["name"], entry["weight"]) for entry in profile["plugins"]["score"]] == [
        ("NodeResourcesMostAllocated", 2),
        ("NodeLabel", 3),
        ("TaintToleration", 1),
    ]
    assert record["extenders"][0]["urlPrefix"] == "http://e"


def test_a_configuration_that_names_a_policy_is_viewed(tmp_path: Path, policy_file: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    source = f"algorithmSource: {{policy: {{file: {{path: {policy_file}}}}}}}\n"
    path.write_text(
        f"apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n{source}"
        "plugins: {permit: {enabled: [{name: Mine}]}}\n"
    )
    result = command("config", "view", "--emulate", "1.14", "-f", path)
    assert result.stdout.startswith("kube-scheduler v1.14 runs 5 predicates and 3 priorities")
    assert result.stderr == "warning: plugins: v1.14 has no plugins to configure: passed over\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param((), "Missing option '-f' / '--filename', or --emulate", id="nothing to view"),
        pytest.param(("-f", "x", "--algorithm-provider", "y"), "--algorithm-provider needs --emulate", id="no version"),
        pytest.param(("-f", "x", "-o", "text"), "-o text needs --emulate", id="no text of today's"),
        pytest.param(
            ("--emulate", "1.19", "--algorithm-provider", "Mine"),
            'couldn\'t create scheduler using provider "Mine": algorithm provider "Mine" is not registered',
            id="refused",
        ),
        pytest.param(("--emulate", "1.2"), 'version "1.2" is not known', id="no such version"),
    ],
)
def test_what_cannot_be_viewed_is_told_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = command("config", "view", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


# -- in the logs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_the_provider_is_logged_as_then(version: str) -> None:
    lines = list(start_lines(emulated(version, provider="ClusterAutoscalerProvider")))
    assert (2, "Creating scheduler from algorithm provider 'ClusterAutoscalerProvider'") in lines
    sets = [text for level, text in lines if level == 2 and text.startswith("Creating scheduler with fit predicates")]
    assert len(sets) == (1 if version in ("1.13", "1.14", "1.17") else 0)
    assert all("MostRequestedPriority:{}" in text for text in sets)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "1.14",
            [
                "Using predicates from algorithm provider 'DefaultProvider'",
                "Registering priority: EqualPriority",
                "Priority type EqualPriority already registered, reusing.",
                "Registering priority: NoSsd",
            ],
        ),
        (
            "1.17",
            [
                "Using predicates from algorithm provider 'DefaultProvider'",
                "Skip registering priority: EqualPriority",
                "Registering priority: NoSsd",
            ],
        ),
        (
            "1.19",
            [
                "Using predicates from algorithm provider 'DefaultProvider'",
                "Skip registering priority: EqualPriority",
                "Registering priority: NoSsd",
            ],
        ),
    ],
)
def test_a_policy_is_logged_as_then(version: str, expected: list[str]) -> None:
    equal = {"name": "EqualPriority", "weight": 1}
    policy = {"kind": "Policy", "priorities": [equal, {"name": "NoSsd", "weight": 3, "argument": PREFERENCE}]}
    first, *others, last = [text for level, text in start_lines(emulated(version, policy=policy)) if level == 2]
    assert first.startswith('Creating scheduler from configuration: {"priorities":[{"name":"EqualPriority","weight":1}')
    assert others == expected
    sets = {
        "1.14": "priority functions 'map[EqualPriority:{} NoSsd:{}]'",
        "1.17": "priority functions 'map[NodeLabel:{}]'",
        "1.19": "priority functions 'map[NodeLabel:3]'",
    }
    assert last.endswith(sets[version])


@pytest.mark.parametrize(
    ("version", "gates", "expected"),
    [
        ("1.13", {}, ["TaintNodesByCondition is enabled, PodToleratesNodeTaints predicate is mandatory"]),
        ("1.14", {"TaintNodesByCondition": False}, []),
        ("1.17", {"ResourceLimitsPriorityFunction": True}, ["Registering resourcelimits priority function"]),
        ("1.18", {}, ["Registering EvenPodsSpread predicate and priority function"]),
        ("1.19", {}, ["Registering SelectorSpread plugin"]),
    ],
)
def test_what_gates_do_is_logged_at_every_verbosity(version: str, gates: dict[str, bool], expected: list[str]) -> None:
    assert [text for level, text in start_lines(emulated(version, gates=gates)) if level == 0] == expected


# -- in the documents --------------------------------------------------------------------------------------------------


def test_the_page_shows_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preference = {"labelPreference": {"label": "disk", "presence": True}}
    policy = {
        "kind": "Policy",
        "predicates": [{"name": "GeneralPredicates"}],
        "priorities": [
            {"name": "MostRequestedPriority", "weight": 2},
            {"name": "disk", "weight": 1, "argument": preference},
        ],
    }
    (tmp_path / "policy.json").write_text(json.dumps(policy))
    page = (Path(__file__).parents[3] / "docs" / "reference" / "emulation.md").read_text()
    monkeypatch.chdir(tmp_path)
    shown = command("config", "view", "--emulate", "1.14", "--policy-config-file", "policy.json").stdout
    assert shown.strip() in page
