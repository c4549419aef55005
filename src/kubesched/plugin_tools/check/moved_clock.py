"""The time, told wrongly for a while: what a plugin answers must not depend on when it is asked.

The functions of `time`, and what the plugin's own module took from `time` and `datetime`, are set ahead. Time that C
code takes by itself is not reached.
"""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_SECONDS = ("time", "monotonic", "perf_counter")
_NANOSECONDS = ("time_ns", "monotonic_ns", "perf_counter_ns")


@contextmanager
def moved_clock(plugin_class: type, ahead_s: float) -> Iterator[None]:
    """As if it were so much later."""
    functions = _later_functions(ahead_s)
    module = sys.modules.get(plugin_class.__module__)
    replaced: list[tuple[ModuleType, str, object]] = []
    known = {id(getattr(time, name)): later for name, later in functions.items()}
    known |= {id(datetime.datetime): _later_class(datetime.datetime, ahead_s)}
    known |= {id(datetime.date): _later_class(datetime.date, ahead_s)}
    known |= {id(datetime): _later_module(ahead_s)}
    try:
        for name, later in functions.items():
            replaced.append((time, name, getattr(time, name)))
            setattr(time, name, later)
        for name, value in list(vars(module).items()) if module is not None else ():
            if id(value) in known and module is not None:
                replaced.append((module, name, value))
                setattr(module, name, known[id(value)])
        yield
    finally:
        for place, name, value in reversed(replaced):
            setattr(place, name, value)


def _later_functions(ahead_s: float) -> dict[str, Any]:
    def later(told: Callable[[], Any], by: Any) -> Callable[[], Any]:
        return lambda: told() + by

    found = {name: later(getattr(time, name), ahead_s) for name in _SECONDS}
    return found | {name: later(getattr(time, name), int(ahead_s * 1e9)) for name in _NANOSECONDS}


def _later_class(kind: Any, ahead_s: float) -> Any:
    ahead = datetime.timedelta(seconds=ahead_s)
    today = classmethod(lambda cls: kind.today() + ahead)
    if kind is datetime.date:
        return type("date", (kind,), {"today": today})
    now = classmethod(lambda cls, tz=None: kind.now(tz) + ahead)
    utcnow = classmethod(lambda cls: kind.now(datetime.UTC).replace(tzinfo=None) + ahead)
    return type("datetime", (kind,), {"today": today, "now": now, "utcnow": utcnow})


def _later_module(ahead_s: float) -> ModuleType:
    module = ModuleType("datetime")
    vars(module).update(vars(datetime))
    vars(module).update(datetime=_later_class(datetime.datetime, ahead_s), date=_later_class(datetime.date, ahead_s))
    return module
