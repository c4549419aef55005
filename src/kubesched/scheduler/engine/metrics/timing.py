"""How long extension points, single plugins and whole decisions take.

An extension point says its name (`timed_extension_point`), and is measured if its profile has a watch; without one,
that costs one question more. Plugins are measured one by one in every tenth cycle (`timed_profile`), as it costs too
much for all of them: they stay the same objects, and what is measured stands in front of them. A decision that took
long leaves a trace of its steps, under kube-scheduler's names.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, Status
from kubesched.framework.verdicts import ACCEPT_ALL, Verdicts
from kubesched.scheduler.engine.metrics.definitions import FRAMEWORK_EXTENSION_POINT_DURATION, PLUGIN_EXECUTION_DURATION
from kubesched.scheduler.engine.metrics.series import HistogramSeries
from kubesched.scheduler.engine.profile import FilterStep, Profile, ScoreStep

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


SAMPLE_EVERY = 10

Method = Callable[..., Any]


class TimedPlugin:
    """A plugin some of whose methods are measured."""

    def __init__(self, plugin: Any, methods: dict[str, Method]) -> None:
        self.name: str = plugin.name
        self._plugin = plugin
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plugin, name)


def timed_profile(profile: Profile, watch: ExtensionPointWatch) -> Profile:
    """The same profile, measured."""

    def extension_point(plugins: Iterable[Any], **methods: str) -> list[Any]:
        return [
            TimedPlugin(
                plugin, {m: _timed(watch, plugin.name, name, getattr(plugin, m)) for m, name in methods.items()}
            )
            for plugin in plugins
        ]

    def steps(plugins: Iterable[Any], method: str, name: str) -> list[Any]:
        return [
            TimedPlugin(plugin, {method: _timed_plugin_steps(watch, plugin.name, name, getattr(plugin, method))})
            for plugin in plugins
        ]

    return replace(
        profile,
        unmeasured=profile,
        pre_filter=extension_point(profile.pre_filter, pre_filter="PreFilter"),
        pre_filter_extensions=extension_point(
            profile.pre_filter_extensions, add_pod="PreFilterExtensionAddPod", remove_pod="PreFilterExtensionRemovePod"
        ),
        filter=[_timed_filter(watch, step) for step in profile.filter],
        post_filter=extension_point(profile.post_filter, post_filter="PostFilter"),
        pre_score=extension_point(profile.pre_score, pre_score="PreScore"),
        score=[_timed_score(watch, step) for step in profile.score],
        reserve=extension_point(profile.reserve, reserve="Reserve", unreserve="Unreserve"),
        permit=extension_point(profile.permit, permit="Permit"),
        pre_bind=steps(
            extension_point(profile.pre_bind, pre_bind_pre_flight="PreBindPreFlight"), "pre_bind", "PreBind"
        ),
        bind=steps(profile.bind, "bind", "Bind"),
        post_bind=extension_point(profile.post_bind, post_bind="PostBind"),
    )


def _timed_filter(watch: ExtensionPointWatch, step: FilterStep) -> FilterStep:
    ask = step.filter_node
    return replace(
        step,
        filter=_timed(watch, step.name, "Filter", step.filter),
        filter_node=None if ask is None else _timed(watch, step.name, "Filter", ask),
    )


def _timed_score(watch: ExtensionPointWatch, step: ScoreStep) -> ScoreStep:
    normalize = step.normalize
    return replace(
        step,
        score=_timed(watch, step.name, "Score", step.score),
        normalize=None if normalize is None else _timed(watch, step.name, "ScoreExtensionNormalize", normalize),
    )


def _timed(watch: ExtensionPointWatch, plugin: str, extension_point: str, method: Method) -> Method:
    def timed(*args: Any, **kwargs: Any) -> Any:
        started_s = watch.clock()
        status = Code.ERROR.value
        try:
            result = method(*args, **kwargs)
            status = _table_status(result) if isinstance(result, Verdicts) else status_of(result)
        finally:
            watch.plugin_ended(plugin, extension_point, status, started_s)
        return result

    return timed


def _timed_plugin_steps(watch: ExtensionPointWatch, plugin: str, extension_point: str, method: Method) -> Method:
    def timed(*args: Any) -> Any:
        started_s = watch.clock()
        code = Code.ERROR.value
        try:
            status: Status = yield from method(*args)
            code = status.code.value
        finally:
            watch.plugin_ended(plugin, extension_point, code, started_s)
        return status

    return timed


def _table_status(verdicts: Verdicts) -> str:
    """A table of nodes counts as rejected if every node is."""
    is_rejected = verdicts is not ACCEPT_ALL and bool(verdicts.rejected.all())
    return Code.UNSCHEDULABLE.value if is_rejected else Code.SUCCESS.value


LONG_S = 0.1
"""A decision that takes longer leaves a trace."""

_STEPS = {"Filter": "Computing predicates done", "Score": "Prioritizing done"}


@dataclass(frozen=True, slots=True)
class TraceStep:
    name: str
    after_s: float
    """Since the beginning of the trace."""


@dataclass(frozen=True, slots=True)
class Trace:
    """`started_s` is a reading of the loop's clock."""

    name: str
    namespace: str
    pod_name: str
    started_s: float
    total_s: float
    steps: tuple[TraceStep, ...]

    def __str__(self) -> str:
        head = f'"{self.name}" namespace:{self.namespace},name:{self.pod_name} (total time: {_ms(self.total_s)})'
        return "\n".join([head, *(f'---"{step.name}" {_ms(step.after_s)}' for step in self.steps)])


def trace_of(pod: PodInfo, started_s: float, ended_s: float, marks: Sequence[ExtensionPointMark]) -> Trace | None:
    """The trace of a decision, or None if it was quick. Looking for victims is no part of it."""
    if ended_s - started_s <= LONG_S:
        return None
    runs = {
        extension_point: run for extension_point, *run in marks
    }  # of an extension point that was run again after a pause, the last run counts
    if "PostFilter" in runs:
        ended_s = runs["PostFilter"][0]
        if ended_s - started_s <= LONG_S:
            return None
    steps = tuple(
        TraceStep(name, runs[extension_point][1] - started_s)
        for extension_point, name in _STEPS.items()
        if extension_point in runs
    )
    return Trace("Scheduling", pod.namespace, pod.name, started_s, ended_s - started_s, steps)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms"
