"""A plugin from outside as the engine sees it: one object for all extension points, with the methods that the plugin
has.

In front of each method stands a check. Whatever the plugin raises or answers wrongly becomes a `PluginFault`, which the
engine turns into an Error status that names the plugin. Where no extension point asks (the order of the queue, say)
something harmless stands in for the answer, and the fault goes to the log, once.

Next: `answers` for the checks, `construction` for how the plugin itself is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from kubesched.framework.caching import SCOPE_ATTRIBUTES, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ClusterEvent, Hint, HintFunction, RegisteredEvent
from kubesched.framework.extension_points import Plugin, QueuedPod
from kubesched.framework.handle import Handle
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, PluginFault, Status
from kubesched.scheduler.plugin_loading import answers
from kubesched.scheduler.plugin_loading.answers import Method
from kubesched.scheduler.plugin_loading.class_rules import METHODS, YES_OR_NO, plugin_error, told
from kubesched.scheduler.plugin_loading.construction import construct, decoded_args

_log = logging.getLogger("kubesched.plugins")

_ATTRIBUTES = (*SCOPE_ATTRIBUTES, "reads_objects")


@dataclass(frozen=True)
class OutsideFactory:
    """Makes the plugin, and puts the checks in front of it."""

    plugin_class: type
    origin: str

    def __call__(self, args: Any, handle: Handle) -> Plugin:
        decoded = decoded_args(self.plugin_class, args, self.origin)
        return OutsidePlugin(construct(self.plugin_class, decoded, handle, self.origin), self.origin)


class OutsidePlugin:
    """Has the extension point methods that the plugin has, and only those: by them the engine knows where it takes
    part."""

    def __init__(self, plugin: Any, origin: str) -> None:
        self.name: str = type(plugin).name
        self.plugin = plugin
        """What the author wrote."""
        self.origin = origin
        self._told: set[str] = set()
        for attribute in _ATTRIBUTES:
            if hasattr(plugin, attribute):
                setattr(self, attribute, getattr(plugin, attribute))
        for method in METHODS:
            own = getattr(plugin, method, None)
            if callable(own):
                setattr(self, method, self._checked(method, own))
        if hasattr(self, "reserve") and not hasattr(self, "unreserve"):
            self.unreserve = _nothing_to_do
        if hasattr(self, "pre_bind") and not hasattr(self, "pre_bind_pre_flight"):
            self.pre_bind_pre_flight = _always_to_do

    def _checked(self, method: str, own: Method) -> Method:
        match method:
            case "filter_node":
                return answers.asked_of_node(own)
            case "score_node":
                return answers.scored_node(own, is_final=not hasattr(self.plugin, "normalize_score"))
            case "filter":
                return answers.asked(own, lambda answer, given: answers.verdicts_on(answer, len(given[2])))
            case "score":
                return self._score(own)
            case "normalize_score":
                return self._normalize(own)
            case "pre_bind" | "bind":
                return answers.steps_of(own, answers.status_check(method))
            case "events_to_register":
                return self._events(own)
            case "sort_key":
                return self._sort_key(own)
            case "take_effects":
                return self._effects(own)
            case "filter_scope_for" | "score_scope_for":
                return self._scope(method, own)
        if method in YES_OR_NO:
            return answers.asked(own, lambda answer, _: bool(answer))
        check = _CHECKS.get(method) or answers.status_check(method)
        return answers.asked(own, lambda answer, _: check(answer))

    def _score(self, own: Method) -> Method:
        is_final = not hasattr(self.plugin, "normalize_score")
        return answers.asked(
            own, lambda answer, given: answers.scores_on(answer, len(given[2]), "score", is_final=is_final)
        )

    def _normalize(self, own: Method) -> Method:
        def on_a_copy(cycle: CycleState, pod: PodInfo, nodes: Any, scores: Any) -> Any:
            return own(cycle, pod, nodes, scores.copy())

        return answers.asked(
            on_a_copy,
            lambda answer, given: answers.scores_on(answer, len(given[2]), "normalize_score", is_final=True),
        )

    # -- where no extension point asks -----------------------------------------------------------------------

    def _events(self, own: Method) -> Method:
        def events() -> list[RegisteredEvent]:
            try:
                found = [_registered(item) for item in own()]
            except (Exception, SystemExit) as bug:
                text = str(bug) if isinstance(bug, PluginFault) else f"raised {told(bug)}{answers.place_of(bug)}"
                raise plugin_error(self.origin, f"events_to_register {text}", self.name) from bug
            return found

        return events

    def _sort_key(self, own: Method) -> Method:
        def key(queued: QueuedPod) -> tuple[float, ...]:
            try:
                return answers.sort_key(own(queued))
            except (Exception, SystemExit) as bug:  # noqa: BLE001  whatever it is, it is told
                self._tell("sort_key", bug)
                return (inf, queued.queued_at_s)

        return key

    def _effects(self, own: Method) -> Method:
        def effects() -> Sequence[object]:
            try:
                return answers.effects(list(own()))
            except (Exception, SystemExit) as bug:  # noqa: BLE001  whatever it is, it is told
                self._tell("take_effects", bug)
                return ()

        return effects

    def _scope(self, method: str, own: Method) -> Method:
        def scope(pod: PodInfo) -> Scope | None:
            try:
                found = own(pod)
                if found is not None and not isinstance(found, Scope):
                    raise answers.wrong(method, found, "a Scope or None")
            except (Exception, SystemExit) as bug:  # noqa: BLE001  whatever it is, it is told
                self._tell(method, bug)
                return None
            return found

        return scope

    def _tell(self, method: str, bug: BaseException) -> None:
        text = str(bug) if isinstance(bug, PluginFault) else f"{told(bug)}{answers.place_of(bug)}"
        if text not in self._told:
            self._told.add(text)
            _log.error("Plugin failed", extra={"fields": {"plugin": self.name, "method": method, "err": text}})


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "pre_filter": answers.pre_filter_result,
    "post_filter": answers.post_filter_result,
    "permit": answers.permit_result,
    "unreserve": lambda _: None,
    "post_bind": lambda _: None,
}
"""Of other methods that do not answer with a status."""


def _registered(item: object) -> RegisteredEvent:
    if isinstance(item, ClusterEvent):
        return RegisteredEvent(item)
    if not isinstance(item, RegisteredEvent) or not isinstance(item.event, ClusterEvent):
        raise PluginFault(f"gave {answers.shown(item)}, it must give ClusterEvents or RegisteredEvents")
    return item if item.hint is None else RegisteredEvent(item.event, _hint(item.hint))


def _hint(own: HintFunction) -> HintFunction:
    def hint(pod: PodInfo, old: object | None, new: object | None) -> Hint:
        try:
            answer = own(pod, old, new)
        except SystemExit as bug:
            raise answers.fault_of(bug) from bug
        if not isinstance(answer, Hint):
            raise answers.wrong("the hint", answer, "a Hint")
        return answer

    return hint


def _nothing_to_do(_cycle: CycleState, _pod: PodInfo, _node_name: str) -> None:
    pass


def _always_to_do(_cycle: CycleState, _pod: PodInfo, _node_name: str) -> Status:
    return OK
