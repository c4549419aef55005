"""`--report FILE.html`: the report as a page, beside what is printed.

Next: `kubesched.planning.report_pages`, which makes it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import ERROR_EXIT, say_error
from kubesched.cli.snapshot import write_private

if TYPE_CHECKING:
    from kubesched.planning.html_report import ReportPage

_CHOSEN = "kubesched.cli.report_file"


def _choose_file(ctx: click.Context, _: click.Parameter, filename: str | None) -> None:
    """A bad place is told before the work."""
    if filename is None or ctx.resilient_parsing:
        return
    problem = _problem(Path(filename))
    if problem:
        say_error(f"--report {filename}: {problem}")
        sys.exit(ERROR_EXIT)
    ctx.meta[_CHOSEN] = Path(filename)


def _problem(path: Path) -> str:
    try:
        if path.is_dir():
            return "is a directory"
        if path.exists() and not path.is_file():
            return "is not a file"
        if not path.parent.is_dir():
            return "its directory does not exist"
    except (OSError, ValueError) as problem:
        return str(problem)
    return "" if os.access(path.parent, os.W_OK) else "its directory cannot be written"


report_file_option = click.option(
    "--report",
    metavar="FILE.html",
    callback=_choose_file,
    expose_value=False,
    help="Write the report as a page, too: plots, tables to sort and filter, one file that needs nothing else.",
)


def is_report_asked() -> bool:
    return click.get_current_context().meta.get(_CHOSEN) is not None


def write_report(made: Callable[[str], ReportPage]) -> None:
    """The page, if one is asked for: the whole file or none. `made` gets the command's name."""
    context = click.get_current_context()
    path: Path | None = context.meta.get(_CHOSEN)
    if path is None:
        return
    try:
        write_private(path, made(f"kubesched {context.info_name}").to_html().encode())
    except OSError as problem:
        say_error(f"--report {path}: {problem.strerror or problem}")
        sys.exit(ERROR_EXIT)
