"""What a plugin really looks at: which labels and annotations it asks for, and what it compares their values with.

It is asked about a few cases whose labels take notes. What it asks the table for, the table knows. Together with the
`words` of its source, that makes the cases that are drawn afterwards the kind of cases that the plugin is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from msgspec.structs import replace as struct_replace

from kubesched.k8s.model.core import Node, Pod
from kubesched.plugin_tools.check.asking import BrokenPluginError, PluginTrial
from kubesched.plugin_tools.check.drawing import HOSTNAME, ZONE, drawn_cases
from kubesched.plugin_tools.check.subject import Case, Subject

Noted = TypeVar("Noted", Node, Pod)

_N_CASES = 12
_ROUNDS = 2
"""What a key is compared with shows only once nodes have that key."""


def with_traced_words(subject: Subject, seed: int, given: Sequence[Case] = ()) -> Subject:
    """The subject, with what was found out about it."""
    for _ in range(_ROUNDS):
        notes = TraceNotes(dict.fromkeys(subject.words.keys), dict.fromkeys(subject.words.values))
        for case in (*given[:_N_CASES], *drawn_cases(subject.words, seed, _N_CASES)):
            _trace(subject, case, notes)
        keys = tuple(key for key in notes.keys if key not in (HOSTNAME, ZONE))
        subject = replace(subject, words=replace(subject.words, keys=keys, values=tuple(notes.values)))
    return subject


@dataclass
class TraceNotes:
    """In the order in which they were asked for."""

    keys: dict[str, None]
    values: dict[str, None]
    is_open: bool = False
    """Only what the plugin asks is noted, not what building the cluster does."""


def _trace(subject: Subject, case: Case, notes: TraceNotes) -> None:
    notes.is_open = False
    trial = PluginTrial(subject, case)
    table = trial.cluster.table
    for row, node in enumerate(table.nodes):
        table.nodes[row] = _noting(node, notes)
        for info in table.pods.on(row):
            info.pod = _noting(info.pod, notes)
    trial.pod.pod = _noting(trial.pod.pod, notes)
    asked_before = set(table.labels)
    notes.is_open = True
    with suppress(BrokenPluginError):
        trial.answers()
    notes.keys.update(dict.fromkeys(key for key in table.labels if key not in asked_before))


class _NotingText(str):
    __slots__ = ("_notes",)
    _notes: TraceNotes

    def __eq__(self, other: object) -> bool:
        if self._notes.is_open and isinstance(other, str) and not isinstance(other, _NotingText):
            self._notes.values[other] = None
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class _NotingLabels(dict[str, str]):
    def __init__(self, labels: dict[str, str], notes: TraceNotes) -> None:
        super().__init__()
        self._notes = notes
        for key, text in labels.items():
            noting = _NotingText(text)
            noting._notes = notes
            self[key] = noting

    def _note(self, key: object) -> None:
        if self._notes.is_open and isinstance(key, str):
            self._notes.keys[str(key)] = None

    def __getitem__(self, key: str) -> str:
        self._note(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._note(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self._note(key)
        return super().__contains__(key)


def _noting(item: Noted, notes: TraceNotes) -> Noted:
    metadata = item.metadata
    labels = _NotingLabels(metadata.labels or {}, notes)
    annotations = _NotingLabels(metadata.annotations or {}, notes)
    return struct_replace(item, metadata=struct_replace(metadata, labels=labels, annotations=annotations))
