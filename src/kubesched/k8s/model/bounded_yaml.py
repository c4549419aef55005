"""YAML within bounds: how deeply it nests, how many values it has, and how often its aliases repeat them are looked at
before anything is made of it. What exceeds a bound is an error like any other in a YAML text.

The fast loader would end the process with nested levels beyond some tens of thousands, and fill the memory with what a
few lines of aliases stand for. Looking costs about as much as loading, so texts that cannot exceed a bound, as a
glance at their signs tells, are not looked through.

Next: `kubernetes_yaml`, through which everything here reads YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

DEEPEST = 500
"""As many levels may be nested."""


@dataclass(frozen=True, slots=True)
class YamlBounds:
    """`most_values` are keys, texts, numbers, lists and maps, aliases written out."""

    most_values: int
    deepest: int = DEEPEST


FILE_BOUNDS = YamlBounds(5_000_000)
"""For files that somebody gives us: about 100 MB of manifests."""

BODY_BOUNDS = YamlBounds(100_000)
"""For bodies of requests: about 2 MB of manifests. Clients send JSON, which has no such bound."""

_INDENTED = re.compile(rb"^([ \t]*)((?:[-?] +)*)", re.MULTILINE)


BROKEN_VALUES = (ValueError, OverflowError, TypeError, IndexError, KeyError, AttributeError)
"""What PyYAML's constructors raise, each in its own way: for a number of 5,000 digits, for a tag that does not fit."""


class YamlBoundError(yaml.MarkedYAMLError):
    """The text exceeds a bound: `problem` says which, `problem_mark` where, if that is known."""

    def __init__(self, problem: str, mark: Any = None) -> None:
        super().__init__(problem=problem, problem_mark=mark)


def check_bounds(data: bytes | str, bounds: YamlBounds = FILE_BOUNDS) -> None:
    """Raises `YamlBoundError`, or the error of a text that is no YAML."""
    given = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    if not _may_exceed(given, bounds):
        return
    _Counts(bounds).read(yaml.parse(data, Loader=yaml.CSafeLoader))


def in_one_line(problem: Exception) -> str:
    """What is wrong with a value that Python refuses to make."""
    text = " ".join(str(problem).split())
    return "a number has more than 4,300 digits" if text.startswith("Exceeds the limit") else text


def _may_exceed(data: bytes, bounds: YamlBounds) -> bool:
    """Whether a bound could be exceeded: every value needs a sign, every level of a flow a bracket, every level of a
    block an indentation or a sign in its line, and every alias an anchor."""
    if b"&" in data or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    if sum(map(data.count, (b"\n", b",", b":", b"-", b"?", b"[", b"{", b"\r"))) * 2 + 2 > bounds.most_values:
        return True
    n_levels = data.count(b"[") + data.count(b"{")
    longest = max((found.end() - found.start() for found in _INDENTED.finditer(data)), default=0)
    return n_levels + 2 * (longest + 1) > bounds.deepest


class _Counts:
    """What the events of a text add up to."""

    def __init__(self, bounds: YamlBounds) -> None:
        self._bounds = bounds
        self._n_values = 0
        self._anchored: dict[str, int] = {}
        """How many values an anchor stands for; less than one while it is not complete."""
        self._open: list[tuple[str | None, int]] = []
        """The anchors of the collections that are open, and how many values there were before each."""

    def read(self, events: Iterator[yaml.Event]) -> None:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._add(event)
                if event.anchor:
                    self._anchored[event.anchor] = 1
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, before = self._open.pop()
                if anchor:
                    self._anchored[anchor] = self._n_values - before
            elif isinstance(event, yaml.AliasEvent):
                self._repeat(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._anchored.clear()

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        self._open.append((event.anchor, self._n_values))
        if event.anchor:
            self._anchored[event.anchor] = 0
        if len(self._open) > self._bounds.deepest:
            raise YamlBoundError(f"exceeded max depth of {self._bounds.deepest}", event.start_mark)
        self._add(event)

    def _repeat(self, event: yaml.AliasEvent) -> None:
        size = self._anchored.get(event.anchor or "", 1)
        if size == 0:
            raise YamlBoundError(f"anchor '{event.anchor}' value contains itself", event.start_mark)
        if self._n_values + size > self._bounds.most_values:
            raise YamlBoundError("document contains excessive aliasing", event.start_mark)
        self._n_values += size

    def _add(self, event: yaml.NodeEvent) -> None:
        self._n_values += 1
        if self._n_values > self._bounds.most_values:
            raise YamlBoundError(f"more than {self._bounds.most_values:,} values", event.start_mark)
