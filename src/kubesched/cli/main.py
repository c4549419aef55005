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

COMMANDS: dict[str, tuple[str, str]] = {
    "apiserver": ("kubesched.cli.apiserver:apiserver", "Run the embedded Kubernetes API server."),
    "bench": ("kubesched.cli.bench:bench", "Measure scheduling throughput."),
    "catalogue": ("kubesched.cli.catalogue:catalogue", "Show, check and convert lists of machines and their prices."),
    "check": ("kubesched.cli.check:check", "Gate for CI: whether a change may be merged."),
    "compare": ("kubesched.cli.compare:compare", "Compare variants over one scenario, with the same seeds."),
    "config": ("kubesched.cli.config:config", "Show, validate and convert KubeSchedulerConfiguration files."),
    "debug": ("kubesched.cli.debug:debug", "Step through what a recorded scheduler did."),
    "consolidate": (
        "kubesched.cli.consolidate:consolidate",
        "Find the nodes that can go, in which order, and what that saves.",
    ),
    "explain": ("kubesched.cli.explain:explain", "Explain where a pending pod would go, or why it fits nowhere."),
    "extender": ("kubesched.cli.extender:extender", "Serve Python plugins to a stock kube-scheduler."),
    "nodes": ("kubesched.cli.nodes:nodes", "Run hollow nodes in a cluster."),
    "capacity": (
        "kubesched.cli.capacity:capacity",
        "Count how many more copies of a pod fit, and what stops the next.",
    ),
    "optimal": ("kubesched.cli.optimal:optimal", "How near to optimal a cluster is: nodes, cost, fragmentation."),
    "outage": ("kubesched.cli.outage:outage", "Find out whether a cluster survives losing a zone, pool or node."),
    "plan": ("kubesched.cli.plan:plan", "Nodes to buy: the cheapest mix that places every pod."),
    "plugin": ("kubesched.cli.plugin:plugin", "Create and check a plugin of your own."),
    "record": ("kubesched.cli.record:record", "Record a live cluster to a file, for replay."),
    "replay": ("kubesched.cli.replay:replay", "Play a recording again, and compare decisions."),
    "run": ("kubesched.cli.run:run", "Schedule a live cluster, instead of kube-scheduler or beside it."),
    "shadow": ("kubesched.cli.shadow:shadow", "Compare decisions with a live cluster's scheduler, read-only."),
    "simulate": ("kubesched.cli.simulate:simulate", "Simulate workloads on a cluster in virtual time."),
    "snapshot": ("kubesched.cli.snapshot:snapshot", "Save a live cluster to a file, for explain and simulate."),
    "sweep": ("kubesched.cli.sweep:sweep", "Simulate with many seeds and configurations, on many cores."),
    "upgrade": ("kubesched.cli.upgrade:upgrade", "Play a rolling upgrade of nodes, and what blocks it."),
    "up": ("kubesched.cli.up:up", "Start a local cluster with hollow nodes."),
}
"""Where each subcommand is, and what it does in a line."""


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
            raise click.UsageError(f"No such command '{cmd_name}'{_hint(cmd_name, COMMANDS)}", ctx)
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


@click.group("kubesched", cls=LazyGroup)
@click.version_option(package_name="kubesched", message="%(prog)s %(version)s")
def main() -> None:
    """The Kubernetes scheduler in Python: decides as kube-scheduler does, and explains why."""


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
        text = f"No such option '{error.option_name}'{_hint(error.option_name, options)}"
    else:
        text = " ".join(error.format_message().split())
    return text if context is None else f"{text.rstrip('.')} (try: {context.command_path} --help)"


def _hint(name: str, names: Iterable[str]) -> str:
    from kubesched.k8s.model.spelling import did_you_mean

    return did_you_mean(name, (known for known in names if len(known) > 2))
