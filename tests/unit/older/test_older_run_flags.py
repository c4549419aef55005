"""Flags of older kube-schedulers for `kubesched run`: accepted with what they became."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kubesched.k8s.client.errors import ClientConfigError, Unreachable
from kubesched.live.live_scheduler import policy_in
from kubesched.live.options import FlagError, RunOptions, parse_flags, read_options
from kubesched.older.config import PolicyConfigMap
from kubesched.scheduler.config import ConfigError

POLICY = '{"kind": "Policy", "predicates": [], "priorities": [{"name": "MostRequestedPriority", "weight": 2}]}'


class ScriptedServer:
    """Answers every request alike."""

    def __init__(self, answer: bytes | Exception) -> None:
        self.asked: list[str] = []
        self._answer = answer

    async def request(self, method: str, path: str, **_others: object) -> bytes:
        self.asked.append(f"{method} {path}")
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def options(*flags: str, policy: bytes | None = None) -> RunOptions:
    return read_options(parse_flags(flags), policy)


def test_the_name_of_the_scheduler() -> None:
    found = options("--scheduler-name=mine", "--emulate=1.17")
    assert [profile.scheduler_name for profile in found.configuration.profiles] == ["mine"]
    assert found.emulation is not None
    assert [profile.scheduler_name for profile in found.emulation.profiles] == ["mine"]


def test_the_weight_of_hard_affinity_becomes_an_argument() -> None:
    [profile] = options("--hard-pod-affinity-symmetric-weight=42").configuration.profiles
    [args] = [entry.args for entry in profile.plugin_config if entry.name == "InterPodAffinity"]
    assert getattr(args, "hard_pod_affinity_weight", None) == 42


def test_a_weight_out_of_range_is_refused() -> None:
    with pytest.raises(FlagError, match="101 is not in the range 0-100"):
        options("--hard-pod-affinity-symmetric-weight=101")


def test_the_lock_object_is_the_resource_of_leader_election() -> None:
    found = options("--lock-object-name=lock", "--lock-object-namespace=ns").leader_election
    assert (found.resource_name, found.resource_namespace) == ("lock", "ns")


@pytest.mark.parametrize("flag", ["--port=10251", "--address=0.0.0.0", "--failure-domains=zone"])
def test_what_has_no_effect_is_warned_about(flag: str) -> None:
    assert any(flag in warning and "has no effect" in warning for warning in options(flag).warnings)


def test_a_policy_file_is_translated_with_notes(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(POLICY)
    found = options(f"--policy-config-file={path}")
    assert found.emulation is None
    assert any("NodeResourcesMostAllocated" in warning for warning in found.warnings)


def test_a_policy_file_is_emulated_on_request(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(POLICY)
    found = options(f"--policy-config-file={path}", "--emulate=v1.14.10", "--feature-gates=TaintNodesByCondition=false")
    assert found.emulation is not None
    [profile] = found.emulation.profiles
    assert [plugin.name for plugin in profile.filters] == ["CheckNodeCondition"]
    assert [plugin.name for plugin in profile.scores] == ["MostRequestedPriority"]


def test_a_file_that_cannot_be_read_is_a_mistake() -> None:
    with pytest.raises(FlagError, match="--policy-config-file: open /no/such"):
        options("--policy-config-file=/no/such")


def test_an_unknown_version_is_a_mistake() -> None:
    with pytest.raises(FlagError, match=r'--emulate: version "1\.2" is not known'):
        options("--emulate=1.2")


def test_a_config_map_is_to_be_read_first() -> None:
    flags = ["--policy-configmap=p", "--policy-configmap-namespace=ns"]
    assert options(*flags).policy_config_map == PolicyConfigMap("ns", "p")
    found = options(*flags, "--emulate=1.19", policy=POLICY.encode())
    assert found.policy_config_map is None
    assert found.emulation is not None
    assert [plugin.name for plugin in found.emulation.profiles[0].scores] == ["NodeResourcesMostAllocated"]


def _older_file(folder: Path, source: str, api: str = "v1alpha1") -> str:
    path = folder / "scheduler.yaml"
    header = f"apiVersion: kubescheduler.config.k8s.io/{api}\nkind: KubeSchedulerConfiguration\n"
    path.write_text(f"{header}algorithmSource: {source}\n")
    return f"--config={path}"


@pytest.mark.parametrize(
    ("version", "score"),
    [
        ("1.13", "MostRequestedPriority"),
        ("1.14", "MostRequestedPriority"),
        ("1.17", "NodeResourcesMostAllocated"),
        ("1.18", "NodeResourcesMostAllocated"),
    ],
)
def test_a_configuration_file_may_name_the_file_of_a_policy(tmp_path: Path, version: str, score: str) -> None:
    (tmp_path / "policy.json").write_text(POLICY)
    config = _older_file(tmp_path, f"{{policy: {{file: {{path: {tmp_path}/policy.json}}}}}}")
    found = options(config, f"--emulate={version}")
    assert found.policy_config_map is None
    assert found.emulation is not None
    assert [(plugin.name, plugin.weight) for plugin in found.emulation.profiles[0].scores] == [(score, 2)]


@pytest.mark.parametrize("api", ["v1alpha1", "v1alpha2"])
def test_a_configuration_file_may_name_the_config_map_of_a_policy(tmp_path: Path, api: str) -> None:
    config = _older_file(tmp_path, "{policy: {configMap: {namespace: ns, name: p}}}", api)
    assert options(config, "--emulate=1.18").policy_config_map == PolicyConfigMap("ns", "p")
    found = options(config, "--emulate=1.18", policy=POLICY.encode())
    assert found.policy_config_map is None
    assert found.emulation is not None
    assert [plugin.name for plugin in found.emulation.profiles[0].scores] == ["NodeResourcesMostAllocated"]


V1BETA1 = "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n"


def test_in_1_19_a_policy_counts_beside_a_configuration_file(tmp_path: Path) -> None:
    config, policy = tmp_path / "c.yaml", tmp_path / "policy.json"
    policy.write_text(POLICY)
    config.write_text(f"{V1BETA1}percentageOfNodesToScore: 30\nprofiles: [{{schedulerName: mine}}]\n")
    found = options(f"--config={config}", f"--policy-config-file={policy}", "--emulate=1.19")
    assert found.emulation is not None
    [profile] = found.emulation.profiles
    assert (profile.scheduler_name, [plugin.name for plugin in profile.scores]) == (
        "mine",
        ["NodeResourcesMostAllocated"],
    )
    assert found.configuration.percentage_of_nodes_to_score == 30
    assert not any("ignored" in warning for warning in found.warnings)
    config.write_text(f"{V1BETA1}profiles: [{{plugins: {{score: {{disabled: [{{name: ImageLocality}}]}}}}}}]\n")
    with pytest.raises(ConfigError, match="cannot set a Plugin config and Policy config"):
        options(f"--config={config}", f"--policy-config-file={policy}", "--emulate=1.19")


def test_in_1_19_a_provider_sets_the_default_plugins_of_a_configuration_file(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(f"{V1BETA1}profiles: [{{plugins: {{score: {{disabled: [{{name: ImageLocality}}]}}}}}}]\n")
    flag = "--algorithm-provider=ClusterAutoscalerProvider"
    found = options(f"--config={config}", flag, "--emulate=1.19")
    assert found.emulation is not None
    names = [plugin.name for plugin in found.emulation.profiles[0].scores]
    assert "NodeResourcesMostAllocated" in names
    assert "ImageLocality" not in names
    config.write_text(f"{V1BETA1}algorithmSource: {{provider: DefaultProvider}}\n")
    with pytest.raises(ConfigError, match='algorithmSource: unknown field "algorithmSource"'):
        options(f"--config={config}", "--emulate=1.19")


def test_a_policy_file_that_is_not_there_is_told_as_then(tmp_path: Path) -> None:
    config = _older_file(tmp_path, "{policy: {file: {path: /no/such}}}")
    for flags in ((config,), ("--policy-config-file=/no/such",)):
        with pytest.raises(ConfigError) as refused:
            options(*flags, "--emulate=1.17")
        assert str(refused.value) == "missing policy config file /no/such"


def test_a_policy_goes_before_a_provider(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(POLICY)
    found = options(f"--policy-config-file={path}", "--algorithm-provider=DefaultProvider", "--emulate=1.14")
    assert found.emulation is not None
    assert found.emulation.source.policy is not None


def test_a_legacy_policy_needs_its_file() -> None:
    with pytest.raises(FlagError, match="policyConfigFile: Required value: required when --use-legacy-policy-config"):
        options("--use-legacy-policy-config", "--policy-configmap=p")


@pytest.mark.parametrize(("flags", "how_long"), [(("--emulate=1.14",), 7), ((), 7)])
def test_how_long_volumes_are_waited_for_comes_from_the_file(
    tmp_path: Path, flags: tuple[str, ...], how_long: int
) -> None:
    path = tmp_path / "c.yaml"
    header = "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n"
    path.write_text(f"{header}bindTimeoutSeconds: {how_long}\n")
    found = options(f"--config={path}", *flags)
    if found.emulation is not None:
        [args] = [plugin.args for plugin in found.emulation.profiles[0].filters if plugin.kind == "VolumeBinding"]
        assert args["bindTimeoutSeconds"] == how_long
    else:
        [entry] = [item for item in found.configuration.profiles[0].plugin_config if item.name == "VolumeBinding"]
        assert getattr(entry.args, "bind_timeout_seconds", None) == how_long


def test_a_weight_of_0_for_hard_affinity_was_refused_before_profiles() -> None:
    with pytest.raises(ConfigError, match="invalid hardPodAffinitySymmetricWeight: 0, must be in the range 1-100"):
        options("--hard-pod-affinity-symmetric-weight=0", "--emulate=1.14")
    options("--hard-pod-affinity-symmetric-weight=0", "--emulate=1.19")


def test_the_file_goes_before_the_config_map_on_request(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(POLICY)
    found = options(f"--policy-config-file={path}", "--policy-configmap=p", "--use-legacy-policy-config")
    assert found.policy_config_map is None
    assert any("NodeResourcesMostAllocated" in warning for warning in found.warnings)


def test_next_to_a_configuration_file_they_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    found = options(f"--config={path}", "--scheduler-name=mine")
    assert found.configuration.profiles[0].scheduler_name == "default-scheduler"
    assert "--scheduler-name is ignored because --config is given" in found.warnings


def test_an_older_configuration_file_is_translated(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\nparallelism: 3\n"
    )
    assert options(f"--config={path}").configuration.parallelism == 3


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({"data": {"policy.cfg": POLICY}}, POLICY.encode(), id="under its key"),
        pytest.param({"data": {}}, 'missing policy config map value at key "policy.cfg"', id="without the key"),
    ],
)
def test_a_policy_is_read_from_the_cluster(answer: dict[str, object], expected: bytes | str) -> None:
    server = ScriptedServer(json.dumps(answer).encode())
    where = PolicyConfigMap("kube-system", "p")
    if isinstance(expected, bytes):
        assert asyncio.run(policy_in(server, where)) == expected
    else:
        with pytest.raises(ConfigError, match=expected):
            asyncio.run(policy_in(server, where))
    assert server.asked == ["GET /api/v1/namespaces/kube-system/configmaps/p"]


def test_a_server_that_is_away_is_told_in_one_line() -> None:
    with pytest.raises(ClientConfigError, match="configmap kube-system/p: away"):
        asyncio.run(policy_in(ScriptedServer(Unreachable("away")), PolicyConfigMap("kube-system", "p")))


@pytest.mark.parametrize(("verbosity", "is_logged"), [("2", True), ("1", False)])
def test_the_start_is_logged_before_a_cluster_is_asked(tmp_path: Path, verbosity: str, is_logged: bool) -> None:
    flags = ["--emulate=1.14", f"-v={verbosity}", f"--kubeconfig={tmp_path}/no-such", "--secure-port=0"]
    command = [sys.executable, "-m", "kubesched", "run", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    line = "Creating scheduler from algorithm provider 'DefaultProvider'"
    assert (line in ended.stderr) is is_logged
