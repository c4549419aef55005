"""Asks a plugin, extension point by extension point, and insists on answers of the right kind.

An extension point that raises, or answers with something that is no answer, is a `BrokenPluginError` that names
extension point and node. Next: `trial`, which puts the extension points together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np

from kubesched.framework import (
    ACCEPT_ALL,
    OK,
    CycleState,
    NodeInfo,
    NodeTable,
    PodInfo,
    PreFilterResult,
    Status,
    Verdicts,
)
from kubesched.framework.extension_points import (
    Filter,
    FilterNode,
    NormalizeScore,
    PermitResult,
    Plugin,
    PreFilter,
    PreFilterExtensions,
    PreScore,
    Score,
    ScoreNode,
)
from kubesched.framework.results import Scores
from kubesched.framework.status import InvalidScore, PluginFault
from kubesched.k8s.errors import KubeschedError

Answer = TypeVar("Answer")


class BrokenPluginError(KubeschedError):
    """An extension point gave no answer. `node` is empty where a whole table was asked about."""

    def __init__(self, extension_point: str, problem: str, node: str = "") -> None:
        super().__init__(f"{extension_point}: {problem}")
        self.extension_point = extension_point
        self.problem = problem
        self.node = node


class ScoreOutOfBoundsError(BrokenPluginError):
    """The checks in front of a plugin refused a score."""

    def __init__(self, extension_point: str, score: int, node: str = "") -> None:
        super().__init__(extension_point, f"a score of {score}", node)
        self.score = score


def pre_filter(plugin: Plugin, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
    if not hasattr(plugin, "pre_filter"):
        return PreFilterResult()
    asked = cast(PreFilter, plugin)
    result = _asked("pre_filter", lambda: asked.pre_filter(cycle, pod, nodes))
    _expect("pre_filter", result, PreFilterResult)
    _expect("pre_filter", result.status, Status)
    return result


def has_filter(plugin: Plugin) -> bool:
    return filters_tables(plugin) or filters_nodes(plugin)


def has_score(plugin: Plugin) -> bool:
    return scores_tables(plugin) or scores_nodes(plugin)


# As `isinstance` with the protocols, which would take most of the time here.


def filters_tables(plugin: Plugin) -> TypeGuard[Filter]:
    return hasattr(plugin, "filter")


def filters_nodes(plugin: Plugin) -> TypeGuard[FilterNode]:
    return hasattr(plugin, "filter_node")


def scores_tables(plugin: Plugin) -> TypeGuard[Score]:
    return hasattr(plugin, "score")


def scores_nodes(plugin: Plugin) -> TypeGuard[ScoreNode]:
    return hasattr(plugin, "score_node")


def normalizes(plugin: Plugin) -> TypeGuard[NormalizeScore]:
    return hasattr(plugin, "normalize_score")


def follows_trials(plugin: Plugin) -> TypeGuard[PreFilterExtensions]:
    return hasattr(plugin, "add_pod") and hasattr(plugin, "remove_pod")


def filter_nodes(plugin: Plugin, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> list[Status]:
    """As the scheduler asks: the whole table at once where the plugin can."""
    if filters_tables(plugin):
        return filter_table(plugin, cycle, pod, nodes)
    return [filter_one(plugin, cycle, pod, nodes.at(position)) for position in range(len(nodes))]


def filter_table(plugin: Filter, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> list[Status]:
    verdicts = _asked("filter", lambda: plugin.filter(cycle, pod, nodes))
    _expect("filter", verdicts, Verdicts)
    if verdicts is ACCEPT_ALL:
        return [OK] * len(nodes)
    shapes = (np.shape(verdicts.bits), np.shape(verdicts.unresolvable))
    wanted = ((len(verdicts.reasons), len(nodes)), (len(nodes),))
    if shapes != wanted:
        raise BrokenPluginError("filter", f"verdicts of shape {shapes[0]} and {shapes[1]} for {len(nodes)} nodes")
    return [verdicts.status(position) for position in range(len(nodes))]


def filter_one(plugin: Plugin, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
    assert filters_nodes(plugin)
    status = _asked("filter_node", lambda: plugin.filter_node(cycle, pod, node), node.name)
    _expect("filter_node", status, Status, node.name)
    return status


def pre_score(plugin: Plugin, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
    if not hasattr(plugin, "pre_score"):
        return OK
    asked = cast(PreScore, plugin)
    status = _asked("pre_score", lambda: asked.pre_score(cycle, pod, nodes))
    _expect("pre_score", status, Status)
    return status


def raw_scores(plugin: Plugin, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
    if scores_tables(plugin):
        return _scores("score", _asked("score", lambda: plugin.score(cycle, pod, nodes)), len(nodes))
    each = [score_one(plugin, cycle, pod, nodes.at(position)) for position in range(len(nodes))]
    return np.array(each, dtype=np.int64)


def score_one(plugin: Plugin, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
    assert scores_nodes(plugin)
    score: object = _asked("score_node", lambda: plugin.score_node(cycle, pod, node), node.name)
    if not isinstance(score, int | np.integer) or isinstance(score, bool):
        raise BrokenPluginError("score_node", f"answered {score!r}, which is no whole number", node.name)
    return int(score)


def normalized(plugin: Plugin, cycle: CycleState, pod: PodInfo, nodes: NodeTable, raw: Scores) -> Scores:
    if not normalizes(plugin):
        return raw
    found = _asked("normalize_score", lambda: plugin.normalize_score(cycle, pod, nodes, raw))
    return _scores("normalize_score", found, len(nodes))


def one_status(extension_point: str, ask: Callable[[], object]) -> Status:
    """Of an extension point that answers with a status, or with a result that has one."""
    answer = _asked(extension_point, ask)
    if isinstance(answer, PermitResult):
        answer = answer.status
    _expect(extension_point, answer, Status)
    assert isinstance(answer, Status)
    return answer


def done(extension_point: str, ask: Callable[[], object], node: str = "") -> None:
    """An extension point that does something and answers nothing."""
    _asked(extension_point, ask, node)


def _asked(extension_point: str, ask: Callable[[], Answer], node: str = "") -> Answer:
    try:
        return ask()
    except InvalidScore as refused:
        raise ScoreOutOfBoundsError(extension_point, refused.score, node) from refused
    except PluginFault as fault:
        raise BrokenPluginError(extension_point, str(fault), node) from fault
    except Exception as bug:
        raise BrokenPluginError(extension_point, f"raised {type(bug).__name__}: {bug}", node) from bug


def _expect(extension_point: str, answer: object, kind: type[Any], node: str = "") -> None:
    if not isinstance(answer, kind):
        raise BrokenPluginError(extension_point, f"answered {answer!r}, not a {kind.__name__}", node)


def _scores(extension_point: str, answer: object, n_nodes: int) -> Scores:
    if not isinstance(answer, np.ndarray) or answer.shape != (n_nodes,):
        raise BrokenPluginError(extension_point, f"answered {_short(answer)}, not an array of {n_nodes} scores")
    if not np.issubdtype(answer.dtype, np.integer):
        raise BrokenPluginError(extension_point, f"answered scores of type {answer.dtype}, which are no whole numbers")
    return answer


def _short(answer: object) -> str:
    if isinstance(answer, np.ndarray):
        return f"an array of shape {answer.shape}"
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        return f"a {type(answer).__name__} of {len(answer)}"
    return repr(answer)
