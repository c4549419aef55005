"""The command line is read as Go's flag library reads it."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from kubesched.live.options import FlagError, FlagsCommand, GivenFlags, parse_flags, with_flags
from kubesched.live.options.command import plain_arguments
from kubesched.scheduler.config import Duration


@click.command("run", cls=FlagsCommand)
@with_flags
def run(given: GivenFlags) -> None:
    """Schedule the pods of a cluster."""
    click.echo(sorted(given.items()))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(["--leader-elect"], ["--leader-elect=true"], id="a switch alone is on"),
        pytest.param(["--leader-elect=false"], ["--leader-elect=false"], id="a switch turned off"),
        pytest.param(["--config", "a.yaml"], ["--config=a.yaml"], id="the value is the next word"),
        pytest.param(["--config", "--v"], ["--config=--v"], id="the next word is the value whatever it looks like"),
        pytest.param(["--config="], ["--config="], id="an empty value"),
        pytest.param(["--master=a=b"], ["--master=a=b"], id="only the first = separates"),
        pytest.param(["--leader_elect_retry_period=1s"], ["--leader-elect-retry-period=1s"], id="underscores"),
        pytest.param(["-v", "4"], ["--v=4"], id="-v and a word"),
        pytest.param(["-v4"], ["--v=4"], id="-v and a number at once"),
        pytest.param(["-v=4"], ["--v=4"], id="-v with ="),
        pytest.param(["--v=4"], ["--v=4"], id="--v"),
        pytest.param(["-h"], ["--help"], id="-h"),
        pytest.param(["", "--v=1"], ["--v=1"], id="empty words are passed over"),
        pytest.param(["--v=1", "--"], ["--v=1"], id="nothing after --"),
    ],
)
def test_arguments_come_into_one_form(arguments: list[str], expected: list[str]) -> None:
    assert plain_arguments(arguments, "kubesched run") == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--nope"], "unknown flag: --nope", id="unknown"),
        pytest.param(["--no_pe=1"], "unknown flag: --no-pe", id="unknown with a value"),
        pytest.param(["-x"], "unknown shorthand flag: 'x' in -x", id="unknown short"),
        pytest.param(["--=1"], "bad flag syntax: --=1", id="no name"),
        pytest.param(["---v"], "bad flag syntax: ---v", id="three dashes"),
        pytest.param(["--config"], "flag needs an argument: --config", id="no value"),
        pytest.param(["-v"], "flag needs an argument: 'v' in -v", id="no value of -v"),
        pytest.param(["-v="], '"=" for "-v, --v" flag: strconv.ParseUint: parsing "=": invalid syntax', id="empty -v"),
        pytest.param(
            ["--leader-elect", "false"],
            '"kubesched run" does not take any arguments, got ["false"]',
            id="a switch does not take the next word",
        ),
        pytest.param(["--", "--v=1"], 'does not take any arguments, got ["--v=1"]', id="after -- come words"),
        pytest.param(
            ["--leader-elect=maybe"],
            'invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
            id="no bool",
        ),
        pytest.param(
            ["--leader-elect-retry-period=2"],
            'invalid argument "2" for "--leader-elect-retry-period" flag: time: missing unit in duration "2"',
            id="no duration",
        ),
    ],
)
def test_mistakes_name_the_flag_in_the_words_of_go(arguments: list[str], message: str) -> None:
    with pytest.raises(FlagError) as error:
        parse_flags(arguments)
    assert message in error.value.format_message()
    result = CliRunner().invoke(run, arguments)
    assert result.exit_code == 2
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_only_flags_that_were_given_are_there() -> None:
    given = parse_flags(["--leader-elect-lease-duration=1m30s", "--kube-api-qps", "1e2", "--leader-elect=f"])
    assert given == {
        "leader-elect": False,
        "leader-elect-lease-duration": Duration.of_seconds(90),
        "kube-api-qps": 100.0,
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["-v2", "--v=3"], {"v": 3}, id="of single values the last counts"),
        pytest.param(
            ["--disabled-metrics=a,b", "--disabled-metrics=c"], {"disabled-metrics": ("a", "b", "c")}, id="lists add up"
        ),
        pytest.param(
            ["--feature-gates=A=true,B=false", "--feature-gates=kube:C=true"],
            {"feature-gates": (("", "A=true"), ("", "B=false"), ("kube", "C=true"))},
            id="gates add up",
        ),
        pytest.param(
            ["--authorization-always-allow-paths="],
            {"authorization-always-allow-paths": ()},
            id="an empty list is given all the same",
        ),
    ],
)
def test_flags_given_twice(arguments: list[str], expected: dict[str, object]) -> None:
    assert parse_flags(arguments) == expected


@pytest.mark.parametrize("word", ["--version", "--version=true", "--version=raw"])
def test_the_version_is_printed_and_nothing_is_run(word: str) -> None:
    result = CliRunner().invoke(run, [word])
    assert result.exit_code == 0
    assert result.output.startswith("kubesched ")
    assert "v1.36.4" in result.output
    assert "[]" not in result.output


def test_no_version_is_printed_when_it_is_turned_off() -> None:
    assert CliRunner().invoke(run, ["--version=false"]).output == "[('version', 'false')]\n"


def test_help_lists_the_flags_in_groups() -> None:
    output = CliRunner().invoke(run, ["-h"], terminal_width=200).output
    assert "Schedule the pods of a cluster." in output
    assert "Leader election flags:" in output
    assert "-v, --v Level" in output
    assert "-h, --help" in output
    assert "[default: 15s]" in output
