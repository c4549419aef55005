"""The same question gets the same answer: asked again, by a new plugin, after other questions, in another order.

And at another time: the functions of `time`, and what the plugin's own module took from `time` and `datetime`, are set
ahead for a while. Time that C code takes by itself is not reached.

`hash_seeds` asks in another Python, where sets and hashes come out differently.
"""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kubesched.framework import CycleState
from kubesched.plugin_tools.check.answer_checks import shown
from kubesched.plugin_tools.check.asking import PluginTrial, TrialAnswers
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Case, Subject

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


_DAYS_LATER_S = (86_400.0, 100_003.0)
"""The next date at the same time of day, whatever that is now; and a day later at another time of day."""


def answers_repeat(subject: Subject, case: Case) -> RuleViolation | bool:
    trial, cycle = PluginTrial(subject, case), CycleState()
    first = trial.answers(cycle)
    asked_pod = trial.pod
    violation = differing(first, trial.answers(), "when it is asked again")
    if violation is None:
        trial.pod = trial.info(case.visitor)
        trial.answers()
        trial.pod = asked_pod
        violation = differing(first, trial.answers(), "after a call for another pod")
    if violation is None:
        backwards = PluginTrial(subject, case, backwards=True)
        violation = differing(first, backwards.answers(), "when the objects come in another order")
    for ahead_s in _DAYS_LATER_S:
        if violation is None:
            with moved_clock(subject.plugin_class, ahead_s):
                violation = differing(first, trial.answers(), "a day later")
    return violation or bool(first.statuses)


def differing(first: TrialAnswers, second: TrialAnswers, when: str) -> RuleViolation | None:
    if first.gate != second.gate:
        answers = {"first": shown(first.gate), when: shown(second.gate)}
        return RuleViolation(f"pre_enqueue answers otherwise {when}", "", answers)
    for node, status in first.statuses.items():
        other = second.statuses[node]
        if (status.code, status.reasons) != (other.code, other.reasons):
            answers = {"first": shown(status), when: shown(other)}
            return RuleViolation(f"filter answers otherwise {when}", node, answers)
    for node in first.admissions.keys() & second.admissions.keys():
        one_said, two_said = first.admissions[node], second.admissions[node]
        if (one_said.code, one_said.reasons) != (two_said.code, two_said.reasons):
            answers = {"first": shown(one_said), when: shown(two_said)}
            return RuleViolation(f"reserve or permit answers otherwise {when}", node, answers)
    for node in first.raw.keys() | second.raw.keys():
        one, two = (found.scores.get(node) for found in (first, second))
        if one != two:
            return RuleViolation(f"score answers otherwise {when}", node, {"first": str(one), when: str(two)})
    return None
