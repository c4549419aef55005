"""Conditions as JSON has them: the time of the last transition moves only when the status changes."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.times import print_instant
from kubesched.playground.controllers.documents import Body


def find_condition(conditions: Iterable[Body], kind: str) -> Body | None:
    return next((known for known in conditions if known.get("type") == kind), None)


def with_condition_set(conditions: Iterable[Body], new: Body, now_s: float) -> list[Body]:
    """The conditions with this one in the place of its predecessor; `new` has type, status, reason and message."""
    known = list(conditions)
    before = find_condition(known, new["type"])
    moment = print_instant(now_s)
    kept = before is not None and before.get("status") == new["status"]
    made = {**new, "lastTransitionTime": before["lastTransitionTime"] if kept and before else moment}
    if before is None:
        return [*known, made]
    return [made if condition is before else condition for condition in known]


def condition(kind: str, is_true: bool, reason: str, message: str) -> Body:
    return {"type": kind, "status": "True" if is_true else "False", "reason": reason, "message": message}
