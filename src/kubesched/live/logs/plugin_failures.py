"""How often a plugin that breaks is told: with its stack, once a minute for each place; the others are counted."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from kubesched.scheduler.engine.plugin_call import PluginError

_TELL_EVERY_S = 60.0
_MOST_PLACES = 256

_Place = tuple[str, str, str, int]


@dataclass(slots=True)
class _Told:
    at_s: float
    n_since: int = 0


class PluginFailures:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[_Place, _Told] = {}

    def to_tell(self, error: PluginError) -> dict[str, object] | None:
        """The fields of a line; None if the same was told a moment ago."""
        now_s, place = self._clock(), _place(error)
        told = self._told.get(place)
        if told is not None and now_s - told.at_s < _TELL_EVERY_S:
            told.n_since += 1
            return None
        fields: dict[str, object] = {"err": error.message, "plugin": error.plugin}
        if told is not None and told.n_since:
            fields["repeated"] = told.n_since
        if error.__cause__ is not None:
            fields["stack"] = "".join(traceback.format_exception(error.__cause__))
        if len(self._told) >= _MOST_PLACES:
            self._told.clear()
        self._told[place] = _Told(now_s)
        return fields


def _place(error: PluginError) -> _Place:
    """What the plugin was asked for, and where it broke: the innermost frame of the cause."""
    cause = error.__cause__
    frames = traceback.extract_tb(cause.__traceback__) if cause is not None else []
    last = frames[-1] if frames else None
    doing = error.message.partition(": ")[0]
    return doing, type(cause).__name__, last.filename if last else "", last.lineno or 0 if last else 0
