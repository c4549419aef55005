"""Calls of a plugin's methods from which nothing but an answer of the right kind, or a `PluginFault`, comes back.

Next: `answers` for what is right.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.effects import WaitUntil
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, PluginFault, Status
from kubesched.scheduler.plugin_loading import answers
from kubesched.scheduler.plugin_loading.plugin_errors import told

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
    check = answers.status_check("filter_node")
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
        return answers.score_of_node(answer, is_final=is_final)

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
                action = answers.effect(action)
                if isinstance(action, WaitUntil):
                    action = replace(action, is_settled=asked(action.is_settled, lambda answer, _: bool(answer)))
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
