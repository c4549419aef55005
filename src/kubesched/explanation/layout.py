"""Plain text: amounts as people read them, tables, lists and wrapped lines that make sense in any width.

`exact` prints every unit and reads back as the same amount; `readable` is short, and where it rounds, it says so.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from kubesched.k8s.model import quantity
from kubesched.k8s.model.quantity import Notation
from kubesched.k8s.model.requests import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY

WHAT_WOULD_HELP = "What would make it fit, each tried out, the most acceptable first"
_GAP = "  "
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[^A-Z]+")
_NAME_OR_AMOUNT = re.compile(r"([\w.~/=-]*\w)")
_AMOUNT = re.compile(r"~?\d+(\.\d+)?(m|[KMGTPE]i)")


class Tone(Enum):
    """What a piece of text is, for those who show that by colours."""

    BAD = "bad"
    GOOD = "good"
    STRONG = "strong"
    FACT = "fact"
    """A name or an amount that the eye looks for."""


@dataclass(frozen=True, slots=True)
class Style:
    """How wide lines may be, and whether everything is shown or only the first few of each."""

    width: int = 100
    wide: bool = False
    brevity: int = 0
    """How much shorter than usual lists are, for an answer that would be too long."""
    paint: Callable[[Tone, str], str] | None = None
    """Marks a text that is already laid out, so that no width depends on it; plain text without it."""

    def most(self, n: int) -> int | None:
        """At most so many of something; no limit when everything is shown."""
        return None if self.wide else max(1, n - self.brevity)

    def painted(self, tone: Tone, text: str) -> str:
        return text if self.paint is None or not text else self.paint(tone, text)

    def heading(self, text: str) -> str:
        return self.painted(Tone.STRONG, text)

    def first_line(self, text: str, tone: Tone, cause: str = "", names: Collection[str] = ()) -> str:
        """How it stands in its tone, then the cause, in which the nodes' names and amounts stand out."""
        if self.paint is None:
            return text
        at = text.find(cause) if cause else text.find(": ") + 1
        state, rest = (text[:at], text[at:]) if at > 0 else (text, "")
        known = frozenset(names)
        parts = _NAME_OR_AMOUNT.split(rest)
        facts = [part in known or _AMOUNT.fullmatch(part) is not None for part in parts]
        told, start = self.painted(tone, state), 0
        for end in range(1, len(parts) + 1):
            if end == len(parts) or facts[end] != facts[start]:
                told += self.painted(Tone.FACT if facts[start] else Tone.STRONG, "".join(parts[start:end]))
                start = end
        return told


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


def any_of(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1] if words else "") if part)


def all_of(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1] if words else "") if part)


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


# -- amounts -----------------------------------------------------------------------------------------------------------

_SHORT = 7
_BINARY_STEPS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def numbered(texts: Sequence[str], style: Style) -> list[str]:
    """A list whose numbers stand out, in lines of the style's width."""
    lines = []
    for number, text in enumerate(texts, 1):
        first, *more = wrapped(f"{number}. {text}", indent=2, hanging=3, width=style.width)
        lines.extend([first.replace(f"{number}.", style.painted(Tone.STRONG, f"{number}."), 1), *more])
    return lines


def exact(resource: str, units: int) -> str:
    """The quantity for so many milli-cpus, bytes, or whole units."""
    if resource == CPU:
        return str(quantity.from_milli(units))
    decimal = str(quantity.from_int(units, Notation.DECIMAL_SI))
    if not _is_bytes(resource):
        return decimal
    binary = str(quantity.from_int(units, Notation.BINARY_SI))
    return decimal if len(binary) > _SHORT >= len(decimal) else binary  # 64G, not 62500000Ki


def readable(resource: str, units: int) -> str:
    """The exact quantity if it is short, else about as much with two decimals: `~15.63Gi`."""
    text = exact(resource, units)
    if len(text) <= _SHORT or not _is_bytes(resource):
        return text
    amount, step = float(units), 0
    while abs(amount) >= 1024 and step < len(_BINARY_STEPS) - 1:
        amount /= 1024
        step += 1
    return f"~{amount:.2f}{_BINARY_STEPS[step]}"


def exact_and_readable(resource: str, units: int) -> str:
    """`160773632 (~153.33Mi)`; the exact quantity alone where it is short."""
    text, short = exact(resource, units), readable(resource, units)
    return text if text == short else f"{text} ({short})"


def _is_bytes(resource: str) -> bool:
    return resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES_PREFIX)
