"""The guide for plugin authors can be followed: its files are written, its commands run, its answers compared."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched.framework import reference_page
from kubesched.framework.extension_points import EXTENSION_POINTS

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "write-a-plugin.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.(?:py|yaml))\n")


class Block(NamedTuple):
    language: str
    text: str


BLOCKS = [Block(*found) for found in _BLOCK.findall(GUIDE.read_text())]
COMMANDS = [
    pytest.param(line, BLOCKS[index + 1].text if BLOCKS[index + 1].language == "text" else None, id=line)
    for index, block in enumerate(BLOCKS)
    if block.language == "sh"
    for line in block.text.splitlines()
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for block in BLOCKS:
        if name := _FILE.match(block.text):
            (tmp_path / name[1]).write_text(block.text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("quiet", "from_python"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "answer"), COMMANDS)
def test_every_command_of_the_guide_answers_as_it_says(command: str, answer: str | None) -> None:
    program, *arguments = shlex.split(command)
    assert program == "kubesched"
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == (2 if "invalid" in command else 0), result.output
    if answer is not None:
        assert result.output.rstrip() == answer.rstrip()


def test_every_plugin_of_the_guide_can_be_used(folder: Path) -> None:
    for file in sorted(folder.glob("quiet*.py")):
        result = CliRunner().invoke(main, ["simulate", "-f", "cluster.yaml", "--plugin", file.name])
        assert result.exit_code == 0, result.output
        assert "Pod web-1  1 Running  day" in " ".join(result.stdout.split(" ")).replace("    ", "  ")


def test_the_library_does_what_the_guide_says(folder: Path) -> None:
    command = [sys.executable, "from_python.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("['day']\n1 pod on 2 nodes: 1 Running.")


def test_the_page_of_the_plugin_api_is_up_to_date() -> None:
    stored = (GUIDE.parents[1] / "reference" / "plugin-api.md").read_text()
    assert stored == reference_page.page(), "run `make docs`"


def test_the_guide_names_every_stage_and_method() -> None:
    text = GUIDE.read_text()
    for point, methods in EXTENSION_POINTS.items():
        assert f"| {point} |" in text
        assert all(f"`{method}(" in text for method in methods)
