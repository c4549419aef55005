"""Every line that list and watch write, in client-go v1.36's words where it has them: message, level, pairs.

`type` is the kind as client-go prints it (`*v1.Pod`), `reflector` the name of the set of informers
(`InformerSettings.name`), where client-go names the place in its source.

A list or watch that ended with an error goes to `default_watch_error_handler`, unless another is set. A server that is
away for an hour must not fill the log, and a missing right must be found in it at a glance: so the same trouble of a
kind is an error once, then (`TroubleLog`) only written at higher verbosity, and once when it is over.

Next: `reflector`, which writes most of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kubesched.k8s.client.errors import AnswerLost, ApiError
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.connections.log_lines import LogLine
from kubesched.k8s.model.times import Duration

_line = partial(LogLine, log="kubesched.k8s.client.list_watch")

_WHICH = ("reflector", "type")

STARTING = _line("Starting reflector", 3, ("type", "resyncPeriod", "reflector"), "a kind begins to be followed")
STOPPING = _line("Stopping reflector", 3, ("type", "resyncPeriod", "reflector"), "it is not followed any more")
LISTING = _line("Listing and watching", 3, ("type", "reflector"), "before each list: the first, and those after 410")
POPULATED = _line("Caches populated", 2, ("type", "reflector"), "the list was taken in, and all handlers told")
INITIAL_EVENTS_ENDED = _line(
    "Exiting watch because received the bookmark that marks the end of initial events stream",
    4,
    ("reflector", "totalItems", "duration"),
    "a list that came as part of a watch is complete; the watch goes on",
)
NO_STREAMED_LISTS = _line(
    "Data couldn't be fetched in watchlist mode. Falling back to regular list. "
    "This is expected if watchlist is not supported or disabled in kube-apiserver.",
    4,
    ("err",),
    "the server refuses to send a list as part of a watch, or never says its end",
)
FORCING_RESYNC = _line("Forcing resync", 4, ("reflector",), "the resync period of a kind is over")
WATCH_CLOSE = _line("Watch close", 4, (*_WHICH, "totalItems"), "the server ended a watch; another one follows")
WATCH_CLOSED = _line("Watch closed", 4, (*_WHICH, "err"), "410 Gone, as status or ERROR event; a list follows")
UNEXPECTED_EOF = _line(
    "Watch closed with unexpected EOF", 1, (*_WHICH, "err"), "the connection of a watch broke; another one follows"
)
TOO_MANY_REQUESTS = _line("Watch returned 429 - backing off", 2, _WHICH, "a watch ended with Too Many Requests")
INTERNAL_ERROR = _line(
    "Retrying watch after internal error", 2, (*_WHICH, "err"), "a watch ended with an internal error of the server"
)
ENDED_WITH_ERROR = _line(
    "Warning: watch ended with error",
    0,
    (*_WHICH, "err"),
    "a watch ended with any other error, or within a second and without an event",
)
WATCH_BACKING_OFF = _line(
    "Watch failed - backing off", 4, (*_WHICH, "err"), "a watch could not be opened, again for the same reason"
)
LIST_BACKING_OFF = _line(
    "watch-list failed - backing off", 2, (*_WHICH, "err"), "the same of a list that is part of a watch"
)
FAILED_TO_WATCH = _line(
    "Failed to watch", 0, ("err", *_WHICH), "a list or watch was refused or had no answer: once", logging.ERROR
)
FORBIDDEN = _line(
    "Failed to watch", 0, ("err", *_WHICH, "hint"), "the same, for want of a right: `hint` names it", logging.ERROR
)
OVER = _line("Followed again", 0, _WHICH, "after `Failed to watch`: it works again")
UNKNOWN_EVENT = _line(
    "Unknown watch event",
    0,
    ("reflector", "event"),
    "an event of an unknown type is skipped",
    logging.ERROR,
)
NOT_UNDERSTOOD = _line(
    "Unable to understand watch event",
    0,
    ("err", "reflector", "event"),
    "what an event brought is no object: it has no metadata",
    logging.ERROR,
)
KIND_MISSING = _line(
    "The server does not have this kind; going on without it", 0, (*_WHICH, "versions"), "once", logging.WARNING
)
HANDLER_PANICKED = _line(
    "The watch error handler failed", 0, _WHICH, "one that was set, with its traceback", logging.ERROR
)
FOLLOWING_FAILED = _line("Reflector failed; relisting", 0, _WHICH, "a bug here, with its traceback", logging.ERROR)
HANDLER_FAILED = _line(
    "A handler of an informer failed",
    0,
    ("kind", "object", "handler"),
    "it raised, with its traceback; the others are still called",
    logging.ERROR,
)
SET_ASIDE = _line(
    "An object cannot be read and is set aside",
    0,
    ("kind", "object", "err", "countsAs"),
    "once for an object, until it can be read or is gone",
    logging.ERROR,
)
WAITING_FOR_SYNC = _line("Waiting for caches to sync", 0, ("controller",), "before the first lists are there")
STILL_WAITING = _line(
    "Still waiting for caches to sync",
    0,
    ("controller", "waitingFor", "seconds"),
    "every ten seconds: the kinds that are missing",
    logging.WARNING,
)
SYNCED = _line("Caches are synced", 0, ("controller",), "all first lists were taken in")
NOT_SYNCED = _line("Unable to sync caches", 0, ("controller",), "it was stopped before that", logging.ERROR)

LINES = tuple(known for known in list(globals().values()) if isinstance(known, LogLine))
"""All of them, for the reference."""


def go_duration(seconds: float) -> str:
    """`0s`, `9.203508ms`, `10m0s`."""
    return str(Duration(round(seconds * 10**9)))


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
    """For one kind: the default, but what goes on and on is logged once."""

    def __init__(self) -> None:
        self._current = ""

    def report(self, error: WatchError) -> None:
        line = _line_for(error)
        if line.v == 0:
            state = _state_of(error)
            if state == self._current:
                line = LIST_BACKING_OFF if error.lists else WATCH_BACKING_OFF
            self._current = state
        _write(line, error)

    def over(self, resource: Resource, reflector: str) -> None:
        if self._current:
            self._current = ""
            OVER.write(reflector, resource.go_type)


def _line_for(error: WatchError) -> LogLine:
    """Those with V(0) tell of something that is wrong; the others of the course of things."""
    problem = error.problem
    if isinstance(problem, ApiError) and problem.is_gone:
        return WATCH_CLOSED
    if not error.was_open:
        is_forbidden = isinstance(problem, ApiError) and problem.is_forbidden
        return FORBIDDEN if is_forbidden else FAILED_TO_WATCH
    if isinstance(problem, ApiError) and problem.is_too_many:
        return TOO_MANY_REQUESTS
    if isinstance(problem, ApiError) and problem.status == 500:
        return INTERNAL_ERROR
    if isinstance(problem, AnswerLost) and not error.is_hasty:
        return UNEXPECTED_EOF
    return ENDED_WITH_ERROR


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
