"""Which plugins had a say in how many attempts.

An attempt is counted under what it skipped and where it ended, which most attempts have in common; the plugins are
worked out from that when somebody looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kubesched.framework.extension_points import Plugin
from kubesched.framework.status import Code
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.diagnosis import Diagnosis
from kubesched.scheduler.engine.metrics.series import LabelValues
from kubesched.scheduler.engine.profile import Profile


class _Course(NamedTuple):
    """What attempts have in common that asked the same plugins."""

    profile: str
    skip_filter: frozenset[str]
    skip_score: frozenset[str] | None
    """None if nothing was scored."""
    ended_at_pre_filter: str = ""
    """The plugin that rejected the pod for good."""
    rejected_by: tuple[str, ...] | None = None
    """The plugins that rejected nodes, if no node was left."""


class Evaluations:
    def __init__(self) -> None:
        self._successes: dict[tuple[str, frozenset[str], frozenset[str] | None], int] = {}
        self._failures: dict[_Course, int] = {}

    def count(self, profile: str, decision: Decision) -> None:
        cycle = decision.cycle
        if decision.node_name:
            course = (profile, cycle.skip_filter, cycle.skip_score if decision.n_feasible > 1 else None)
            self._successes[course] = self._successes.get(course, 0) + 1
        elif decision.diagnosis is not None:  # else there were no nodes, or a plugin broke
            failure = _failure(profile, cycle.skip_filter, decision.diagnosis)
            self._failures[failure] = self._failures.get(failure, 0) + 1

    def totals(self, profiles: Mapping[str, Profile]) -> dict[LabelValues, float]:
        """By plugin, extension point and profile."""
        found: Counter[LabelValues] = Counter()
        courses = [(_Course(*course), n) for course, n in self._successes.items()]
        for course, n in (*courses, *self._failures.items()):
            for extension_point, plugin in _asked(profiles[course.profile], course):
                found[plugin, extension_point, course.profile] += n
        return dict(found)


def _failure(profile: str, skip_filter: frozenset[str], diagnosis: Diagnosis) -> _Course:
    rejection, filtered = diagnosis.prefilter.status, diagnosis.filtered
    ended = rejection.plugin if rejection.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else ""
    rejected_by = () if filtered is None else tuple(filtered.rejecting_plugins())
    return _Course(profile, skip_filter, None, ended, rejected_by)


def _asked(profile: Profile, course: _Course) -> Iterator[tuple[str, str]]:
    """(extension point, plugin)"""
    pre_filter = _left(profile.pre_filter, course.skip_filter)
    filters = [step.name for step in profile.filter if step.name not in course.skip_filter]
    if course.ended_at_pre_filter:
        pre_filter = _up_to(pre_filter, [course.ended_at_pre_filter])
    if course.rejected_by is not None:
        filters = _up_to(filters, course.rejected_by)
    yield from (("PreFilter", name) for name in pre_filter)
    yield from (("Filter", name) for name in filters)
    if course.skip_score is not None:
        yield from (("PreScore", name) for name in _left(profile.pre_score, course.skip_score))
        yield from (("Score", step.name) for step in profile.score if step.name not in course.skip_score)


def _left(plugins: Iterable[Plugin], skipped: frozenset[str]) -> list[str]:
    return [plugin.name for plugin in plugins if plugin.name not in skipped]


def _up_to(names: Sequence[str], last: Sequence[str]) -> list[str]:
    """Up to the last of these; none if none of them is there."""
    ends = [position + 1 for position, name in enumerate(names) if name in last]
    return list(names[: ends[-1]]) if ends else []
