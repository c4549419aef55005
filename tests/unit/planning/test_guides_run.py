"""The guides on capacity, comparing, checking and autoscaling: their commands run, and print what the guide shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ("capacity", "compare", "check", "autoscaling")
_SHOWN = re.compile(r"```console\n\$ kubesched ([^\n]*)\n```\n\n```text\n(.*?)```", re.DOTALL)
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_RUN = re.compile(r"```sh\nkubesched ([^\n]*)\n```")


def _page(name: str) -> str:
    return (ROOT / "docs" / "guides" / f"{name}.md").read_text()


@pytest.mark.parametrize("name", GUIDES)
def test_the_guide_shows_what_is_printed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = _SHOWN.findall(_page(name))
    assert shown
    for command, text in shown:
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code in (0, 1), result.stderr
        assert result.stdout.rstrip() == text.rstrip()


@pytest.mark.parametrize("name", GUIDES)
def test_the_guide_s_other_commands_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for command in _RUN.findall(_page(name)):
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code == 0, result.stderr
    for code in _PYTHON.findall(_page(name)):
        exec(compile(code, name, "exec"), {})
