"""What the server acknowledged, and what it must therefore show after a restart.

For each object at most one write is under way; killed with the server, it may have happened or not, and nothing else
may have. `writers.py` fills the ledger, `rounds.py` compares it with lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, str]
"""Resource and name."""


class LostWriteError(AssertionError):
    """The server does not show what it must show."""


@dataclass(slots=True)
class Known:
    """The acknowledged state of one object; ``revision`` 0 says that it is not there."""

    revision: int = 0
    is_exact: bool = True  # False after a write whose answer does not tell the version
    content: str = ""
    pending: str = ""  # the verb of a write that is under way
    pending_content: str = ""


@dataclass(slots=True)
class Ledger:
    """All objects, and every version that was acknowledged."""

    objects: dict[Key, Known] = field(default_factory=dict)
    acknowledged: dict[str, set[int]] = field(default_factory=dict)  # by resource
    n_acknowledged: int = 0
    n_unknown: int = 0

    def known(self, key: Key) -> Known:
        return self.objects.setdefault(key, Known())

    def begin(self, key: Key, verb: str, content: str) -> None:
        known = self.known(key)
        known.pending, known.pending_content = verb, content

    def acknowledge(self, key: Key, revision: int | None) -> None:
        """The write under way was answered; ``revision`` None where the answer does not tell it."""
        known = self.known(key)
        self.n_acknowledged += 1
        if known.pending == "delete":
            known.revision, known.is_exact, known.content = 0, True, ""
        else:
            known.is_exact = revision is not None
            known.revision = known.revision if revision is None else revision
            known.content = known.pending_content
        if revision is not None:
            self.acknowledged.setdefault(key[0], set()).add(revision)
        known.pending = known.pending_content = ""

    def compare(self, resource: str, shown: dict[str, tuple[int, str]]) -> None:
        """``shown`` is name -> (revision, content) as listed after a restart; from then on that is what is known."""
        names = {name for kind, name in self.objects if kind == resource} | set(shown)
        for name in sorted(names):
            known = self.known((resource, name))
            self._check(f"{resource} {name}", known, shown.get(name))
            revision, content = shown.get(name, (0, ""))
            known.revision, known.content, known.is_exact = revision, content, True
            known.pending = known.pending_content = ""

    def _check(self, what: str, known: Known, shown: tuple[int, str] | None) -> None:
        self.n_unknown += bool(known.pending)
        if _is_acknowledged_state(known, shown):
            return
        if not known.pending:
            raise LostWriteError(f"{what} should be {_text(known)}, is {shown}")
        if shown is None:
            if known.pending != "delete":
                raise LostWriteError(f"{what} should be {_text(known)}, is gone")
            return
        revision, content = shown
        if content != known.pending_content or revision <= known.revision:
            raise LostWriteError(f"{what} should be {_text(known)} or {known.pending_content!r}, is {shown}")


def _is_acknowledged_state(known: Known, shown: tuple[int, str] | None) -> bool:
    if shown is None or not known.revision:
        return shown is None and not known.revision
    revision, content = shown
    fits = revision == known.revision if known.is_exact else revision > known.revision
    return fits and content == known.content


def _text(known: Known) -> dict[str, Any]:
    return {"revision": known.revision, "exact": known.is_exact, "content": known.content, "pending": known.pending}
