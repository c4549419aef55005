"""`--report FILE.html`: the report as a page, beside what is printed.

Next: `kubesched.planning.report_pages`, which makes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from kubesched.cli.output import ERROR_EXIT, say_error

if TYPE_CHECKING:
    Command = TypeVar("Command", bound=Callable[..., Any] | click.Command)

_CHOSEN = "kubesched.cli.report_file"


class HtmlPage(Protocol):
    def to_html(self) -> str: ...


def _choose_file(ctx: click.Context, _: click.Parameter, filename: str | None) -> None:
    """A bad place is told before the work."""
    if filename is None or ctx.resilient_parsing:
        return
    from kubesched.cli.files import InputError, check_place

    try:
        check_place(filename)
    except InputError as problem:
        say_error(f"--report {problem}")
        sys.exit(ERROR_EXIT)
    ctx.meta[_CHOSEN] = filename


def report_option_for(told: str) -> Callable[[Command], Command]:
    return click.option("--report", metavar="FILE.html", callback=_choose_file, expose_value=False, help=told)


report_file_option = report_option_for(
    "Write the report as a page, too: plots, tables to sort and filter, one file that needs nothing else."
)


def is_report_asked() -> bool:
    return click.get_current_context().meta.get(_CHOSEN) is not None


def write_report(made: Callable[[str], HtmlPage]) -> None:
    """The page, if one is asked for: the whole file or none. `made` gets the command's name."""
    context = click.get_current_context()
    filename: str | None = context.meta.get(_CHOSEN)
    if filename is None:
        return
    from kubesched.cli.files import InputError, write_files

    try:
        write_files({filename: made(f"kubesched {context.info_name}").to_html().encode()}, private=True)
    except InputError as problem:
        say_error(f"--report {problem}")
        sys.exit(ERROR_EXIT)
