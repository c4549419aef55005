"""What an extension point may return: every answer of an outside plugin is checked before the engine sees it.

Lists are accepted where arrays are expected; anything else of the wrong type is a `PluginFault`. So the engine can
trust all answers, and checks none on the path of the in-tree plugins. Calls go through `asked` and its like, from which
nothing but an answer of the right kind, or a `PluginFault`, comes back.

Next: `checked_plugin`, which puts these checks in front of a plugin's methods.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.effects import (
    BindPod,
    EvictPod,
    PatchObject,
    PatchPodStatus,
    RecordEvent,
    WaitUntil,
    WriteObject,
)
from kubesched.framework.extension_points import PermitResult
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NominatingMode,
    PostFilterResult,
    PreFilterResult,
    Scores,
)
from kubesched.framework.status import OK, Code, InvalidScore, PluginFault, Status
from kubesched.framework.verdicts import ACCEPT_ALL, Verdicts
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.plugin_loading.class_rules import told

EFFECTS = (BindPod, PatchPodStatus, EvictPod, RecordEvent, WriteObject, PatchObject)
"""What a plugin may ask the world outside for, wherever it may ask."""

_LONGEST_SHOWN = 60
_ALWAYS = frozenset({Code.SUCCESS, Code.ERROR, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})
_MORE_CODES = {
    "pre_filter": Code.SKIP,
    "pre_score": Code.SKIP,
    "permit": Code.WAIT,
    "pre_bind_pre_flight": Code.SKIP,
    "bind": Code.SKIP,
}


def status_check(method: str) -> Callable[[Any], Status]:
    """For a method that answers with a status."""
    allowed = _ALWAYS | {_MORE_CODES[method]} if method in _MORE_CODES else _ALWAYS

    def check(answer: object) -> Status:
        if answer is OK:
            return OK
        if not isinstance(answer, Status):
            raise wrong(method, answer, "a Status")
        if answer.code not in allowed:
            raise PluginFault(f"{method} returned a status of code {shown(answer.code)}, which means nothing here")
        if not isinstance(answer.reasons, tuple) or not all(isinstance(reason, str) for reason in answer.reasons):
            raise PluginFault(f"{method} returned a status whose reasons are not texts: {shown(answer.reasons)}")
        return answer

    return check


_pre_filter_status = status_check("pre_filter")
_post_filter_status = status_check("post_filter")
_permit_status = status_check("permit")


def pre_filter_result(answer: Any) -> PreFilterResult:
    if not isinstance(answer, PreFilterResult):
        raise wrong("pre_filter", answer, "a PreFilterResult")
    _pre_filter_status(answer.status)
    names: Any = answer.node_names
    if names is None or isinstance(names, frozenset):
        return answer
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise PluginFault(f"pre_filter returned node_names that are not names of nodes: {shown(names)}")
    return replace(answer, node_names=frozenset(names))


def post_filter_result(answer: Any) -> PostFilterResult:
    if not isinstance(answer, PostFilterResult):
        raise wrong("post_filter", answer, "a PostFilterResult")
    _post_filter_status(answer.status)
    if not isinstance(answer.mode, NominatingMode) or not isinstance(answer.node_name, str):
        raise PluginFault(f"post_filter returned {shown(answer)}: mode must be a NominatingMode and node_name a text")
    return answer


def permit_result(answer: Any) -> PermitResult:
    if not isinstance(answer, PermitResult):
        raise wrong("permit", answer, "a PermitResult")
    _permit_status(answer.status)
    if not isinstance(answer.timeout_s, int | float) or not isfinite(answer.timeout_s):
        raise PluginFault(f"permit returned timeout_s {shown(answer.timeout_s)}, it must be a number of seconds")
    return answer


def verdicts_on(answer: object, n_nodes: int) -> Verdicts:
    """(n_reasons, n_nodes) bits and (n_nodes,) flags, as `Verdicts` wants them."""
    if answer is ACCEPT_ALL:
        return ACCEPT_ALL
    if not isinstance(answer, Verdicts):
        raise wrong("filter", answer, "Verdicts")
    if not answer.reasons and not answer.errors:
        return ACCEPT_ALL
    bits, flags = np.asarray(answer.bits, np.bool_), np.asarray(answer.unresolvable, np.bool_)
    if not answer.reasons:
        bits = np.zeros((0, n_nodes), np.bool_)
    if bits.shape != (len(answer.reasons), n_nodes) or flags.shape != (n_nodes,):
        raise PluginFault(
            f"filter returned verdicts of shape {bits.shape} and {flags.shape} "
            f"on {n_nodes} nodes for {len(answer.reasons)} reasons"
        )
    if not all(isinstance(reason, str) for reason in answer.reasons):
        raise PluginFault(f"filter returned reasons that are not texts: {shown(answer.reasons)}")
    if not all(isinstance(position, int) and 0 <= position < n_nodes for position in answer.errors):
        raise PluginFault(f"filter returned errors of nodes that do not exist: {shown(list(answer.errors))}")
    return replace(answer, reasons=tuple(answer.reasons), bits=bits, unresolvable=flags)


def scores_on(answer: Any, n_nodes: int, method: str, *, is_final: bool) -> Scores:
    """(n_nodes,) whole numbers; those that are final must be within the range."""
    if answer is None:
        raise wrong(method, answer, "an array of scores")
    scores = np.asarray(answer)
    if scores.shape != (n_nodes,):
        raise PluginFault(f"{method} returned scores of shape {scores.shape} for {n_nodes} nodes")
    if scores.dtype.kind not in "iu" and n_nodes:
        raise PluginFault(f"{method} returned scores of type {scores.dtype}, they must be whole numbers")
    whole: Scores = scores.astype(np.int64, copy=False)
    if is_final and n_nodes and (whole.min() < MIN_NODE_SCORE or whole.max() > MAX_NODE_SCORE):
        outside = (whole < MIN_NODE_SCORE) | (whole > MAX_NODE_SCORE)
        raise InvalidScore(int(whole[outside][0]))
    return whole


def score_of_node(answer: object, *, is_final: bool) -> int:
    if type(answer) is not int:
        if not isinstance(answer, int | np.integer) or isinstance(answer, bool):
            raise wrong("score_node", answer, "an int")
        answer = int(answer)
    if is_final and not MIN_NODE_SCORE <= answer <= MAX_NODE_SCORE:
        raise InvalidScore(answer)
    return answer


def sort_key(answer: Any) -> tuple[float, ...]:
    key = tuple(answer) if isinstance(answer, list | tuple) else ()
    if not key or not all(isinstance(part, int | float) and part == part for part in key):
        raise wrong("sort_key", answer, "a tuple of numbers")
    return key


def effect(action: object) -> object:
    """For what the steps of `pre_bind` and `bind` yield: they may wait, too."""
    if isinstance(action, WaitUntil):
        return _wait(action)
    if not isinstance(action, EFFECTS):
        raise PluginFault(f"yielded {shown(action)}, which is not an effect")
    return action


def effects(found: list[object]) -> list[object]:
    """For what `take_effects` gives, which is not waited for."""
    if any(not isinstance(action, EFFECTS) for action in found):
        raise wrong("take_effects", found, "effects")
    return found


def _wait(action: WaitUntil) -> WaitUntil:
    timeout_s: Any = action.timeout_s
    watched: Any = action.watched
    if not isinstance(timeout_s, int | float) or not isfinite(timeout_s):
        raise PluginFault(f"yielded a WaitUntil with timeout_s {shown(timeout_s)}, it must be a number of seconds")
    if not isinstance(watched, tuple) or not all(isinstance(k, type) and issubclass(k, KubeObject) for k in watched):
        raise PluginFault(f"yielded a WaitUntil with watched {shown(watched)}, it must be a tuple of kinds")
    return action


def wrong(method: str, answer: object, wanted: str) -> PluginFault:
    return PluginFault(f"{method} returned {shown(answer)}, it must return {wanted}")


def shown(answer: object) -> str:
    text = " ".join(repr(answer).split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


Method = Callable[..., Any]

_HERE = str(Path(__file__).parent)


def asked(own: Method, check: Callable[[Any, tuple[Any, ...]], Any]) -> Method:
    def ask(*given: Any) -> Any:
        try:
            return check(own(*given), given)
        except PluginFault:
            raise
        except (Exception, SystemExit) as bug:
            raise fault_of(bug) from bug

    return ask


def asked_of_node(own: Method) -> Method:
    """Asked of thousands of nodes: an answer that is the same as before is passed on without a further call."""
    check = status_check("filter_node")
    known = OK

    def ask(cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        nonlocal known
        try:
            answer = own(cycle, pod, node)
        except (Exception, SystemExit) as bug:
            raise fault_of(bug) from bug
        if answer is OK or answer is known:
            return answer
        checked = check(answer)
        if checked.code is Code.ERROR:
            raise PluginFault(checked.message)
        known = checked
        return checked

    return ask


def scored_node(own: Method, *, is_final: bool) -> Method:
    def ask(cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        try:
            answer = own(cycle, pod, node)
        except (Exception, SystemExit) as bug:
            raise fault_of(bug) from bug
        return score_of_node(answer, is_final=is_final)

    return ask


def steps_of(own: Method, check: Callable[[Any], Status]) -> Method:
    """A plugin that has nothing to wait for may return its status, and need not be a generator."""

    def steps(*given: Any) -> Generator[object, object, Status]:
        made = asked(own, lambda answer, _: answer)(*given)
        if not isinstance(made, Generator):
            return check(made)
        answer: object = None
        try:
            while True:
                try:
                    action = made.send(answer)
                except StopIteration as end:
                    return check(end.value)
                except (Exception, SystemExit) as bug:
                    raise fault_of(bug) from bug
                action = effect(action)
                if isinstance(action, WaitUntil):
                    action = structs.replace(
                        action, is_settled=asked(action.is_settled, lambda answer, _: bool(answer))
                    )
                answer = yield action
        finally:
            made.close()

    return steps


def fault_of(bug: BaseException) -> PluginFault:
    return PluginFault(f"{told(bug)}{place_of(bug)}")


def place_of(bug: BaseException) -> str:
    """` (my_plugin.py, line 7)`: where the plugin's own code broke."""
    frames = [frame for frame in traceback.extract_tb(bug.__traceback__) if not frame.filename.startswith(_HERE)]
    if not frames:
        return ""
    inside = [frame for frame in frames if frame.filename == frames[0].filename]
    return f" ({Path(inside[-1].filename).name}, line {inside[-1].lineno})"
