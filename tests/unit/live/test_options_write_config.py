"""`--write-config-to` writes what the scheduler works with."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kubesched.live.options import FlagError, configuration_yaml, parse_flags, read_options, write_configuration
from kubesched.scheduler import config


def test_the_file_gives_the_same_configuration_again(tmp_path: Path) -> None:
    path = tmp_path / "written.yaml"
    options = read_options(parse_flags([f"--write-config-to={path}", "--leader-elect-lease-duration=1m"]))
    assert options.write_config_to == path
    write_configuration(options.configuration, path)
    again = config.load(path.read_bytes(), "written")
    assert configuration_yaml(again) == configuration_yaml(options.configuration) == path.read_text()
    assert again.leader_election.lease_duration == config.Duration.of_seconds(60)


def test_only_its_owner_can_read_it_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "written.yaml"
    path.write_text("before")
    path.chmod(0o644)
    write_configuration(config.default(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["written.yaml"]


def test_arguments_are_those_of_enabled_plugins_by_name() -> None:
    text = """{
      "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
      "profiles": [{
        "plugins": {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}},
        "pluginConfig": [
          {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 5}},
          {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}}
        ]
      }]
    }"""
    written = config.load(configuration_yaml(config.load(text, "test")), "written")
    names = [entry.name for entry in written.profiles[0].plugin_config]
    assert names == sorted(names)
    assert "VolumeBinding" in names
    assert "InterPodAffinity" not in names


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match=r"--write-config-to: open .*written\.yaml: No such file or directory"):
        write_configuration(config.default(), tmp_path / "absent" / "written.yaml")
