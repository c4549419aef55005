"""Which of file, flag and default counts: as in kube-scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubesched.live.options import FlagError, parse_flags
from kubesched.live.options.effective import effective_configuration, ignored_flags
from kubesched.scheduler import config
from kubesched.scheduler.config import ConfigError, Duration, KubeSchedulerConfiguration

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FILE = f"""{HEAD}
leaderElection: {{leaseDuration: 40s, resourceName: mine}}
clientConnection: {{kubeconfig: /from/file, qps: 7}}
enableProfiling: false
parallelism: 3
"""


def _configuration(tmp_path: Path, text: str, *flags: str) -> KubeSchedulerConfiguration:
    path = tmp_path / "scheduler.yaml"
    path.write_text(text)
    return effective_configuration(parse_flags([f"--config={path}", *flags]))


def _seen(configuration: KubeSchedulerConfiguration, path: str) -> Any:
    value: Any = configuration
    for name in path.split("."):
        value = getattr(value, name)
    return str(value) if isinstance(value, Duration) else value


def test_without_file_and_flags_there_are_the_defaults() -> None:
    assert effective_configuration({}) == config.default()


@pytest.mark.parametrize(
    ("flag", "path", "expected"),
    [
        pytest.param("--kubeconfig=/k", "client_connection.kubeconfig", "/k", id="kubeconfig"),
        pytest.param("--kube-api-qps=5", "client_connection.qps", 5.0, id="qps"),
        pytest.param("--kube-api-burst=6", "client_connection.burst", 6, id="burst"),
        pytest.param(
            "--kube-api-content-type=application/json",
            "client_connection.content_type",
            "application/json",
            id="content type",
        ),
        pytest.param("--profiling=false", "enable_profiling", False, id="profiling"),
        pytest.param("--profiling=false", "enable_contention_profiling", True, id="profiling and nothing more"),
        pytest.param("--contention-profiling=false", "enable_contention_profiling", False, id="contention profiling"),
        pytest.param("--leader-elect=false", "leader_election.leader_elect", False, id="leader election"),
        pytest.param("--leader-elect-lease-duration=1m", "leader_election.lease_duration", "1m0s", id="lease"),
        pytest.param("--leader-elect-renew-deadline=9s", "leader_election.renew_deadline", "9s", id="deadline"),
        pytest.param("--leader-elect-retry-period=3s", "leader_election.retry_period", "3s", id="retry"),
        pytest.param("--leader-elect-resource-name=n", "leader_election.resource_name", "n", id="name"),
        pytest.param(
            "--leader-elect-resource-namespace=ns", "leader_election.resource_namespace", "ns", id="namespace"
        ),
    ],
)
def test_without_a_file_flags_override_the_defaults(flag: str, path: str, expected: object) -> None:
    assert _seen(effective_configuration(parse_flags([flag])), path) == expected


@pytest.mark.parametrize(
    ("flags", "path", "expected"),
    [
        pytest.param([], "leader_election.lease_duration", "40s", id="the file counts"),
        pytest.param([], "parallelism", 3, id="for all that has no flag"),
        pytest.param(
            ["--leader-elect-lease-duration=20s"], "leader_election.lease_duration", "20s", id="a flag beats it"
        ),
        pytest.param(["--leader-elect-lease-duration=20s"], "leader_election.resource_name", "mine", id="and it alone"),
        pytest.param(["--leader-elect=false"], "leader_election.leader_elect", False, id="turned off by a flag"),
        pytest.param(["--kubeconfig=/k"], "client_connection.kubeconfig", "/from/file", id="kubeconfig is ignored"),
        pytest.param(["--kube-api-qps=9"], "client_connection.qps", 7.0, id="qps is ignored"),
        pytest.param(["--kube-api-burst=9"], "client_connection.burst", 100, id="even where the file says nothing"),
        pytest.param(["--profiling=true"], "enable_profiling", False, id="profiling is ignored"),
    ],
)
def test_with_a_file_only_flags_of_leader_election_override(
    tmp_path: Path, flags: list[str], path: str, expected: object
) -> None:
    assert _seen(_configuration(tmp_path, FILE, *flags), path) == expected


def test_flags_that_a_file_makes_void_are_named() -> None:
    given = parse_flags(["--config=f", "--kubeconfig=k", "--profiling=false", "--leader-elect=false"])
    assert list(ignored_flags(given)) == [
        "--profiling is ignored because --config is given",
        "--kubeconfig is ignored because --config is given",
    ]
    assert not list(ignored_flags(parse_flags(["--kubeconfig=k"])))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("leaderElection: {leaseDuration: 5s}", id="what is wrong in the file"),
        pytest.param("leaderElection: {renewDeadline: 20s}", id="what is wrong with a default"),
    ],
)
def test_a_flag_may_right_what_it_overrides(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        _configuration(tmp_path, HEAD + text)
    assert _configuration(tmp_path, HEAD + text, "--leader-elect-lease-duration=30s")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(
            ["--leader-elect-lease-duration=10s"],
            'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
            id="a lease not longer than the deadline",
        ),
        pytest.param(
            ["--leader-elect-retry-period=0s"],
            'leaderElection.retryPeriod: Invalid value: "0s": must be greater than zero',
            id="no time between tries",
        ),
        pytest.param(
            ["--leader-elect-retry-period=9s"],
            'leaderElection.renewDeadline: Invalid value: "10s": '
            "renewDeadline must be greater than retryPeriod*JitterFactor",
            id="no time for a second try",
        ),
        pytest.param(
            ["--leader-elect-resource-name="], "leaderElection.resourceName: Required value", id="no name of the lease"
        ),
        pytest.param(
            ["--leader-elect-resource-lock=endpoints"],
            'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
            id="a lock of another kind",
        ),
        pytest.param(
            ["--kube-api-burst=-1"],
            "clientConnection.burst: Invalid value: -1: must be non-negative",
            id="a burst below 0",
        ),
    ],
)
def test_what_flags_come_to_is_checked(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        effective_configuration(parse_flags(flags))
    assert str(error.value) == message


def test_nothing_is_checked_of_an_election_that_does_not_take_place() -> None:
    assert effective_configuration(parse_flags(["--leader-elect=false", "--leader-elect-retry-period=0s"]))


def test_mistakes_in_the_file_are_told_with_its_name(tmp_path: Path) -> None:
    text = f"{HEAD}parallelism: 1\nparallelism: 2\n"
    with pytest.raises(ConfigError, match=r"scheduler\.yaml: parallelism: duplicate field"):
        _configuration(tmp_path, text, "--leader-elect=false")
    with pytest.raises(ConfigError, match=r"scheduler\.yaml: apiVersion: Required value"):
        _configuration(tmp_path, "kind: KubeSchedulerConfiguration", "--leader-elect=false")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match=r"--config: open .*absent\.yaml: No such file or directory"):
        effective_configuration(parse_flags([f"--config={tmp_path}/absent.yaml"]))
