"""Every example has what its README says: files, commands that run, and a plugin that passes the battery."""

from __future__ import annotations

import re
from typing import Any

import pytest
from click.testing import CliRunner
from example_plugins import EXAMPLES, PLUGIN_FILES, plugin_of

from kubesched.cli.main import main
from kubesched.plugin_tools.check import check_plugin, subject_of

ARGS: dict[str, dict[str, Any]] = {"carbon-aware": {"source": str(EXAMPLES / "carbon-aware" / "grams.json")}}
COMMANDS = [
    command
    for folder in PLUGIN_FILES
    for command in re.findall(r"^kubesched (.*)$", (EXAMPLES / folder / "README.md").read_text(), flags=re.M)
]
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("folder", PLUGIN_FILES)
def test_the_plugin_passes_the_battery(folder: str) -> None:
    report = check_plugin(subject_of(plugin_of(folder), ARGS.get(folder)), n_cases=20, costs=False)
    assert report.has_passed, report.as_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_readme_run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    arguments = command.split()
    if arguments[:2] == ["plugin", "check"]:
        arguments += ["--cases", "1", "--only", "answers"]
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize("page", sorted(EXAMPLES.rglob("README.md")), ids=lambda path: path.parent.name)
def test_every_link_of_a_readme_leads_somewhere(page: Any) -> None:
    assert [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()] == []


def test_every_example_is_in_the_list() -> None:
    listed = re.findall(r"^\| \[([^\]]+)\]", (EXAMPLES / "README.md").read_text(), flags=re.M)
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
