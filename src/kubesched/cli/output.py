"""What commands print: answers to standard output, everything else as single lines to standard error.

A simulation shows a progress bar on standard error, if somebody looks at it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubesched.explanation.layout import Style, Tone
    from kubesched.simulator.column_table import ColumnTable
    from kubesched.simulator.virtual.cluster import Progress, VirtualCluster

ERROR_EXIT = 2
UNREACHABLE_EXIT = 4
"""The cluster that was to be read does not answer."""
PENDING_EXIT = 1
"""Nothing is wrong with the command; a pod stays pending."""
WIDTH_OF_A_PIPE = 100
"""How wide tables are where nobody looks at them directly."""


def format_option(help_text: str, *further: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`-o`: text, wide, json, yaml, and further forms of this command."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["text", "wide", "json", "yaml", *further]),
        default="text",
        show_default=True,
        help=help_text,
    )


explanation_format = format_option("wide shows every node with every reason against it.")


exit_code_option = click.option(
    "--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if a pod is unschedulable; for scripts."
)


def _choose_colours(ctx: click.Context, _: click.Parameter, choice: str) -> None:
    ctx.color = None if choice == "auto" else choice == "always"


colour_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    callback=_choose_colours,
    expose_value=False,
    help="When to use colours; auto: on a terminal, unless NO_COLOR is set.",
)


def is_coloured(stream: IO[str]) -> bool:
    """What the command line says; without that, the environment; without that, whether it is a terminal."""
    context = click.get_current_context(silent=True)
    if context is not None and context.color is not None:
        return context.color
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def say_error(text: str) -> None:
    """One line for each line of the text."""
    for line in text.splitlines() or [""]:
        _say("error:", "red", line)


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """What is wrong with the input is told in a line, with exit code 2; 4 if a live cluster does not answer."""
    from kubesched.k8s.errors import KubeschedError
    from kubesched.k8s.loaded_cluster import UnreachableClusterError

    try:
        yield
    except KubeschedError as error:
        say_error(str(error))
        sys.exit(UNREACHABLE_EXIT if isinstance(error, UnreachableClusterError) else ERROR_EXIT)


def say_warning(text: str) -> None:
    _say("warning:", "yellow", text)


def _say(prefix: str, colour: str, text: str) -> None:
    in_colour = is_coloured(sys.stderr)
    shown = click.style(prefix, fg=colour, bold=True) if in_colour else prefix
    click.echo(f"{shown} {text}", err=True, color=in_colour)


_LOOKS: dict[str, dict[str, Any]] = {
    "bad": {"fg": "red", "bold": True},
    "good": {"fg": "green", "bold": True},
    "strong": {"bold": True},
    "fact": {"fg": "yellow", "bold": True},
}


def _paint(tone: Tone, text: str) -> str:
    return click.style(text, **_LOOKS[tone.value])


def print_answer(render: Callable[[Style], str], form: str) -> None:
    """As text, as wide as the terminal and in colours if it has them; `form` is text or wide."""
    from kubesched.explanation.layout import Style

    in_colour = is_coloured(sys.stdout)
    style = Style(width=line_width(), wide=form == "wide", paint=_paint if in_colour else None)
    click.echo(render(style), color=in_colour)


def line_width() -> int:
    if not sys.stdout.isatty():
        return WIDTH_OF_A_PIPE
    return max(60, shutil.get_terminal_size((WIDTH_OF_A_PIPE, 24)).columns)


def print_record(record: dict[str, Any], form: str) -> None:
    """As JSON or YAML, keys in the order of the record."""
    if form == "json":
        click.echo(indented_json(record))
        return
    from kubesched.k8s.model.kubernetes_yaml import plain_yaml

    click.echo(plain_yaml(record), nl=False)


def indented_json(record: dict[str, Any]) -> str:
    """What `json.dumps` makes with an indent of two, which takes it long for the record of a large cluster."""
    import msgspec

    try:
        return msgspec.json.format(json.dumps(record, ensure_ascii=False), indent=2)
    except msgspec.DecodeError:  # a number that JSON does not have, such as Infinity
        return json.dumps(record, indent=2, ensure_ascii=False)


def print_csv(shown: ColumnTable) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(shown.column_names)
    writer.writerows(shown)
    click.echo(text.getvalue(), nl=False)


_MOST_MARKDOWN_ROWS = 50


def print_markdown(headline: str, tables: Mapping[str, ColumnTable], notes: Sequence[str]) -> None:
    """For a comment on a pull request: the answer, each table that is not empty (folded), and what was assumed."""
    lines = [f"**{headline}**"]
    for name, shown in tables.items():
        if len(shown):
            rows = [shown.column_names, ["---"] * len(shown.column_names), *list(shown)[:_MOST_MARKDOWN_ROWS]]
            lines += ["", f"<details><summary>{name} ({len(shown)})</summary>", ""]
            lines += [f"| {' | '.join(map(_markdown_cell, row))} |" for row in rows]
            hidden = len(shown) - _MOST_MARKDOWN_ROWS
            lines += [f"\nand {hidden} more"] if hidden > 0 else []
            lines += ["", "</details>"]
    click.echo("\n".join([*lines, "", *(f"- {note}" for note in notes)]))


def _markdown_cell(cell: object) -> str:
    return "" if cell is None else " ".join(str(cell).split()).replace("|", "\\|")


_PROGRESS_EVERY_S = 0.1


@contextmanager
def shown_progress() -> Iterator[Progress | None]:
    """What the run is to call now and then; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("pods"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=None)
        last_s = 0.0

        def show(cluster: VirtualCluster) -> None:
            nonlocal last_s
            now_s = time.monotonic()
            if now_s - last_s >= _PROGRESS_EVERY_S:
                last_s = now_s
                n_pods = len(cluster.ledger.pods)
                n_waiting = len(cluster.loop.queue.contents)
                bar.update(task, total=n_pods, completed=n_pods - n_waiting, description=_time_passed(cluster))

        yield show


def _time_passed(cluster: VirtualCluster) -> str:
    from kubesched.simulator.report_text import readable_span

    return f"at {readable_span(cluster.clock.elapsed_s)}"


@contextmanager
def shown_steps(doing: str) -> Iterator[Callable[[str], None]]:
    """What is to be told what is being done; it shows that where somebody looks."""
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    from rich.console import Console

    with Console(stderr=True).status(doing) as status:
        yield lambda text: status.update(f"{doing}: {text}")


@contextmanager
def counted_progress(unit: str) -> Iterator[Callable[[int, int], None]]:
    """What is to be told how many are done, and of how many; it shows that where somebody looks."""
    if not sys.stderr.isatty():
        yield lambda n_done, n_all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda n_done, n_all: bar.update(task, completed=n_done, total=n_all)
