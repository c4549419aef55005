"""Plain text: tables, lists and wrapped lines that make sense without colour and in any width."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

_GAP = "  "
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[^A-Z]+")


@dataclass(frozen=True, slots=True)
class Style:
    """How wide lines may be, and whether everything is shown or only the first few of each."""

    width: int = 100
    wide: bool = False

    def most(self, n: int) -> int | None:
        """At most so many of something; no limit when everything is shown."""
        return None if self.wide else n


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, indent: int, n_left: int = 1) -> list[str]:
    """Columns under their headings; the first `n_left` are texts, the others numbers, set to the right."""
    return _lines([list(header)], rows, indent, n_left)


def score_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, indent: int, width: int) -> list[str]:
    """As `table`; headings that would make it too wide are stacked, a line for each of their words."""
    lines = table(header, rows, indent=indent)
    if max(map(len, lines)) <= width:
        return lines
    words = [[name] if name.isupper() else _WORDS.findall(name) for name in header]
    height = max(map(len, words))
    stacked = [[*[""] * (height - len(parts)), *parts] for parts in words]
    return _lines([[column[line] for column in stacked] for line in range(height)], rows, indent, 1)


def _lines(headings: list[list[str]], rows: Sequence[Sequence[str]], indent: int, n_left: int) -> list[str]:
    whole = [*headings, *rows]
    widths = [max(len(line[column]) for line in whole) for column in range(len(headings[0]))]
    return [
        (
            " " * indent
            + _GAP.join(
                cell.ljust(width) if column < n_left else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
        ).rstrip()
        for line in whole
    ]


def listed(names: Sequence[str], most: int | None, n_unnamed: int = 0) -> str:
    """`a, b, c and 4 more`, with those that have no name."""
    shown = list(names if most is None else names[:most])
    n_more = len(names) - len(shown) + n_unnamed
    text = ", ".join(shown)
    return f"{text} and {n_more} more" if n_more else text


def counted(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def wrapped(text: str, *, indent: int, hanging: int, width: int) -> list[str]:
    """Lines of at most this width, all but the first set in by `hanging` more."""
    return textwrap.wrap(
        text,
        width=max(width, indent + hanging + 40),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )
