"""kubesched can be started with the flags and files that deploy/ gives it."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy_files import BASE, DEPLOY, container_of, only, resources_of

from kubesched.live.options.command import parse_flags
from kubesched.live.options.flag import FlagUse
from kubesched.live.options.flag_table import FLAGS_BY_NAME
from kubesched.live.options.read import read_options
from kubesched.scheduler.config import KubeSchedulerConfiguration, default, load, resolve_profiles
from kubesched.scheduler.plugins.registry import capabilities

DEPLOYMENT = only(resources_of(BASE), "Deployment")
ARGUMENTS: list[str] = container_of(DEPLOYMENT)["args"]
OWN_SCHEDULER: str = DEPLOYMENT["spec"]["template"]["spec"]["schedulerName"]
MOUNTED = "/etc/kubesched/config.yaml"
BESIDE, REPLACE = BASE / "config.yaml", DEPLOY / "overlays" / "replace" / "config.yaml"
CONFIGURATIONS = [pytest.param(BESIDE, id="beside"), pytest.param(REPLACE, id="replace")]


def loaded(path: Path) -> KubeSchedulerConfiguration:
    return load(path.read_bytes(), str(path))


def scheduler_names(path: Path) -> list[str]:
    return [profile.scheduler_name for profile in loaded(path).profiles]


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_every_flag_exists_and_does_something(argument: str) -> None:
    flag = FLAGS_BY_NAME[argument.removeprefix("--").partition("=")[0]]
    assert flag.use is FlagUse.USED
    assert not flag.is_deprecated


@pytest.mark.parametrize("path", CONFIGURATIONS)
def test_the_configuration_can_be_used(path: Path) -> None:
    assert resolve_profiles(loaded(path), capabilities(), str(path))


@pytest.mark.parametrize("path", CONFIGURATIONS)
def test_the_command_line_is_accepted_without_a_warning(path: Path) -> None:
    arguments = [argument.replace(MOUNTED, str(path)) for argument in ARGUMENTS]
    assert arguments != ARGUMENTS, "the configuration is given by a flag"
    options = read_options(parse_flags(arguments))
    assert options.warnings == ()
    assert options.configuration == loaded(path)
    assert options.leader_election.leader_elect
    assert options.kubeconfig is None, "it logs in by the account of its pod"


def test_the_configuration_is_mounted_where_the_flag_says() -> None:
    (mount,) = [mount for mount in container_of(DEPLOYMENT)["volumeMounts"] if mount["name"] == "config"]
    assert f"--config={mount['mountPath']}/{BESIDE.name}" in ARGUMENTS
    assert f"{mount['mountPath']}/{BESIDE.name}" == MOUNTED
    assert BESIDE.name == REPLACE.name


def test_beside_kube_scheduler_nothing_of_it_is_taken() -> None:
    ours, theirs = loaded(BESIDE), default()
    assert scheduler_names(BESIDE) == ["kubesched"]
    assert ours.leader_election.resource_name == "kubesched" != theirs.leader_election.resource_name


def test_beside_kube_scheduler_it_does_not_wait_for_itself() -> None:
    assert OWN_SCHEDULER not in scheduler_names(BESIDE)


def test_in_the_place_of_kube_scheduler_pods_and_lease_are_its_own() -> None:
    ours, theirs = loaded(REPLACE), default()
    assert scheduler_names(REPLACE) == [profile.scheduler_name for profile in theirs.profiles]
    assert ours.leader_election == theirs.leader_election


def test_in_the_place_of_kube_scheduler_the_leader_binds_the_next_copy() -> None:
    """And so it must not go before that one is there: `test_deploy_manifests` looks at the strategy."""
    assert OWN_SCHEDULER in scheduler_names(REPLACE)
