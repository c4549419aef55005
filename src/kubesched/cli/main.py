"""The command `kubesched`. Subcommands are imported when they are called: asking for help loads no engine.

Every user error is one line on standard error and exit code 2. Next: one module per subcommand.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from kubesched.cli.output import ERROR_EXIT, say_error

INTERRUPTED_EXIT = 130
BROKEN_PIPE_EXIT = 141
_FAILED_WRITES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Why standard output takes no more. Files are written by `kubesched.cli.files`, which names them in its errors."""

GROUPS: dict[str, dict[str, str]] = {
    "Find out why a pod is pending": {
        "explain": "Explain why a pod is pending, or why it is where it is.",
        "snapshot": "Save a live cluster to a file, for all commands with -f.",
    },
    "Try it on a local cluster": {
        "up": "Start a local cluster with hollow nodes.",
        "apiserver": "Run only its API server.",
        "nodes": "Run hollow nodes in any cluster.",
    },
    "Schedule a live cluster": {
        "run": "Schedule a live cluster, as kube-scheduler or beside it.",
        "shadow": "Compare decisions with a live cluster's scheduler, read-only.",
        "debug": "Step through what a recorded scheduler did.",
        "config": "Show, validate and convert KubeSchedulerConfiguration files.",
    },
    "Plan capacity": {
        "capacity": "Count how many more copies of a pod fit, and why no more.",
        "plan": "Find the cheapest nodes on which every pod fits.",
        "consolidate": "Find nodes to remove, in what order, and what it saves.",
        "optimal": "Measure how far a cluster is from optimal.",
        "outage": "Find out which pods are lost with a zone, pool or node.",
        "upgrade": "Simulate a rolling upgrade of nodes, and find what blocks it.",
        "check": "Check in CI whether a change can be merged.",
        "catalogue": "Show, validate and convert lists of machines and prices.",
    },
    "Simulate and compare": {
        "simulate": "Simulate workloads on a cluster in virtual time.",
        "sweep": "Simulate with many seeds and configurations, on many cores.",
        "compare": "Compare variants of a cluster or configuration.",
        "record": "Record a live cluster to a file, for replay.",
        "replay": "Play a recording again, and compare decisions.",
        "bench": "Measure scheduling throughput.",
    },
    "Extend": {
        "plugin": "Create and check a plugin of your own.",
        "extender": "Serve Python plugins to a stock kube-scheduler.",
    },
}
"""What each subcommand does, in a line. Its module is `kubesched.cli.NAME`, in which it is called NAME."""
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}


class OneLineCommand(click.Command):
    """As click's, but validation errors in the command line are told in one line, like all others; and -h is --help."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        extra.setdefault("help_option_names", ["-h", "--help"])
        return super().make_context(info_name, args, *rest, **extra)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        _replace_closed_streams()
        try:
            return super().main(args, *rest, **{**options, "standalone_mode": False})
        except click.exceptions.Abort:
            sys.exit(INTERRUPTED_EXIT)
        except BrokenPipeError:
            _discard_output()  # whoever read the answer has seen enough
            sys.exit(BROKEN_PIPE_EXIT)
        except OSError as error:
            if error.filename is not None or error.errno not in _FAILED_WRITES:
                raise
            _discard_output()
            say_error(f"cannot write the output: {error.strerror}")
            sys.exit(ERROR_EXIT)
        except click.exceptions.NoArgsIsHelpError as asked:
            click.echo(asked.format_message())
            sys.exit(ERROR_EXIT)
        except click.ClickException as error:
            say_error(_one_line(error))
            sys.exit(ERROR_EXIT)


class LazyGroup(OneLineCommand, click.Group):
    """Knows its commands by name, and imports one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if cmd_name.startswith("-"):
                return None
            raise click.UsageError(f'No such command "{cmd_name}"{_hint(cmd_name, COMMANDS)}', ctx)
        command: click.Command = getattr(import_module(f"kubesched.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


@click.group("kubesched", cls=LazyGroup)
@click.version_option(package_name="kubesched", message="%(prog)s %(version)s")
def main() -> None:
    """The Kubernetes scheduler in Python: makes the same decisions as kube-scheduler, and explains them."""


def _replace_closed_streams() -> None:
    """A stream that the caller closed (`>&-`) is None in Python: what goes there is discarded, and nothing is read."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _discard_output() -> None:
    """Otherwise Python complains when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        options = [name for parameter in context.command.get_params(context) for name in parameter.opts]
        text = f'No such option "{error.option_name}"{_hint(error.option_name, options)}'
    else:
        text = " ".join(error.format_message().split())
    return text if context is None else f"{text.rstrip('.')} (try: {context.command_path} --help)"


def _hint(name: str, names: Iterable[str]) -> str:
    from kubesched.k8s.model.spelling import did_you_mean

    return did_you_mean(name, (known for known in names if len(known) > 2))
