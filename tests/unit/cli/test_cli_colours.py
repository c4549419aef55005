"""Colours are for terminals: never in pipes, off with NO_COLOR; without them an answer is the same to the letter."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from live_clusters import LiveCluster, example_objects
from test_cli_explain import EXAMPLE, ROOT, STORED, answer_file

from kubesched.cli.main import main
from kubesched.cli.why import why
from kubesched.explanation import text as explanation_text
from kubesched.explanation.layout import Style, Tone

PROGRAM = [sys.executable, "-c", "import sys\nfrom kubesched.cli.main import main\nmain(sys.argv[1:])\n"]
SIMULATED = str(ROOT / "examples" / "simulate")
ESCAPE = "\x1b"
BOLD, RED, GREEN, YELLOW = (f"{ESCAPE}[{code}m" for code in (1, 31, 32, 33))
END = f"{ESCAPE}[0m"
REPORT = ("explain", "shop/report", "-f", str(EXAMPLE))


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result


def on_terminal(*arguments: str, **environment: str) -> str:
    """What a terminal gets, from both streams."""
    ours, theirs = pty.openpty()
    started = subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment},
    )
    os.close(theirs)
    told = b""
    try:
        while part := os.read(ours, 65536):
            told += part
    except OSError:  # so Linux says that the other side has closed
        pass
    finally:
        os.close(ours)
        started.wait()
    return told.decode().replace("\r\n", "\n")


# -- the same text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pod", "output"), STORED)
def test_without_its_colours_an_answer_is_the_stored_one(pod: str, output: str) -> None:
    told = run("explain", pod, "-f", str(EXAMPLE), "-o", output, "--color", "always").stdout
    assert ESCAPE in told
    assert click.unstyle(told) == answer_file(pod, output).read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "namespace/shop", "-f", str(EXAMPLE)],
        ["explain", "node/general-2", "-f", str(EXAMPLE)],
        ["explain", "shop/report", "--node", "general-2", "-f", str(EXAMPLE)],
        ["explain", "shop/web-3", "--node", "general-1", "-f", str(EXAMPLE)],
        ["explain", "shop/web-1", "-f", str(EXAMPLE)],
        ["simulate", "-f", SIMULATED],
        ["simulate", "-f", SIMULATED, "-o", "wide"],
    ],
    ids=lambda arguments: " ".join(part for part in arguments if not part.startswith("/")),
)
def test_every_answer_is_plain_in_a_pipe_and_the_same_in_colours(arguments: list[str]) -> None:
    plain, coloured = run(*arguments).stdout, run(*arguments, "--color", "always").stdout
    assert ESCAPE not in plain
    assert BOLD in coloured and click.unstyle(coloured) == plain


def test_a_name_that_is_painted_before_it_is_laid_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out = explanation_text.names_cell
    monkeypatch.setattr(explanation_text, "names_cell", lambda names: click.style(laid_out(names), bold=True))
    with pytest.raises(AssertionError):
        test_without_its_colours_an_answer_is_the_stored_one("shop/report", "text")


@given(
    st.text("ab: .5mGi-~", max_size=30),
    st.text("ab: .5m", max_size=4),
    st.lists(st.text("ab-", min_size=1), max_size=3),
)
def test_a_first_line_is_painted_whole_and_in_its_order(line: str, cause: str, names: list[str]) -> None:
    pieces: list[str] = []

    def paint(_: Tone, text: str) -> str:
        pieces.append(text)
        return f"<{text}>"

    painted = Style(paint=paint).first_line(line, Tone.BAD, cause, names)
    assert "".join(pieces) == line and all(pieces)
    assert painted == "".join(f"<{piece}>" for piece in pieces)
    assert Style().first_line(line, Tone.BAD, cause, names) == line


# -- what stands out ---------------------------------------------------------------------------------------------------


def test_the_first_line_says_in_red_that_a_pod_is_pending_and_shows_the_facts() -> None:
    first, _, heading, *rest = run(*REPORT, "--color", "always").stdout.splitlines()
    assert first.startswith(f"{RED}{BOLD}Pod shop/report is pending: {END}{BOLD}needs 2 cpu; ")
    found = re.findall(rf"{re.escape(YELLOW + BOLD)}(.+?){re.escape(END)}", first)
    assert found == ["500m", "general-2", "1500m", "500m"]
    assert heading == f"{BOLD}Nodes that do not fit (5), the nearest first{END}"
    assert f"  {BOLD}1.{END} uncordon general-3; ask whoever cordoned it: it may be about to be drained" in rest


def test_a_pod_that_fits_is_green() -> None:
    told = run("explain", "shop/web-3", "-f", str(EXAMPLE), "--color", "always").stdout
    assert told.startswith(f"{GREEN}{BOLD}Pod shop/web-3 fits on 2 of 5 nodes and would go to general-1.{END}\n")


def test_kubectl_why_has_colours_too(tmp_path: Path) -> None:
    told = LiveCluster(tmp_path, example_objects()).run("-n", "shop", "--color", "always", command=why).stdout
    state = "2 of 8 pods are pending, each for a reason of its own. "
    assert told.startswith(f"{RED}{BOLD}Namespace shop: {state}")


def test_records_have_no_colours() -> None:
    for form in ("json", "yaml"):
        assert ESCAPE not in run(*REPORT, "-o", form, "--color", "always").stdout


# -- where -----------------------------------------------------------------------------------------------------------


def test_a_terminal_gets_colours_unless_somebody_does_not_want_them() -> None:
    coloured = on_terminal(*REPORT)
    assert coloured.startswith(f"{RED}{BOLD}Pod shop/report is pending: ")
    plain = click.unstyle(coloured)
    assert on_terminal(*REPORT, NO_COLOR="1") == plain
    assert on_terminal(*REPORT, TERM="dumb") == plain
    assert on_terminal(*REPORT, "--color", "never", CLICOLOR_FORCE="1") == plain
    assert on_terminal(*REPORT, NO_COLOR="") == coloured


def test_errors_and_warnings_show_on_a_terminal(tmp_path: Path) -> None:
    assert on_terminal("explode").startswith(f'{RED}{BOLD}error:{END} No such command "explode"')
    assert on_terminal("explode", NO_COLOR="1").startswith('error: No such command "explode"')
    file = tmp_path / "more.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}")
    told = on_terminal(*REPORT, "-f", str(file))
    assert told.startswith(f"{YELLOW}{BOLD}warning:{END} {file}: ignored 1 v1 ConfigMap\n")


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR_FORCE": "0"}, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
        ({"NO_COLOR": "0"}, False),
        ({}, False),
    ],
)
def test_the_environment_decides_in_a_pipe(
    environment: dict[str, str], is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (ESCAPE in run(*REPORT).stdout) is is_coloured
    assert ESCAPE in run(*REPORT, "--color", "always").stdout
    assert ESCAPE not in run(*REPORT, "--color", "never").stdout


def test_an_unknown_choice_is_one_line() -> None:
    result = CliRunner().invoke(main, [*REPORT, "--color", "sometimes"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: Invalid value for '--color': 'sometimes' is not one of")
