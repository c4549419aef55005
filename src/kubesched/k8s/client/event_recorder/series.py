"""Which occurrences are the same event again: the first makes an Event, the second a series, the rest only count.

Pure bookkeeping, as client-go's EventBroadcaster does it: no input or output, time is handed in. Two occurrences are
the same when action, reason, type, reporter and the objects concerned are. kube-scheduler's reference to a pod has its
resourceVersion, so that a pod that changed begins a new Event; where a reference has none, the note takes its place
(the message of a pod that cannot be scheduled is also written into its status, hence both change together).

Next: `recorder` writes what comes out of here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubesched.k8s.client.event_recorder.record import EventToRecord

FINISH_AFTER_S = 6 * 60.0
REFRESH_EVERY_S = 30 * 60.0
MOST_EVENTS = 65_536
"""Above this the oldest are forgotten: should they occur again, they become Events of their own."""

SeriesKey = tuple[object, ...]


@dataclass(slots=True)
class KnownEvent:
    """An Event that was written, or is about to be, and how often it occurred since."""

    record: EventToRecord
    first_s: float
    last_s: float
    name: str = ""
    """Given by whoever writes it."""
    count: int = 1
    is_queued: bool = False
    """Waits to be written; whatever occurs meanwhile is written with it."""
    is_on_server: bool = False

    @property
    def is_series(self) -> bool:
        return self.count > 1


class SeriesBook:
    """All events of the last minutes, by what makes them the same."""

    def __init__(self, most_events: int = MOST_EVENTS) -> None:
        self._known: dict[SeriesKey, KnownEvent] = {}
        self._most_events = most_events

    def __len__(self) -> int:
        return len(self._known)

    def occurred(self, record: EventToRecord, now_s: float) -> KnownEvent | None:
        """What to write now, if anything: a new Event, or one that has just become a series."""
        key = _key(record)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._most_events:
                del self._known[next(iter(self._known))]
            known = self._known[key] = KnownEvent(record, now_s, now_s)
            return known
        known.count += 1
        known.last_s = now_s
        return known if known.count == 2 else None

    def forget(self, record: EventToRecord) -> None:
        """It could not be written: the next occurrence is a first one again."""
        self._known.pop(_key(record), None)

    def series(self) -> Iterator[KnownEvent]:
        """All series, to be written again before the server forgets them."""
        return (known for known in self._known.values() if known.is_series)

    def finish(self, now_s: float) -> list[KnownEvent]:
        """Forgets what has not occurred for a while; gives the series among it, whose last count is to be written."""
        over = [key for key, known in self._known.items() if known.last_s < now_s - FINISH_AFTER_S]
        return [known for known in map(self._known.pop, over) if known.is_series]


def _key(record: EventToRecord) -> SeriesKey:
    regarding = record.regarding
    return (
        record.type,
        record.action,
        record.reason,
        record.reporting_controller,
        regarding,
        record.related,
        "" if regarding.resource_version else record.note,
    )
