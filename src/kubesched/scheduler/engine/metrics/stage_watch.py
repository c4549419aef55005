"""How long stages take. A stage says its name (`timed_stage`), and is measured if its profile has a watch.

Without a watch, a stage costs one question more. Next: `timed_plugins`, for single plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import update_wrapper
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from kubesched.framework.status import OK, Code, Status
from kubesched.scheduler.engine.metrics.definitions import FRAMEWORK_EXTENSION_POINT_DURATION, PLUGIN_EXECUTION_DURATION
from kubesched.scheduler.engine.metrics.series import HistogramSeries

if TYPE_CHECKING:
    from kubesched.scheduler.engine.profile import Profile

Clock = Callable[[], float]
"""Seconds that only ever grow."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


StageMark = tuple[str, float, float]
"""(stage, when it began, when it ended)"""

TRACED_STAGES = frozenset({"Filter", "Score", "PostFilter"})

_SUCCESS: str = Code.SUCCESS.value
_ERROR: str = Code.ERROR.value


class StageWatch:
    """One per loop, for all profiles."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.stages = HistogramSeries(FRAMEWORK_EXTENSION_POINT_DURATION)
        self.plugins = HistogramSeries(PLUGIN_EXECUTION_DURATION)
        self.marks: list[StageMark] = []
        """The stages of the cycle under way that show in a trace; whoever runs cycles clears it."""

    def stage_ended(self, stage: str, status: str, profile: str, started_s: float) -> None:
        now_s = self.clock()
        self.stages.observe(now_s - started_s, (stage, status, profile))
        if stage in TRACED_STAGES:
            self.marks.append((stage, started_s, now_s))

    def plugin_ended(self, plugin: str, stage: str, status: str, started_s: float) -> None:
        self.plugins.observe(self.clock() - started_s, (plugin, stage, status))


def timed_stage(
    stage: str,
) -> Callable[[Callable[Concatenate[Profile, Parameters], Result]], Callable[Concatenate[Profile, Parameters], Result]]:
    """For a function that runs a stage's plugins, and whose first argument is the profile."""

    def decorate(
        run: Callable[Concatenate[Profile, Parameters], Result],
    ) -> Callable[Concatenate[Profile, Parameters], Result]:
        def timed(profile: Profile, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            watch = profile.watch
            if watch is None:
                return run(profile, *args, **kwargs)
            started_s = watch.clock()
            status = _ERROR
            try:
                result = run(profile, *args, **kwargs)
                status = status_of(result)
            finally:
                watch.stage_ended(stage, status, profile.scheduler_name, started_s)
            return result

        return update_wrapper(timed, run)

    return decorate


def timed_steps(
    profile: Profile, stage: str, steps: Generator[object, object, Status]
) -> Generator[object, object, Status]:
    """The same for a stage that waits for the world outside."""
    watch = profile.watch
    return steps if watch is None else _timed_steps(watch, profile.scheduler_name, stage, steps)


def _timed_steps(
    watch: StageWatch, profile_name: str, stage: str, steps: Generator[object, object, Status]
) -> Generator[object, object, Status]:
    started_s = watch.clock()
    code = _ERROR
    try:
        status = yield from steps
        code = status_of(status)
    finally:
        watch.stage_ended(stage, code, profile_name, started_s)
    return status


def status_of(result: object) -> str:
    """The status in whatever a stage or a plugin answered; an answer without one is a success."""
    if result is OK or result is None:
        return _SUCCESS
    status = result if isinstance(result, Status) else getattr(result, "status", None)
    return str(status.code.value) if isinstance(status, Status) else _SUCCESS
