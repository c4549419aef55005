"""How long extension points take. An extension point says its name (`timed_extension_point`), and is measured if its
profile has a watch.

Without a watch, an extension point costs one question more. Next: `timed_plugins`, for single plugins.
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


ExtensionPointMark = tuple[str, float, float]
"""(extension point, when it began, when it ended)"""

TRACED_EXTENSION_POINTS = frozenset({"Filter", "Score", "PostFilter"})

_SUCCESS: str = Code.SUCCESS.value
_ERROR: str = Code.ERROR.value


class ExtensionPointWatch:
    """One per loop, for all profiles."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.extension_points = HistogramSeries(FRAMEWORK_EXTENSION_POINT_DURATION)
        self.plugins = HistogramSeries(PLUGIN_EXECUTION_DURATION)
        self.marks: list[ExtensionPointMark] = []
        """The extension points of the cycle under way that show in a trace; whoever runs cycles clears it."""

    def extension_point_ended(self, extension_point: str, status: str, profile: str, started_s: float) -> None:
        now_s = self.clock()
        self.extension_points.observe(now_s - started_s, (extension_point, status, profile))
        if extension_point in TRACED_EXTENSION_POINTS:
            self.marks.append((extension_point, started_s, now_s))

    def plugin_ended(self, plugin: str, extension_point: str, status: str, started_s: float) -> None:
        self.plugins.observe(self.clock() - started_s, (plugin, extension_point, status))


def timed_extension_point(
    extension_point: str,
) -> Callable[[Callable[Concatenate[Profile, Parameters], Result]], Callable[Concatenate[Profile, Parameters], Result]]:
    """For a function that runs an extension point's plugins, and whose first argument is the profile."""

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
                watch.extension_point_ended(extension_point, status, profile.scheduler_name, started_s)
            return result

        return update_wrapper(timed, run)

    return decorate


def timed_steps(
    profile: Profile, extension_point: str, steps: Generator[object, object, Status]
) -> Generator[object, object, Status]:
    """The same for an extension point that waits for the world outside."""
    watch = profile.watch
    return steps if watch is None else _timed_steps(watch, profile.scheduler_name, extension_point, steps)


def _timed_steps(
    watch: ExtensionPointWatch, profile_name: str, extension_point: str, steps: Generator[object, object, Status]
) -> Generator[object, object, Status]:
    started_s = watch.clock()
    code = _ERROR
    try:
        status = yield from steps
        code = status_of(status)
    finally:
        watch.extension_point_ended(extension_point, code, profile_name, started_s)
    return status


def status_of(result: object) -> str:
    """The status in whatever an extension point or a plugin answered; an answer without one is a success."""
    if result is OK or result is None:
        return _SUCCESS
    status = result if isinstance(result, Status) else getattr(result, "status", None)
    return str(status.code.value) if isinstance(status, Status) else _SUCCESS
