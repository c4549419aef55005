"""Says what is wrong with following a kind: once when it begins or changes, and once when it is over.

A server that is away for an hour must not fill the log; a missing right must be found in it at a glance.
"""

from __future__ import annotations

import logging

from kubesched.client.errors import ApiError
from kubesched.client.resources import Resource

_log = logging.getLogger("kubesched.client.list_watch")


class TroubleLog:
    """For one kind."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._current = ""

    def report(self, verb: str, problem: Exception) -> None:
        """`verb` (list or watch) did not work."""
        state = _state_of(verb, problem)
        if state == self._current:
            return
        self._current = state
        fields = {"resource": self._resource.full_name, "verb": verb, "err": str(problem)}
        if isinstance(problem, ApiError) and problem.is_forbidden:
            group = self._resource.group or "core"
            _log.error(
                f"RBAC does not let us {verb} {self._resource.plural} (API group {group}): "
                f"grant the verbs list and watch on it to this user; trying again until then",
                extra={"fields": fields},
            )
        else:
            _log.warning(f"Cannot {verb} {self._resource.plural}; trying again", extra={"fields": fields})

    def over(self) -> None:
        if self._current:
            self._current = ""
            fields = {"resource": self._resource.full_name}
            _log.info(f"{self._resource.plural} are followed again", extra={"fields": fields})


def _state_of(verb: str, problem: Exception) -> str:
    """What counts as the same trouble: messages may differ by a request's number or a time."""
    if isinstance(problem, ApiError):
        return f"{verb} {problem.status} {problem.reason}"
    return f"{verb} {type(problem).__name__}"
