"""The command as a whole: what it lists, and how little it loads to do so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kubesched.cli.main import COMMANDS, GROUPS, main


def test_help_lists_every_command() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for heading, commands in GROUPS.items():
        assert f"\n{heading}:\n" in result.stdout
        for name, summary in commands.items():
            assert re.search(rf"^  {name} +{re.escape(summary)}$", result.stdout, re.MULTILINE)  # in one line


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_can_be_loaded_and_says_what_the_list_says(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    command = main.get_command(main.make_context("kubesched", [name]), name)
    assert command is not None and command.help is not None
    assert command.name == name


@pytest.mark.parametrize("arguments", [["--help"], ["explain", "--help"], ["--version"]], ids=" ".join)
def test_asking_for_help_loads_no_engine(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from kubesched.cli.main import main\n"
        f"main({arguments!r})\n"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'msgspec', 'yaml')))\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_an_unknown_command_is_one_line() -> None:
    result = CliRunner().invoke(main, ["explode"])
    assert result.exit_code == 2
    assert result.stderr == 'error: No such command "explode" (try: kubesched --help)\n'


@pytest.mark.parametrize(
    "arguments", [[], *([name] for name in sorted(COMMANDS)), ["config", "validate"]], ids=" ".join
)
def test_h_is_help(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    command: click.Command = main
    for name in arguments:  # click keeps a command's help option as it was first asked for, perhaps by itself in a test
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
        monkeypatch.setattr(command, "_help_option", None)
    result = CliRunner().invoke(main, [*arguments, "-h"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Usage: ")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["explan"], "explain"),
        (["config", "vaildate"], "validate"),
        (["simulate", "--filname", "x"], "--filename"),
        (["simulate", "--polcy", "x"], "--policy-config-file"),
        (["run", "--leader-elct"], "--leader-elect"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_misspelt_name_gets_a_hint(arguments: list[str], meant: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert re.search(f"""(?i)did you mean ["']{meant}["']\\?""", result.stderr)
    assert result.stderr.count("\n") == 1


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    """As in `kubesched explain … | head -1`."""
    program = "from kubesched.cli.main import main\nmain(['--help'])\n"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["config", "default"]], ids=" ".join)
def test_output_that_cannot_be_written_is_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "kubesched", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert finished.stderr == "error: cannot write the output: No space left on device\n"
    assert finished.returncode == 2


@pytest.mark.parametrize(
    ("closed", "code"), [("config default >&-", 0), ("config validate - <&-", 2), ("config validate nowhere 2>&-", 2)]
)
def test_a_stream_that_is_closed_is_no_bug_of_ours(closed: str, code: int) -> None:
    command = f"{sys.executable} -m kubesched {closed}"
    finished = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in finished.stderr
    assert finished.returncode == code, finished.stderr
