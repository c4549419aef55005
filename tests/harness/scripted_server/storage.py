"""The scripted server's objects and their history: every change takes the next resourceVersion and is logged.

Objects are JSON dictionaries and never changed in place. `watching` reads the log; `forget_history` cuts it, after
which older versions are gone (410). Label and field selectors choose among objects, as far as schedulers and kubectl
use them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

Stored = dict[str, Any]
"""An object as JSON. Never changed in place once it is stored."""

Matches = Callable[[Stored], bool]

_SET = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")
_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")


def selection(query: Mapping[str, str], namespace: str | None) -> Matches | None:
    """What a list or watch asks for; `None` if it is everything."""
    tests: list[Matches] = []
    if namespace is not None:
        tests.append(lambda item: item["metadata"].get("namespace") == namespace)
    if fields := query.get("fieldSelector"):
        tests.extend(_field_test(part) for part in fields.split(","))
    if labels := query.get("labelSelector"):
        tests.extend(_label_test(part.strip()) for part in _OUTSIDE_PARENTHESES.split(labels))
    return (lambda item: all(test(item) for test in tests)) if tests else None


def _field_test(part: str) -> Matches:
    path, operator, value = _split(part)
    steps = path.split(".")

    def field_of(item: Stored) -> str:
        found: Any = item
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        return "" if found is None else str(found)

    return (lambda item: field_of(item) != value) if operator == "!=" else (lambda item: field_of(item) == value)


def _label_test(part: str) -> Matches:
    if found := _SET.match(part):
        key, operator, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        wanted = operator == "in"
        return lambda item: (_labels(item).get(key) in values) == wanted
    if part.startswith("!"):
        return lambda item: part[1:] not in _labels(item)
    if "=" not in part:
        return lambda item: part in _labels(item)
    key, operator, value = _split(part)
    return lambda item: (_labels(item).get(key) == value) == (operator == "=")


def _split(part: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        left, found, right = part.partition(operator)
        if found:
            return left.strip(), "!=" if operator == "!=" else "=", right.strip()
    return part, "=", ""


def _labels(item: Stored) -> dict[str, str]:
    labels: dict[str, str] = item["metadata"].get("labels") or {}
    return labels


FIRST_REVISION = 100


class StoredItem:
    """An object as of one resourceVersion, encoded once however many ask for it."""

    __slots__ = ("_encode", "_encoded", "item", "revision")

    def __init__(self, item: Stored, revision: int, encode: Callable[[Stored], bytes] = msgspec.json.encode) -> None:
        self.item = item
        self.revision = revision
        self._encode = encode
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        if self._encoded is None:
            self._encoded = self._encode(self.item)
        return self._encoded


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One change. `before` is missing for a creation; a deletion has in `after` the last state with a new version."""

    revision: int
    change: str
    after: StoredItem
    before: StoredItem | None

    def line(self, matches: Matches | None) -> bytes:
        """As a watch with this selection sees it; empty if it does not. What leaves the selection counts as deleted."""
        change = self.change
        if matches is not None:
            was = self.before is not None and matches(self.before.item)
            now = change != "DELETED" and matches(self.after.item)
            if not was and not now:
                return b""
            change = "DELETED" if not now else "MODIFIED" if was else "ADDED"
        return event_line(change, self.after.encoded)


def event_line(change: str, encoded: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (change.encode(), encoded)


class VersionedStorage:
    """All objects of a server, by resource (`pods`, `leases.coordination.k8s.io`) and `namespace/name`."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self.oldest_revision = FIRST_REVISION
        self.on_change: Callable[[str], None] = lambda resource: None
        self._objects: dict[str, dict[str, StoredItem]] = defaultdict(dict)
        self._log: dict[str, list[LogEntry]] = defaultdict(list)

    def get(self, resource: str, key: str) -> Stored | None:
        found = self._objects[resource].get(key)
        return found.item if found else None

    def items(self, resource: str) -> list[StoredItem]:
        """In the order of their keys, as a server lists them."""
        objects = self._objects[resource]
        return [objects[key] for key in sorted(objects)]

    def put(
        self, resource: str, key: str, item: Stored, encode: Callable[[Stored], bytes] = msgspec.json.encode
    ) -> Stored:
        """Keep this state; it gets the next resourceVersion. `encode` is how callers get to see it."""
        before = self._objects[resource].get(key)
        after = self._stamped(item, encode)
        self._objects[resource][key] = after
        self._record(resource, "MODIFIED" if before else "ADDED", after, before)
        return after.item

    def delete(self, resource: str, key: str) -> Stored:
        before = self._objects[resource].pop(key)
        after = self._stamped(before.item)
        self._record(resource, "DELETED", after, before)
        return after.item

    def since(self, resource: str, revision: int) -> list[LogEntry]:
        """The changes after this version."""
        log = self._log[resource]
        return log[bisect_right(log, revision, key=lambda entry: entry.revision) :]

    def forget_history(self) -> None:
        """As when etcd is compacted: who asks for changes since an older version is told that they are gone."""
        self.revision += 1
        self.oldest_revision = self.revision
        self._log.clear()

    def _stamped(self, item: Stored, encode: Callable[[Stored], bytes] = msgspec.json.encode) -> StoredItem:
        self.revision += 1
        metadata = {**item["metadata"], "resourceVersion": str(self.revision)}
        return StoredItem({**item, "metadata": metadata}, self.revision, encode)

    def _record(self, resource: str, change: str, after: StoredItem, before: StoredItem | None) -> None:
        self._log[resource].append(LogEntry(after.revision, change, after, before))
        self.on_change(resource)


def key_of(item: Stored) -> str:
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
