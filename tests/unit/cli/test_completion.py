"""Shell completion of both programs, with commands that are imported when asked for and the flags of `run`."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kubesched.cli import why
from kubesched.cli.main import main


@pytest.mark.parametrize(
    ("words", "unfinished", "expected"),
    [
        ([], "sim", ["simulate"]),
        (["explain"], "--exit", ["--exit-code"]),
        (["simulate", "-o"], "cs", ["csv"]),
        (["run"], "--leader-elect-lease", ["--leader-elect-lease-duration"]),
        (["plugin"], "ch", ["check"]),
    ],
)
def test_words_of_kubesched(words: list[str], unfinished: str, expected: list[str]) -> None:
    found = ShellComplete(main, {}, "kubesched", "_KUBESCHED_COMPLETE").get_completions(words, unfinished)
    assert [item.value for item in found] == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_get_their_script(shell: str) -> None:
    result = CliRunner(env={"_KUBESCHED_COMPLETE": f"{shell}_source"}).invoke(main, prog_name="kubesched")
    assert "_KUBESCHED_COMPLETE" in result.stdout


def test_kubectl_gets_the_words_of_its_plugin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-why", "web-1", "--all"])
    why.complete()
    first, last = capsys.readouterr().out.splitlines()
    assert first.split("\t")[0] == "--all-namespaces" and last == ":4"
