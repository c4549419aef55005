"""The smallest case that still breaks a rule: parts of it are left out one by one, as long as it stays broken.

Greedy, and bounded by how often the rule is asked: what remains is small, not the smallest of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.report import RuleViolation

_MOST_TRIES = 300
_NEEDED = frozenset({"apiVersion", "kind", "name", "namespace", "containers", "metadata", "spec", "nodeName", "phase"})
"""Fields without which an object is none, or another."""

Asked = Callable[[Case], RuleViolation | bool]
Path = tuple[str | int, ...]


def shrunk(case: Case, violation: RuleViolation, ask: Asked) -> tuple[Case, RuleViolation]:
    """A smaller case, and how it breaks the rule."""
    search = _Search(case, violation, ask)
    if violation.change is None or not search.try_case(replace(case, changes=(violation.change,))):
        search.drop_changes()
    search.drop_objects()
    search.drop_fields()
    return search.case, search.violation


class _Search:
    def __init__(self, case: Case, violation: RuleViolation, ask: Asked) -> None:
        self.case = case
        self.violation = violation
        self._ask = ask
        self._n_tries = 0

    def try_case(self, smaller: Case) -> bool:
        """Takes the smaller case if it breaks the rule, too."""
        if self._n_tries >= _MOST_TRIES:
            return False
        self._n_tries += 1
        try:
            found = self._ask(smaller)
        except Exception:  # noqa: BLE001  a case from which too much was taken is no case any more
            return False
        if not isinstance(found, RuleViolation):
            return False
        self.case, self.violation = smaller, found
        return True

    def drop_objects(self) -> None:
        position = 0
        while position < len(self.case.objects):
            objects = self.case.objects
            if not self.try_case(replace(self.case, objects=objects[:position] + objects[position + 1 :])):
                position += 1

    def drop_changes(self) -> None:
        """The last first: what came after the rule was broken goes at once."""
        for position in reversed(range(len(self.case.changes))):
            changes = self.case.changes
            self.try_case(replace(self.case, changes=changes[:position] + changes[position + 1 :]))

    def drop_fields(self) -> None:
        """Until nothing more can go: the pod's first, then those of other objects and of the change."""
        n_dropped = 1
        while n_dropped:
            n_dropped = sum(self._drop_one(path) for path in _paths(_tree(self.case)))

    def _drop_one(self, path: Path) -> bool:
        """Leaves a part out; also of the same object as it is after later changes, or a change would bring it back."""
        tree = deepcopy(_tree(self.case))
        place, rest = (path[:1], path[1:]) if path[0] in ("pod", "visitor") else (path[:2], path[2:])
        try:
            item = _found(tree, place)
            _leave_out(item, rest)
        except (KeyError, IndexError):
            return False  # went with something larger
        first = place[1] + 1 if place[0] == "changes" and isinstance(place[1], int) else 0
        for later, change in list(zip(tree["changes"], self.case.changes, strict=True))[first:]:
            if place[0] != "visitor" and item and change.is_about(item):
                with suppress(KeyError, IndexError):
                    _leave_out(later, rest)
        return self.try_case(_case(tree, self.case))


def _found(tree: Any, path: Path) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _leave_out(item: Any, path: Path) -> None:
    del _found(item, path[:-1])[path[-1]]


def _tree(case: Case) -> dict[str, Any]:
    return {
        "pod": case.pod,
        "objects": list(case.objects),
        "visitor": case.visitor,
        "changes": [change.new or {} for change in case.changes],
    }


def _case(tree: dict[str, Any], like: Case) -> Case:
    changes = tuple(
        change if change.new is None else replace(change, new=new)
        for change, new in zip(like.changes, tree["changes"], strict=True)
    )
    return Case(tree["pod"], tuple(tree["objects"]), tree["visitor"], changes)


def _paths(tree: dict[str, Any]) -> Iterator[Path]:
    """All parts that can be left out, large ones first."""
    found: list[Path] = []
    for part in ("pod", "visitor"):
        found.extend(_within(tree[part], (part,)))
    for part in ("objects", "changes"):
        for number, item in enumerate(tree[part]):
            found.extend(_within(item, (part, number)))
    return iter(sorted(found, key=len))


def _within(item: Any, path: Path) -> Iterator[Path]:
    entries = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    for key, value in entries:
        if key not in _NEEDED or path[-1] in ("labels", "annotations"):
            yield (*path, key)
        yield from _within(value, (*path, key))
