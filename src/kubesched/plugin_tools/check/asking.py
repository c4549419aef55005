"""One case, built up: a cluster, a new plugin over it, and all that the plugin says about the case's pod.

The plugin is asked extension point by extension point. One that raises, or answers with something that is no answer, is
a `BrokenPluginError` that names extension point and node.

Next: `answer_checks` for what is made of the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np

from kubesched.framework import (
    ACCEPT_ALL,
    OK,
    Code,
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
    Permit,
    PermitResult,
    Plugin,
    PreEnqueue,
    PreFilter,
    PreFilterExtensions,
    PreScore,
    Reserve,
    Score,
    ScoreNode,
)
from kubesched.framework.results import Scores
from kubesched.framework.status import InvalidScore, PluginFault
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.plugin_tools.check.subject import Case, Manifest, Subject
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.score import ByName

_ELSEWHERE = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("not among the nodes that pre_filter names",))


@dataclass(frozen=True)
class TrialAnswers:
    """By node name. `raw` and `scores` are of the nodes that the plugin does not reject."""

    gate: Status = OK
    statuses: dict[str, Status] = field(default_factory=dict)
    raw: dict[str, int] = field(default_factory=dict)
    scores: dict[str, int] = field(default_factory=dict)
    admissions: dict[str, Status] = field(default_factory=dict)
    """What reserve and permit say, for nodes that the plugin does not reject."""

    @property
    def rejected(self) -> frozenset[str]:
        """Nodes to which the pod cannot go: all of them if it may not even be tried."""
        return frozenset(name for name in self.statuses if self.rejection_of(name) is not None)

    def rejection_of(self, node: str) -> Status | None:
        """Why the pod cannot go to the node; None if it can, or there is no such node."""
        said = (self.gate, self.statuses.get(node, OK), self.admissions.get(node, OK))
        return next((status for status in said if status.is_rejected), None)


class PluginTrial:
    def __init__(self, subject: Subject, case: Case, *, backwards: bool = False) -> None:
        """`backwards`: the objects come in the opposite order, which must not matter."""
        objects = list(reversed(case.objects)) if backwards else list(case.objects)
        pending, *others = manifests.from_dicts([case.pod, *objects]).objects
        assert isinstance(pending, Pod)
        self.objects: list[KubeObject] = others
        self.cluster = Cluster.from_objects([*others, pending])
        self.plugin, self.args = subject.made(EngineHandle(self.cluster, ByName()))
        self.pod: PodInfo = self.cluster.signatures.info(pending)

    @property
    def nodes(self) -> TableView:
        return self.cluster.nodes

    def info(self, item: Manifest) -> PodInfo:
        """Another pod, as the plugin sees it."""
        (pod,) = manifests.from_dicts([item]).objects
        assert isinstance(pod, Pod)
        return self.cluster.signatures.info(pod)

    def answers(self, cycle: CycleState | None = None) -> TrialAnswers:
        """All that it says, from the first extension point on."""
        cycle = CycleState() if cycle is None else cycle
        gate, statuses = self.gate(), self.statuses(cycle)
        accepted = [position for position, name in enumerate(self.nodes.names) if statuses[name].is_success]
        feasible = self.nodes.take(np.array(accepted, dtype=np.intp))
        raw, scores = self.scored(cycle, feasible)
        admissions = {name: self._admission(cycle, name) for name in feasible.names} if self._admits else {}
        return TrialAnswers(gate, statuses, raw, scores, admissions)

    @property
    def _admits(self) -> bool:
        return hasattr(self.plugin, "reserve") or hasattr(self.plugin, "permit")

    def _admission(self, cycle: CycleState, node_name: str) -> Status:
        """Reserves, asks for permission, and gives back."""
        plugin, status = self.plugin, OK
        if isinstance(plugin, Reserve):
            status = one_status("reserve", partial(plugin.reserve, cycle, self.pod, node_name))
        if status.is_success and isinstance(plugin, Permit):
            status = one_status("permit", partial(plugin.permit, cycle, self.pod, node_name))
        if isinstance(plugin, Reserve):
            done("unreserve", partial(plugin.unreserve, cycle, self.pod, node_name))
        return status

    def gate(self) -> Status:
        if not hasattr(self.plugin, "pre_enqueue"):
            return OK
        plugin = cast(PreEnqueue, self.plugin)
        status = one_status("pre_enqueue", lambda: plugin.pre_enqueue(self.pod))
        return OK if status.is_success else Status(status.code, status.reasons)

    def statuses(self, cycle: CycleState) -> dict[str, Status]:
        """What preFilter and filter come to, by node."""
        names, nodes = self.nodes.names, self.nodes
        result = pre_filter(self.plugin, cycle, self.pod, nodes)
        if result.status.is_skip:
            return dict.fromkeys(names, OK)
        if not result.status.is_success:
            return dict.fromkeys(names, result.status)
        found = dict(zip(names, self.filtered(cycle), strict=True))
        if result.node_names is not None:
            found |= dict.fromkeys(set(names) - result.node_names, _ELSEWHERE)
        return {name: found[name] for name in names}

    def filtered(self, cycle: CycleState) -> list[Status]:
        """What filter says about every node, once `pre_filter` prepared the cycle."""
        if not has_filter(self.plugin):
            return [OK] * len(self.nodes)
        return filter_nodes(self.plugin, cycle, self.pod, self.nodes)

    def scored(self, cycle: CycleState, feasible: TableView) -> tuple[dict[str, int], dict[str, int]]:
        """Raw and normalised scores of these nodes."""
        plugin, pod = self.plugin, self.pod
        if not has_score(plugin) or not len(feasible):
            return {}, {}
        if not pre_score(plugin, cycle, pod, feasible).is_success:
            return {}, {}
        raw = raw_scores(plugin, cycle, pod, feasible)
        given = raw.copy()
        scores = normalized(plugin, cycle, pod, feasible, given)
        return _by_name(feasible.names, raw.tolist()), _by_name(feasible.names, scores.tolist())


def _by_name(names: Sequence[str], values: list[int]) -> dict[str, int]:
    return dict(zip(names, values, strict=True))


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
