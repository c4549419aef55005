"""`--no-class-cache`: the switch of every command that decides for many pods."""

from __future__ import annotations

from collections.abc import Callable

import click

HELP = "Evaluate every pod from scratch: slower, same results."


def class_cache_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--no-class-cache", is_flag=True, help=HELP)(command)
