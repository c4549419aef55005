"""What is told of a list or watch that ended with an error: by `default_watch_error_handler` unless another is set.

A server that is away for an hour must not fill the log, and a missing right must be found in it at a glance: so the
same trouble of a kind is an error once, then (`TroubleLog`) only told at higher verbosity, and once when it is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.k8s.client.errors import AnswerLost, ApiError
from kubesched.k8s.client.list_watch import log_lines
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.connections.log_lines import LogLine


class VeryShortWatchError(Exception):
    """A watch ended within a second, and told nothing."""

    def __init__(self, reflector: str) -> None:
        super().__init__(
            f"very short watch: {reflector}: Unexpected watch close - "
            "watch lasted less than a second and no items received"
        )


@dataclass(frozen=True, slots=True)
class WatchError:
    """`verb` is list or watch; `was_open`: the watch had begun. `is_hasty`: but lasted for less than a second.
    `lists`: the watch was to bring a list, too."""

    resource: Resource
    reflector: str
    verb: str
    problem: Exception
    was_open: bool = False
    is_hasty: bool = False
    lists: bool = False

    @property
    def message(self) -> str:
        """As client-go has it: a list names its kind."""
        return f"failed to list {self.resource.go_type}: {self.problem}" if self.verb == "list" else str(self.problem)


WatchErrorHandler = Callable[[WatchError], None]
"""Must be quick, and not wait."""


def default_watch_error_handler(error: WatchError) -> None:
    """One line, at the level that fits the error."""
    _write(_line_for(error), error)


class TroubleLog:
    """For one kind: the default, but what goes on and on is told once."""

    def __init__(self) -> None:
        self._current = ""

    def report(self, error: WatchError) -> None:
        line = _line_for(error)
        if line.v == 0:
            state = _state_of(error)
            if state == self._current:
                line = log_lines.LIST_BACKING_OFF if error.lists else log_lines.WATCH_BACKING_OFF
            self._current = state
        _write(line, error)

    def over(self, resource: Resource, reflector: str) -> None:
        if self._current:
            self._current = ""
            log_lines.OVER.write(reflector, resource.go_type)


def _line_for(error: WatchError) -> LogLine:
    """Those with V(0) tell of something that is wrong; the others of the course of things."""
    problem = error.problem
    if isinstance(problem, ApiError) and problem.is_gone:
        return log_lines.WATCH_CLOSED
    if not error.was_open:
        is_forbidden = isinstance(problem, ApiError) and problem.is_forbidden
        return log_lines.FORBIDDEN if is_forbidden else log_lines.FAILED_TO_WATCH
    if isinstance(problem, ApiError) and problem.is_too_many:
        return log_lines.TOO_MANY_REQUESTS
    if isinstance(problem, ApiError) and problem.status == 500:
        return log_lines.INTERNAL_ERROR
    if isinstance(problem, AnswerLost) and not error.is_hasty:
        return log_lines.UNEXPECTED_EOF
    return log_lines.ENDED_WITH_ERROR


def _write(line: LogLine, error: WatchError) -> None:
    resource = error.resource
    known = {
        "reflector": error.reflector,
        "type": resource.go_type,
        "err": error.message,
        "hint": f"RBAC does not let us {error.verb} {resource.plural} (API group {resource.group or 'core'}): "
        "grant the verbs list and watch on it to this user; trying again until then",
    }
    is_of_kind = isinstance(error.problem, ApiError)  # else it is the server, and the same for all kinds
    line.write(*(known[name] for name in line.pairs), apart=resource.full_name if is_of_kind else "")


def _state_of(error: WatchError) -> str:
    """What counts as the same trouble: messages may differ by a request's number or a time."""
    problem = error.problem
    if isinstance(problem, ApiError):
        return f"{error.verb} {problem.status} {problem.reason}"
    return f"{error.verb} {type(problem).__name__}"
