"""Objects that could not be read: named once in the log, counted, and remembered until they can be read or are gone.

Next: `informer`, which decides with `kubesched.k8s.model.stand_ins` what they count as meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from kubesched.k8s.client.list_watch import log_lines

MOST_TOLD = 3
"""So many fields of one object are named in its line."""


class SetAside:
    """Of all kinds. Keys are `namespace/name`, or where in an answer it was if that is not known."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        """How often an object was set aside, by kind."""
        self.n_noted = 0
        """How often anything was noted, said before or not."""
        self._now: dict[str, dict[str, str]] = {}

    def note(self, kind: str, key: str, problems: Sequence[str], counts_as: str) -> None:
        """One line, unless the same was said of it before."""
        self.n_noted += 1
        told = "; ".join(problems[:MOST_TOLD])
        if len(problems) > MOST_TOLD:
            told += f"; and {len(problems) - MOST_TOLD} more"
        known = self._now.setdefault(kind, {})
        if known.get(key) == told:
            return
        known[key] = told
        self.totals[kind] += 1
        log_lines.SET_ASIDE.write(kind, key, told, counts_as)

    def of(self, kind: str) -> Mapping[str, str]:
        """What is wrong with those that are set aside now, by key."""
        return self._now.get(kind, {})

    def forget(self, kind: str, key: str) -> None:
        """It can be read now, or is gone."""
        self._now.get(kind, {}).pop(key, None)

    def keep_only(self, kind: str, keys: Collection[str]) -> None:
        """After a list: those that it does not have are gone."""
        known = self._now.get(kind)
        if known:
            self._now[kind] = {key: problem for key, problem in known.items() if key in keys}

    def counts(self) -> dict[str, int]:
        """How many are set aside now, by kind."""
        return {kind: len(known) for kind, known in self._now.items()}
