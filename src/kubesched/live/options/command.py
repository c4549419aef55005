"""A click command with all flags of kube-scheduler, and its command line in Go's syntax.

    @click.command("run", cls=FlagsCommand)
    @with_flags
    def run(given: GivenFlags) -> None:
        options = read_options(given)

`given` holds the flags that were given, and only those, with their values. `--flag=value` and `--flag value` are the
same, a switch may stand alone (and never takes the next word as its value), `_` in a name is `-`, and `-v 4`, `-v4`,
`-v=4` are `--v=4`. Every error in a flag is a `FlagError`, which names the flag and makes the exit code 2.

Next: `read` for what becomes of the flags.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import click

from kubesched.k8s.model.spelling import did_you_mean
from kubesched.live.options.flag import Flag, FlagError
from kubesched.live.options.flag_table import FLAGS, FLAGS_BY_NAME, GROUPS

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
        hint = did_you_mean(f"--{name}", [f"--{known}" for known in FLAGS_BY_NAME])
        raise FlagError(f"unknown flag: --{name}{hint}")
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


KUBERNETES_VERSION = "v1.36.4"

_HELP_ROW = ("-h, --help", "Show this help and exit.")

GivenFlags = Mapping[str, Any]
"""Values by the name of the flag. Absent: not given."""


class FlagsCommand(click.Command):
    """Takes flags in Go's syntax, and lists them in kube-scheduler's groups."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, plain_arguments(args, ctx.command_path))
        except FlagError as error:
            error.ctx = ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in GROUPS:
            with formatter.section(f"{group.capitalize()} flags"):
                rows = [_help_of(flag) for flag in FLAGS if flag.group == group]
                formatter.write_dl([*rows, _HELP_ROW] if group == "global" else rows)


def with_flags(function: Callable[[GivenFlags], Any]) -> Callable[..., Any]:
    """Give a function all flags. It is called with those that were given."""

    def call(**values: Any) -> Any:
        return function({flag.name: values[flag.key] for flag in FLAGS if values[flag.key] is not None})

    command: Callable[..., Any] = functools.wraps(function)(call)
    for flag in reversed(FLAGS):
        command = _option(flag)(command)
    return command


def parse_flags(arguments: Sequence[str]) -> GivenFlags:
    """The flags in a command line, for a program that starts a scheduler itself."""
    given: GivenFlags = _parse.main(list(arguments), prog_name="kubesched run", standalone_mode=False)
    return given


def _option(flag: Flag) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def read(context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> Any:
        if not texts:
            return None
        values = [flag.parse(text) for text in texts]
        if flag.name == "version":
            _print_version(context, values[-1])
        return tuple(item for value in values for item in value) if flag.kind.is_list else values[-1]

    is_eager = flag.name == "version"
    return click.option(f"--{flag.name}", flag.key, type=str, multiple=True, is_eager=is_eager, callback=read)


def _print_version(context: click.Context, form: str) -> None:
    text = f"kubesched {metadata.version('kubesched')} (Kubernetes {KUBERNETES_VERSION})"
    if form == "raw":
        text += f", Python {platform.python_version()}, {platform.platform()}"
    if form != "false":
        click.echo(text)
        context.exit()


def _help_of(flag: Flag) -> tuple[str, str]:
    text = f"{'Deprecated. ' if flag.is_deprecated else ''}{flag.help}"
    if flag.why:
        text += f" ({flag.use.value}: {flag.why})"
    shown = flag.kind.show(flag.default)
    if shown not in ("", "[]", "false"):
        text += f" [default: {shown}]"
    return f"{flag.shown} {flag.kind.name}".rstrip(), text


@click.command("run", cls=FlagsCommand)
@with_flags
def _parse(given: GivenFlags) -> GivenFlags:
    return given
