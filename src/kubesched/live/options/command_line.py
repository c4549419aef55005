"""A command line in Go's syntax: what users of kube-scheduler type, brought into one plain form.

`--flag=value` and `--flag value` are the same, a switch may stand alone (and never takes the next word as its value),
`_` in a name is `-`, and `-v 4`, `-v4`, `-v=4` are `--v=4`. The outcome is a list of `--flag=value`, in order.

Next: `command`, which hands them to click.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubesched.live.options.flag import FlagError
from kubesched.live.options.flag_table import FLAGS_BY_NAME

_HELP = ("--help", "-h")
_SHORTHANDS = {"v": "v"}


def plain_arguments(arguments: Sequence[str], command: str) -> list[str]:
    """The flags as `--flag=value`, `--help` as it stands. Raises `FlagError` for anything that is no flag."""
    plain: list[str] = []
    words: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            words.extend(rest)
        elif word in _HELP:
            plain.append("--help")
        elif word.startswith("--"):
            plain.append(_long_flag(word, rest))
        elif word.startswith("-") and word != "-":
            plain.append(_short_flag(word, rest))
        else:
            words.append(word)
    if any(words):
        listed = " ".join(f'"{word}"' for word in words)
        raise FlagError(f'"{command}" does not take any arguments, got [{listed}]')
    return plain


def _long_flag(word: str, rest: Iterator[str]) -> str:
    written, equals, value = word[2:].partition("=")
    if not written or written.startswith("-"):
        raise FlagError(f"bad flag syntax: {word}")
    name = written.replace("_", "-")
    flag = FLAGS_BY_NAME.get(name)
    if flag is None:
        raise FlagError(f"unknown flag: --{name}")
    if not equals:
        value = flag.kind.if_bare if flag.kind.if_bare is not None else _next(rest, f"--{name}")
    return f"--{name}={value}"


def _short_flag(word: str, rest: Iterator[str]) -> str:
    letter, value = word[1], word[2:]
    name = _SHORTHANDS.get(letter)
    if name is None:
        raise FlagError(f"unknown shorthand flag: '{letter}' in {word}")
    if not value:
        value = _next(rest, f"'{letter}' in {word}")
    elif value.startswith("=") and value != "=":
        value = value[1:]
    return f"--{name}={value}"


def _next(rest: Iterator[str], what: str) -> str:
    try:
        return next(rest)
    except StopIteration:
        raise FlagError(f"flag needs an argument: {what}") from None
