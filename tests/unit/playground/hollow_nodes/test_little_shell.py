"""How commands end, as far as a few words of shell say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.playground.hollow_nodes.little_shell import Ending, NotUnderstoodError, ending_of

FAIL_ONCE = """
    if [[ -r /data/foo-$INDEX ]]
    then
        exit 0
    else
        touch /data/foo-$INDEX
        exit 42
    fi
"""
ODD = "if [ $(expr ${INDEX} % 2) -ne 0 ]; then exit 1; else exit 0; fi"


@pytest.mark.parametrize(
    ("argv", "ending"),
    [
        (["true"], Ending(0, 0)),
        (["/bin/sh"], Ending(0, 0)),
        (["/bin/false"], Ending(0, 1)),
        (["sleep", "1000"], Ending(1000, 0)),
        (["sleep", "infinity"], Ending(None)),
        (["/bin/sh", "-c", "exit 1"], Ending(0, 1)),
        (["sh", "-c", "sleep 2m; sleep 0.5; exit 300"], Ending(120.5, 44)),
        (["sh", "-c", "sleep 3 && false || exit 7"], Ending(3, 7)),
        (["sh", "-c", "false; echo 'a; b' \"$INDEX\""], Ending(0, 0)),
        (["sh", "-ec", "false; sleep 5"], Ending(0, 1)),
        (["sh", "-ec", "if false; then exit 3; fi; sleep 5"], Ending(5, 0)),
        (["sh", "-c", "exit $(( 5 / 2 ))"], Ending(0, 2)),
        (["sh", "-c", "exit $(( $INDEX % 2 ))"], Ending(0, 1)),
        (["sh", "-c", ODD], Ending(0, 1)),
        (["sh", "-c", "N=4; if test $N -gt 5; then exit 1; elif [ x = x ]; then exit 9; fi"], Ending(0, 9)),
        (["sh", "-c", "# nothing\ndate # today"], Ending(0, 0)),
        (["sh", "-c", '[ -z "$NOWHERE" ] && exit 4'], Ending(0, 4)),
        (["sh", "-c", "exit $(( 1 / 0 ))"], Ending(0, 2)),
    ],
)
def test_simple_commands_end_as_they_say(argv: list[str], ending: Ending) -> None:
    assert ending_of(argv, {"INDEX": "3"}, set()) == ending


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["nginx", "-g", "daemon off;"],
        ["sh", "-c", "serve"],
        ["sh", "-c", "exit 0 | tee log"],
        ["sh", "-c", "while true; do sleep 1; done"],
        ["sh", "-c", "if false; then serve; fi"],
        ["sh", "-c", "if true; then exit 1"],
        ["sh", "-c", "exit one"],
        ["sh", "-c", "echo `date`"],
        ["sh", "-c", "(exit 1)"],
        ["sh", "-c", "sleep 1 & exit 1"],
        ["sh", "-c", "echo 'open"],
        ["sh", "-c", "exit $(date)"],
        ["sh", "-c", "if true; then " * 60 + "true" + "; fi" * 60],
        ["sh", "-c", "true;" * 2000],
        ["sh", "run.sh"],
    ],
)
def test_anything_more_is_not_understood(argv: list[str]) -> None:
    with pytest.raises(NotUnderstoodError):
        ending_of(argv, {}, set())


def test_a_file_that_was_touched_is_there_the_next_time() -> None:
    files: set[str] = set()
    endings = [ending_of(["sh", "-c", FAIL_ONCE], {"INDEX": "1"}, files) for _ in range(2)]
    assert endings == [Ending(0, 42), Ending(0, 0)]
    assert files == {"/data/foo-1"}


@given(st.text(alphabet="if then else fi;&|$(){}[]\"'\\x 019-eqr/\n=#!", max_size=60))
def test_no_text_does_anything_else(script: str) -> None:
    try:
        found = ending_of(["sh", "-c", script], {"x": "1"}, set())
    except NotUnderstoodError:
        return
    assert found.after_s is None or found.after_s >= 0
