"""Validation errors in plugins from outside, as the errors that a configuration has: where, and what is wrong.

Next: `kubesched.scheduler.config.errors`.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from kubesched.scheduler.config.errors import ConfigError, FieldError


def plugin_error(origin: str, text: str, where: str = "") -> ConfigError:
    """`origin` is the file, class or distribution."""
    return ConfigError([FieldError(where, text)], origin)


def plugin_errors(origin: str, texts: Iterable[tuple[str, str]]) -> ConfigError:
    """From (where, text) pairs."""
    return ConfigError([FieldError(where, text) for where, text in texts], origin)


def line_of(bug: BaseException, path: str) -> str:
    """`line 7`: where in this file an exception came from; empty if it did not pass through it."""
    if isinstance(bug, SyntaxError) and bug.filename == path:
        return f"line {bug.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(bug.__traceback__) if frame.filename == path]
    return f"line {lines[-1]}" if lines else ""


def told(bug: BaseException) -> str:
    """`ValueError: no such thing`."""
    text = bug.msg if isinstance(bug, SyntaxError) else str(bug)
    return f"{type(bug).__name__}: {text}" if text else type(bug).__name__
