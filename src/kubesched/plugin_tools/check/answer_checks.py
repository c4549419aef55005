"""Rules for answers, and for the state that they are made from.

Each answer is of the right kind, scores are in bounds, and both forms agree. An exception would end the pod's cycle
with an error, and so would a score that is not 0 to 100 once it is normalised. The scheduler asks whichever form is
cheaper, the table form or the one for one node, about all nodes, the live ones, or one: which it was must not show.

What `pre_filter` prepared follows pods: `add_pod` and `remove_pod` undo each other, and after either of them filter
answers as if the state had been prepared on the cluster as it is then. Preemption relies on it. A plugin that counts
pods in `pre_filter` and has no such methods breaks the same rule: its counts are out of date.

Nothing else that a plugin is given is written to: not the pod, the nodes and the table, the arguments, what others keep
in the cycle, the raw scores that it is asked to normalise.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np

from kubesched.framework import MAX_NODE_SCORE, MIN_NODE_SCORE, CycleState, PodInfo, Status
from kubesched.framework.caching import WITHIN_NODE, filter_scope_for
from kubesched.framework.events import RegisteredEvent
from kubesched.framework.extension_points import EnqueueExtensions, Reserve
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.asking import BrokenPluginError, PluginTrial, ScoreOutOfBoundsError
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Case, Subject
from kubesched.scheduler.cluster.self_check import recount_rows
from kubesched.scheduler.engine.row_check import ImaginedNode


def forms_agree(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    cycle = CycleState()
    result = asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes)
    found: RuleViolation | bool = False
    if result.status.is_success and asking.filters_tables(trial.plugin):
        found = _filter_agrees(trial, cycle)
    if (
        not isinstance(found, RuleViolation)
        and asking.scores_tables(trial.plugin)
        and asking.scores_nodes(trial.plugin)
    ):
        scored = _score_agrees(trial, cycle, filters=result.status.is_success)
        found = scored or found
    return found


def _filter_agrees(trial: PluginTrial, cycle: CycleState) -> RuleViolation | bool:
    plugin, pod, nodes = trial.plugin, trial.pod, trial.nodes
    assert asking.filters_tables(plugin)
    has_both = asking.filters_nodes(trial.plugin)
    whole = asking.filter_table(plugin, cycle, pod, nodes)
    for position, said in enumerate(whole):
        node = nodes.at(position)
        if has_both:
            alone = asking.filter_one(plugin, cycle, pod, node)
            if not _same(alone, said):
                return _differing("filter and filter_node differ", node.name, "filter", said, "filter_node", alone)
        (single,) = asking.filter_table(plugin, cycle, pod, nodes.take(np.array([position])))
        if not _same(single, said):
            problem = "filter answers differently for this node alone"
            return _differing(problem, node.name, "among all", said, "alone", single)
    turned = np.arange(len(nodes))[::-1]
    for position, said in zip(turned, asking.filter_table(plugin, cycle, pod, nodes.take(turned)), strict=True):
        if not _same(whole[position], said):
            problem = "filter answers otherwise when the nodes come in another order"
            return _differing(problem, nodes.names[position], "in order", whole[position], "backwards", said)
    return True


def _score_agrees(trial: PluginTrial, cycle: CycleState, *, filters: bool) -> RuleViolation | bool:
    plugin, pod, nodes = trial.plugin, trial.pod, trial.nodes
    accepted = [at for at, status in enumerate(trial.filtered(cycle)) if status.is_success] if filters else []
    feasible = nodes.take(np.array(accepted if filters else range(len(nodes)), dtype=np.intp))
    if not len(feasible) or not asking.pre_score(plugin, cycle, pod, feasible).is_success:
        return False
    for part in (feasible, feasible.take(np.arange(len(feasible))[::-2])):
        for position, said in enumerate(asking.raw_scores(plugin, cycle, pod, part).tolist()):
            alone = asking.score_one(plugin, cycle, pod, part.at(position))
            if alone != said:
                node = part.names[position]
                return _differing("score and score_node differ", node, "score", said, "score_node", alone)
    return True


def _same(one: Status, other: Status) -> bool:
    return one.code is other.code and one.reasons == other.reasons


def _differing(problem: str, node: str, who: str, said: object, other: str, otherwise: object) -> RuleViolation:
    return RuleViolation(problem, node, {who: shown(said), other: shown(otherwise)})


def shown(answer: object) -> str:
    if not isinstance(answer, Status):
        return str(answer)
    return f"{answer.code.value}: {answer.message}" if answer.reasons else answer.code.value


def bounds_hold(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    if not asking.has_score(trial.plugin):
        return False
    try:
        answers = trial.answers()
    except ScoreOutOfBoundsError as refused:
        return RuleViolation(_problem(refused.score), refused.node, {refused.extension_point: str(refused.score)})
    for node, score in answers.scores.items():
        if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
            told = {"score": str(score)}
            if asking.normalizes(trial.plugin):
                told = {"raw score": str(answers.raw[node]), "normalised": str(score)}
            return RuleViolation(_problem(score), node, told)
    return bool(answers.scores)


def _problem(score: int) -> str:
    return f"a score of {score}: it must be {MIN_NODE_SCORE} to {MAX_NODE_SCORE}"


def answers_hold(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    try:
        ask_everything(trial)
    except ScoreOutOfBoundsError:
        return True  # an answer, if a wrong one: `bounds` tells
    except BrokenPluginError as broken:
        return RuleViolation(f"{broken.extension_point} {broken.problem}", broken.node)
    return True


def ask_everything(trial: PluginTrial) -> None:
    """All that a plugin can be asked about a pod before it is bound, in both forms."""
    trial.answers()
    _ask_other_forms(trial)
    _ask_unreserve(trial)
    _ask_events(trial)


def _ask_other_forms(trial: PluginTrial) -> None:
    plugin, pod, nodes, cycle = trial.plugin, trial.pod, trial.nodes, CycleState()
    each = [nodes.at(position) for position in range(len(nodes))]
    prepared = asking.pre_filter(plugin, cycle, pod, nodes).status.is_success
    if prepared and asking.filters_tables(plugin) and asking.filters_nodes(plugin):
        for node in each:
            asking.filter_one(plugin, cycle, pod, node)
    if asking.scores_tables(plugin) and asking.scores_nodes(plugin):
        accepted = [n for n, s in zip(each, trial.filtered(cycle), strict=True) if s.is_success] if prepared else []
        if accepted and asking.pre_score(plugin, cycle, pod, nodes).is_success:
            for node in accepted:
                asking.score_one(plugin, cycle, pod, node)


def _ask_unreserve(trial: PluginTrial) -> None:
    """Also where `reserve` never ran."""
    plugin = trial.plugin
    if isinstance(plugin, Reserve):
        for name in trial.nodes.names[:1]:
            asking.done("unreserve", partial(plugin.unreserve, CycleState(), trial.pod, name), name)


def _ask_events(trial: PluginTrial) -> None:
    plugin = trial.plugin
    if not isinstance(plugin, EnqueueExtensions):
        return
    try:
        registered = list(plugin.events_to_register())
    except Exception as bug:
        raise BrokenPluginError("events_to_register", f"raised {type(bug).__name__}: {bug}") from bug
    for entry in registered:
        if not isinstance(entry, RegisteredEvent):
            raise BrokenPluginError("events_to_register", f"answered {entry!r}, not a RegisteredEvent")


_MOST_PODS = 4


def pods_are_symmetric(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    if not asking.has_filter(trial.plugin):
        return False
    cycle = CycleState()
    if not asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes).status.is_success:
        return False
    found = False
    for row, info, is_there in _pods_to_move(trial, case):
        violation = _moved_there_and_back(trial, cycle, row, info, adding=not is_there)
        if violation is not None:
            return violation
        found = True
    return found


def move(trial: PluginTrial, cycle: CycleState, info: PodInfo, row: int, *, adding: bool) -> None:
    """The pod comes to the row or leaves it, and the plugin is notified, as in a dry run of preemption."""
    plugin, table = trial.plugin, trial.cluster.table
    with table.journal.paused():
        table.add_pod(info, row) if adding else table.remove_pod(info)
    if asking.follows_trials(plugin):
        node = trial.nodes.at(row)
        if adding:
            asking.one_status("add_pod", lambda: plugin.add_pod(cycle, trial.pod, info, node))
        else:
            asking.one_status("remove_pod", lambda: plugin.remove_pod(cycle, trial.pod, info, node))


def _pods_to_move(trial: PluginTrial, case: Case) -> Iterator[tuple[int, PodInfo, bool]]:
    """(row, pod, whether it is there)"""
    there = [(row, info) for row in range(len(trial.nodes)) for info in trial.cluster.table.pods.on(row)]
    yield from ((row, info, True) for row, info in there[:_MOST_PODS])
    visitor = trial.info(case.visitor)
    yield from ((row, visitor, False) for row in range(min(2, len(trial.nodes))))


def _moved_there_and_back(
    trial: PluginTrial, cycle: CycleState, row: int, info: PodInfo, *, adding: bool
) -> RuleViolation | None:
    verb = "added" if adding else "removed"
    before = trial.filtered(cycle)
    imagined = _on_imagined_node(trial, cycle, row, info, adding=adding)
    move(trial, cycle, info, row, adding=adding)
    between = trial.filtered(cycle)
    real = None if imagined is None else asking.filter_one(trial.plugin, cycle, trial.pod, trial.nodes.at(row))
    fresh = _prepared_anew(trial)
    move(trial, cycle, info, row, adding=not adding)
    after = trial.filtered(cycle)
    pod = f"pod {info.key} {verb}"
    return (
        _compared(trial, f"with {pod}, filter does not answer as if prepared so", between, fresh, ("told", "prepared"))
        or _compared(trial, f"with {pod} and that undone, filter answers otherwise", before, after, ("before", "after"))
        or _imagination_differs(trial.nodes.names[row], real, imagined)
    )


def _prepared_anew(trial: PluginTrial) -> list[Status] | None:
    """None where `pre_filter` rejects the pod as a whole now: then there is nothing to compare with."""
    cycle = CycleState()
    result = asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes)
    if result.status.is_skip:
        return [Status(result.status.code)] * len(trial.nodes)
    return trial.filtered(cycle) if result.status.is_success else None


def _compared(
    trial: PluginTrial, problem: str, ones: list[Status], others: list[Status] | None, who: tuple[str, str]
) -> RuleViolation | None:
    for position, (one, other) in enumerate(zip(ones, others or ones, strict=True)):
        if _rejects(one) != _rejects(other):
            return RuleViolation(problem, trial.nodes.names[position], {who[0]: shown(one), who[1]: shown(other)})
    return None


def _on_imagined_node(trial: PluginTrial, cycle: CycleState, row: int, info: PodInfo, *, adding: bool) -> Status | None:
    """What the form for one node says about a node that is worked out, not in the table."""
    plugin = trial.plugin
    if not asking.filters_nodes(plugin) or filter_scope_for(plugin)(trial.pod) not in WITHIN_NODE:
        return None
    node = ImaginedNode(trial.nodes.at(row))
    node.bring(info) if adding else node.take_away(info)
    return asking.filter_one(plugin, cycle, trial.pod, node)


def _imagination_differs(node: str, real: Status | None, imagined: Status | None) -> RuleViolation | None:
    if real is None or imagined is None or _rejects(imagined) == _rejects(real):
        return None
    problem = "filter_node does not answer by the node it is given (its pods and amounts), but by the table"
    return RuleViolation(problem, node, {"in the table": shown(real), "imagined": shown(imagined)})


def _rejects(status: Status) -> tuple[str, ...] | None:
    """The reasons of a rejection; None if it is none."""
    return None if status.is_success or status.is_skip else status.reasons


@dataclass(frozen=True)
class OthersState:
    """Stands for what another plugin keeps in the cycle."""

    kept: str


_KEPT = OthersState("by another plugin")
_SKIPPED = frozenset({"AnotherPlugin"})


def nothing_is_written(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    before, args = _objects(trial), deepcopy(trial.args)
    ask_everything(trial)
    cycle = _asked_in_others_cycle(trial)
    if repr(trial.args) != repr(args):
        return RuleViolation("its arguments were written to", "", {"given": repr(args), "now": repr(trial.args)})
    if cycle.find(OthersState) is not _KEPT or cycle.skip_filter != _SKIPPED or cycle.skip_score != _SKIPPED:
        return RuleViolation("what others keep in the cycle was written to")
    after = _objects(trial)
    for name, was in before.items():
        if after[name] != was:
            return RuleViolation(f"{name} was written to", "", {"given": was.decode(), "now": after[name].decode()})
    for what, difference in recount_rows(trial.cluster):
        return RuleViolation(f"the table was written to: {what}: {difference}")
    return _writes_scores(trial) or True


def _objects(trial: PluginTrial) -> dict[str, bytes]:
    """All objects, and what is derived from pods, written out."""
    found = {"the pod": _written(trial.pod)}
    for row, node in enumerate(trial.cluster.table.nodes):
        found[f"node {node.name}"] = msgspec.json.encode(node)
        found |= {f"pod {info.key}": _written(info) for info in trial.cluster.table.pods.on(row)}
    return found


def _written(info: PodInfo) -> bytes:
    return msgspec.json.encode([info.pod, info.key, info.uid, info.pin, info.resources.requests])


def _asked_in_others_cycle(trial: PluginTrial) -> CycleState:
    cycle = CycleState()
    cycle.put(_KEPT)
    cycle.skip_filter = cycle.skip_score = _SKIPPED
    trial.answers(cycle)
    if asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes).status.is_success:
        for row in range(len(trial.nodes)):
            for info in list(trial.nodes.at(row).pods)[:1]:
                move(trial, cycle, info, row, adding=False)
                move(trial, cycle, info, row, adding=True)
    return cycle


def _writes_scores(trial: PluginTrial) -> RuleViolation | None:
    plugin, cycle = getattr(trial.plugin, "plugin", trial.plugin), CycleState()  # the checks in front give it a copy
    if not asking.normalizes(plugin):
        return None
    statuses = trial.statuses(cycle)
    accepted = [at for at, name in enumerate(trial.nodes.names) if statuses[name].is_success]
    feasible = trial.nodes.take(np.array(accepted, dtype=np.intp))
    if not accepted or not asking.pre_score(plugin, cycle, trial.pod, feasible).is_success:
        return None
    raw = asking.raw_scores(plugin, cycle, trial.pod, feasible)
    given = raw.copy()
    asking.normalized(plugin, cycle, trial.pod, feasible, given)
    if given.tolist() == raw.tolist():
        return None
    answers = {"given": str(raw.tolist()), "now": str(given.tolist())}
    return RuleViolation("normalize_score wrote to the raw scores: give a new array", "", answers)
