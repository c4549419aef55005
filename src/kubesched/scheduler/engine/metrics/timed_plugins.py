"""A profile whose plugins are measured one by one: for every tenth cycle, as it costs too much for all of them.

The plugins stay the same objects; what is measured stands in front of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kubesched.framework.status import Code, Status
from kubesched.framework.verdicts import ACCEPT_ALL, Verdicts
from kubesched.scheduler.engine.metrics.extension_point_watch import ExtensionPointWatch, status_of
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.steps import FilterStep, ScoreStep

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
            TimedPlugin(plugin, {method: _timed_steps(watch, plugin.name, name, getattr(plugin, method))})
            for plugin in plugins
        ]

    return replace(
        profile,
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


def _timed_steps(watch: ExtensionPointWatch, plugin: str, extension_point: str, method: Method) -> Method:
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
