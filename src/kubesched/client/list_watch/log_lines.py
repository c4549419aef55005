"""Every line that list and watch write, in client-go v1.36's words where it has them: message, level, pairs.

`type` is the kind as client-go prints it (`*v1.Pod`), `reflector` the name of the set of informers
(`InformerSettings.name`), where client-go names the place in its source.

Next: `reflector` and `trouble`, which write most of them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kubesched.model.durations import Duration

_log = logging.getLogger("kubesched.client.list_watch")


@dataclass(frozen=True, slots=True)
class LogLine:
    """`v` counts for lines of level INFO; warnings and errors are always written. `when` is for the reference."""

    message: str
    v: int
    pairs: tuple[str, ...]
    when: str
    level: int = logging.INFO

    def write(self, *values: object, apart: str = "", exc_info: bool = False) -> None:
        """The values of the pairs, in their order. Lines with different `apart` do not count as repeats."""
        if _log.isEnabledFor(self.level):
            fields = dict(zip(self.pairs, values, strict=True))
            extra = {"fields": fields, "v": self.v, "apart": apart}
            _log.log(self.level, self.message, extra=extra, exc_info=exc_info or None, stacklevel=2)


_WHICH = ("reflector", "type")

STARTING = LogLine("Starting reflector", 3, ("type", "resyncPeriod", "reflector"), "a kind begins to be followed")
STOPPING = LogLine("Stopping reflector", 3, ("type", "resyncPeriod", "reflector"), "it is not followed any more")
LISTING = LogLine("Listing and watching", 3, ("type", "reflector"), "before each list: the first, and those after 410")
POPULATED = LogLine("Caches populated", 2, ("type", "reflector"), "the list was taken in, and all handlers told")
INITIAL_EVENTS_ENDED = LogLine(
    "Exiting watch because received the bookmark that marks the end of initial events stream",
    4,
    ("reflector", "totalItems", "duration"),
    "a list that came as part of a watch is complete; the watch goes on",
)
NO_STREAMED_LISTS = LogLine(
    "Data couldn't be fetched in watchlist mode. Falling back to regular list. "
    "This is expected if watchlist is not supported or disabled in kube-apiserver.",
    4,
    ("err",),
    "the server refuses to send a list as part of a watch, or never says its end",
)
FORCING_RESYNC = LogLine("Forcing resync", 4, ("reflector",), "the resync period of a kind is over")
WATCH_CLOSE = LogLine("Watch close", 4, (*_WHICH, "totalItems"), "the server ended a watch; another one follows")
WATCH_CLOSED = LogLine("Watch closed", 4, (*_WHICH, "err"), "410 Gone, as status or ERROR event; a list follows")
UNEXPECTED_EOF = LogLine(
    "Watch closed with unexpected EOF", 1, (*_WHICH, "err"), "the connection of a watch broke; another one follows"
)
TOO_MANY_REQUESTS = LogLine("Watch returned 429 - backing off", 2, _WHICH, "a watch ended with Too Many Requests")
INTERNAL_ERROR = LogLine(
    "Retrying watch after internal error", 2, (*_WHICH, "err"), "a watch ended with an internal error of the server"
)
ENDED_WITH_ERROR = LogLine(
    "Warning: watch ended with error",
    0,
    (*_WHICH, "err"),
    "a watch ended with any other error, or within a second and without an event",
)
WATCH_BACKING_OFF = LogLine(
    "Watch failed - backing off", 4, (*_WHICH, "err"), "a watch could not be opened, again for the same reason"
)
LIST_BACKING_OFF = LogLine(
    "watch-list failed - backing off", 2, (*_WHICH, "err"), "the same of a list that is part of a watch"
)
FAILED_TO_WATCH = LogLine(
    "Failed to watch", 0, ("err", *_WHICH), "a list or watch was refused or had no answer: once", logging.ERROR
)
FORBIDDEN = LogLine(
    "Failed to watch", 0, ("err", *_WHICH, "hint"), "the same, for want of a right: `hint` names it", logging.ERROR
)
OVER = LogLine("Followed again", 0, _WHICH, "after `Failed to watch`: it works again")
UNKNOWN_EVENT = LogLine(
    "Unknown watch event",
    0,
    ("reflector", "event"),
    "an event of a type that nobody knows is passed over",
    logging.ERROR,
)
NOT_UNDERSTOOD = LogLine(
    "Unable to understand watch event",
    0,
    ("err", "reflector", "event"),
    "what an event brought is no object: it has no metadata",
    logging.ERROR,
)
KIND_MISSING = LogLine(
    "The server does not have this kind; going on without it", 0, (*_WHICH, "versions"), "once", logging.WARNING
)
HANDLER_PANICKED = LogLine(
    "The watch error handler failed", 0, _WHICH, "one that was set, with its traceback", logging.ERROR
)
FOLLOWING_FAILED = LogLine(
    "Following a kind failed; listing anew", 0, _WHICH, "a bug here, with its traceback", logging.ERROR
)
HANDLER_FAILED = LogLine(
    "A handler of an informer failed",
    0,
    ("kind", "object", "handler"),
    "it raised, with its traceback; the others go on",
    logging.ERROR,
)
SET_ASIDE = LogLine(
    "An object cannot be read and is set aside",
    0,
    ("kind", "object", "err", "countsAs"),
    "once for an object, until it can be read or is gone",
    logging.ERROR,
)
WAITING_FOR_SYNC = LogLine("Waiting for caches to sync", 0, ("controller",), "before the first lists are there")
STILL_WAITING = LogLine(
    "Still waiting for caches to sync",
    0,
    ("controller", "waitingFor", "seconds"),
    "every ten seconds: the kinds that are missing",
    logging.WARNING,
)
SYNCED = LogLine("Caches are synced", 0, ("controller",), "all first lists were taken in")
NOT_SYNCED = LogLine("Unable to sync caches", 0, ("controller",), "it was stopped before that", logging.ERROR)


def go_duration(seconds: float) -> str:
    """`0s`, `9.203508ms`, `10m0s`."""
    return str(Duration(round(seconds * 10**9)))
