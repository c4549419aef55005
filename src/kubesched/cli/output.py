"""What commands print: answers to standard output, everything else as single lines to standard error."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

import click

ERROR_EXIT = 2
WIDTH_OF_A_PIPE = 100
"""How wide tables are where nobody looks at them directly."""

explanation_format = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    show_default=True,
    help="wide shows every node with every reason against it.",
)


def say_error(text: str) -> None:
    """One line for each line of the text."""
    for line in text.splitlines() or [""]:
        click.echo(f"error: {line}", err=True)


def say_warning(text: str) -> None:
    click.echo(f"warning: {text}", err=True)


def line_width() -> int:
    if not sys.stdout.isatty():
        return WIDTH_OF_A_PIPE
    return max(60, shutil.get_terminal_size((WIDTH_OF_A_PIPE, 24)).columns)


def print_record(record: dict[str, Any], form: str) -> None:
    """As JSON or YAML, keys in the order of the record."""
    if form == "json":
        click.echo(json.dumps(record, indent=2, ensure_ascii=False))
        return
    from kubesched.k8s.model.kubernetes_yaml import plain_yaml

    click.echo(plain_yaml(record), nl=False)
