"""What the guide shows works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from served_plugins import by_names, cluster_of

from kubesched.cli.main import main
from kubesched.plugin_tools.extender_server.outside_profiles import build_outside_profiles
from kubesched.plugin_tools.extender_server.served_cluster import ServedCluster
from kubesched.plugin_tools.extender_server.verdicts import PluginVerdictService
from kubesched.scheduler.config import default
from kubesched.scheduler.plugin_loading import assemble
from kubesched.testing import make

DOCS = Path(__file__).parents[4] / "docs"
GUIDE = (DOCS / "guides" / "python-plugins-from-kube-scheduler.md").read_text()
REFERENCE = (DOCS / "reference" / "extender-server.md").read_text()


def shown(language: str) -> str:
    return GUIDE.partition(f"```{language}\n")[2].partition("```")[0]


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "disk_tier.py"
    path.write_text(shown("python"))
    return path


def test_the_plugin_of_the_guide_decides_as_it_says(plugin: Path) -> None:
    cluster = cluster_of(make.node("a", labels={"tier": "gold"}), make.node("b", labels={"tier": "bronze"}))
    built = assemble(default(), files=[plugin])
    profiles = build_outside_profiles(cluster, built.config, built.registry, built.outside.classes.keys())
    service = PluginVerdictService(ServedCluster(cluster, is_followed=True), profiles)
    assert service.filter(by_names("a", "b")).failed_for_good == {"b": "node(s) of tier bronze"}
    assert service.prioritize(by_names("a", "b")) == [10, 0]


def test_the_configuration_of_the_guide_is_the_one_that_is_printed(plugin: Path) -> None:
    result = CliRunner().invoke(main, ["extender", "--plugin", str(plugin), "--print-config"])
    without_token = re.sub("kubesched:[^@]{32,}@", "kubesched:<token>@", result.stdout)
    assert without_token == shown("yaml")


def test_every_option_is_in_the_reference() -> None:
    command = main.get_command(main.make_context("kubesched", ["extender"]), "extender")
    assert command is not None
    options = {name for parameter in command.params for name in parameter.opts}
    assert {name for name in options if f"`{name}" not in REFERENCE} == set()
