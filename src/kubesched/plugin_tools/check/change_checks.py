"""Rules for answers as the cluster changes: events bring pods back, and kept answers do not get out of date.

A case goes on: its changes come one after the other, and the plugin stays the same, as in a running scheduler. For
every change that turns a rejected node into one that is not, or brings one, the plugin's registered events must match
what happened, and one of the hints must not skip it. A hint that breaks counts as one that does not skip, but is
reported here.

Answers are kept for a signature, as far as their scope says. For each change of another object the answer must stay as
it was where the scope says that it does. State that follows pods (`pods_changed`) must answer as if it had been
prepared again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from kubesched.framework import OK, CycleState, PodInfo
from kubesched.framework.caching import FollowsPods, Scope, filter_scope_for, score_scope_for
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.answer_checks import shown
from kubesched.plugin_tools.check.asking import PluginTrial, TrialAnswers
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Case, DrawnChange, Manifest, Subject
from kubesched.scheduler.queue.changes import events_of
from kubesched.scheduler.queue.hints import ClusterChange, HintTable, Requeue
from kubesched.scheduler.queue.profile import QueueProfile, registered_events
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """What came of a change: the object before and after, and whether it is the pod that seeks a node."""

    change: DrawnChange
    old: KubeObject | None
    new: KubeObject | None
    is_own: bool

    @property
    def node_names(self) -> frozenset[str]:
        """Of a pod: the nodes that it was and is on."""
        pods = [item for item in (self.old, self.new) if isinstance(item, Pod)]
        return frozenset(pod.spec.node_name for pod in pods)


class CaseHistory:
    def __init__(self, subject: Subject, case: Case) -> None:
        self.trial = PluginTrial(subject, case)
        self._own = _key(case.pod)
        self._known: dict[Key, KubeObject] = {}
        for item in (case.pod, *case.objects):
            self._known[_key(item)] = _built(item)

    def apply(self, change: DrawnChange) -> AppliedChange | None:
        """None for a change of an object that is not there any more."""
        key = (change.kind, change.namespace, change.name)
        old = self._known.get(key)
        cluster = self.trial.cluster
        if change.new is None:
            if old is None:
                return None
            del self._known[key]
            cluster.remove(old)
            return AppliedChange(change, old, None, is_own=False)
        new = self._known[key] = _built(change.new)
        cluster.put(new)
        is_own = key == self._own
        if is_own and isinstance(new, Pod):
            self.trial.pod = cluster.signatures.info(new)
        return AppliedChange(change, old, new, is_own)


def _built(item: Manifest) -> KubeObject:
    (built,) = manifests.from_dicts([item]).objects
    return built


def _key(item: Manifest) -> Key:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def events_undo(subject: Subject, case: Case) -> RuleViolation | bool:
    history = CaseHistory(subject, case)
    before = history.trial.answers()
    touched = False
    for change in case.changes:
        applied = history.apply(change)
        if applied is None:
            continue
        after = history.trial.answers()
        freed = sorted(name for name in after.statuses if name not in after.rejected and _was_closed(name, before))
        if freed and before.rejected and events_of(applied.old, applied.new):
            violation = _missed(history.trial, applied, freed[0], before)
            if violation is not None:
                return violation
            touched = True
        before = after
    return touched


def _was_closed(name: str, before: TrialAnswers) -> bool:
    return name not in before.statuses or name in before.rejected


def _missed(trial: PluginTrial, applied: AppliedChange, node: str, before: TrialAnswers) -> RuleViolation | None:
    """The violation if the pod, which could go to the node now, is not brought back."""
    plugin, pod, change = trial.plugin, trial.pod, applied.change
    table = HintTable({pod.pod.spec.scheduler_name: registered_events([plugin])})
    events, queued = events_of(applied.old, applied.new), _queued(pod, plugin.name)
    verdicts = [table.judge(queued, ClusterChange(table.match(event), applied.old, applied.new)) for event in events]
    labels = ", ".join(event.label for event in events)
    rejection = before.rejection_of(node)
    answers = {"before": "no such node" if rejection is None else shown(rejection), "after": "accepted"}
    if table.failures:
        failure = table.failures[0]
        problem = f"the hint for {failure.event} raised {type(failure.error).__name__}: {failure.error}"
        return RuleViolation(problem, node, answers, change)
    if any(verdict is not Requeue.SKIP for verdict in verdicts):
        return None
    if any(table.match(event).is_of_interest for event in events):
        return RuleViolation(f"the hint for {labels} skips a change that made the pod feasible", node, answers, change)
    problem = f"{labels} made the pod feasible, and no registered event matches it"
    return RuleViolation(problem, node, answers, change)


def _queued(pod: PodInfo, plugin: str) -> QueuedPodInfo:
    profile = QueueProfile(lambda _queued: (0.0,), lambda _pod: OK, {})
    queued = QueuedPodInfo(pod, profile, 0.0)
    queued.unschedulable_plugins = frozenset({plugin})
    return queued


def scopes_hold(subject: Subject, case: Case) -> RuleViolation | bool:
    history = CaseHistory(subject, case)
    trial = history.trial
    scopes = (filter_scope_for(trial.plugin)(trial.pod), score_scope_for(trial.plugin)(trial.pod))
    follows = isinstance(trial.plugin, FollowsPods)
    if not follows and all(scope in (None, Scope.CLUSTER) for scope in scopes):
        return False
    cycle = CycleState()
    before = trial.answers(cycle)
    violation = _alike(trial, before, scopes)
    if violation is None and Scope.AMOUNTS in scopes:
        level = PluginTrial(subject, _levelled(case))
        violation = _alike(level, level.answers(), scopes)
    for change in case.changes:
        place = trial.cluster.table.journal.pods.end
        applied = None if change.is_about(case.pod) else history.apply(change)
        if applied is None:
            continue
        if follows and violation is None:
            violation, cycle = _followed(trial, cycle, applied, place)
        after = trial.answers()
        violation = violation or _outdated(before, after, applied, scopes)
        before = after
    return violation or True


Scopes = tuple[Scope | None, Scope | None]
"""Of filter, of score."""


def _outdated(
    before: TrialAnswers, after: TrialAnswers, applied: AppliedChange, scopes: Scopes
) -> RuleViolation | None:
    for node in before.statuses.keys() & after.statuses.keys():
        kept = (_outlives(scopes[0], node, applied), _outlives(scopes[1], node, applied))
        violation = _same_answers(node, applied.change, before, after, kept)
        if violation is not None:
            return violation
    return None


def _outlives(scope: Scope | None, node: str, applied: AppliedChange) -> bool:
    """Whether an answer about this node is kept over the change."""
    if scope in (None, Scope.CLUSTER):
        return False
    if applied.change.kind == "Pod":
        return scope in (Scope.NODE, Scope.NODES) or node not in applied.node_names
    return scope is not Scope.NODES and applied.change.name != node


def _same_answers(
    node: str, change: DrawnChange, before: TrialAnswers, after: TrialAnswers, kept: tuple[bool, bool]
) -> RuleViolation | None:
    one, other = before.statuses[node], after.statuses[node]
    if kept[0] and (one.code, one.reasons) != (other.code, other.reasons):
        return _too_narrow("filter", node, change, shown(one), shown(other))
    if kept[1] and node in before.raw and node in after.raw and before.raw[node] != after.raw[node]:
        return _too_narrow("score", node, change, str(before.raw[node]), str(after.raw[node]))
    return None


def _too_narrow(extension_point: str, node: str, change: DrawnChange, before: str, after: str) -> RuleViolation:
    problem = f"the {extension_point} scope is too narrow: an answer that was kept would be out of date"
    return RuleViolation(problem, node, {"before": before, "after": after}, change)


def _alike(trial: PluginTrial, before: TrialAnswers, scopes: Scopes) -> RuleViolation | None:
    """Scope `AMOUNTS`: nodes with the same amounts get the same answer."""
    for one, other in combinations(before.statuses, 2):
        if _amounts(trial, one) != _amounts(trial, other):
            continue
        for extension_point, scope, said in (("filter", scopes[0], _reasons(before)), ("score", scopes[1], before.raw)):
            if scope is Scope.AMOUNTS and one in said and other in said and said[one] != said[other]:
                problem = (
                    f"the {extension_point} scope is AMOUNTS, and a node with the same amounts is answered otherwise"
                )
                return RuleViolation(problem, one, {one: str(said[one]), other: str(said[other])})
    return None


def _levelled(case: Case) -> Case:
    """The same nodes, all of one size and empty."""
    size: Manifest = next(
        (node["status"]["allocatable"] for node in case.nodes if "allocatable" in node.get("status", {})), {}
    )
    nodes = (node | {"status": node.get("status", {}) | {"allocatable": size}} for node in case.nodes)
    return replace(case, objects=tuple(nodes))


def _reasons(answers: TrialAnswers) -> dict[str, object]:
    return {name: (status.code, status.reasons) for name, status in answers.statuses.items()}


def _amounts(trial: PluginTrial, name: str) -> tuple[object, ...]:
    row = trial.nodes.row_of(name)
    assert row is not None
    node, table = trial.nodes.at(row), trial.cluster.table
    resources = sorted({*table.allocatable, *table.requested})
    return (
        *((node.allocatable(resource), node.requested(resource)) for resource in resources),
        (node.nonzero_cpu_milli, node.nonzero_memory_bytes, node.allowed_pods, node.pod_count),
    )


def _followed(
    trial: PluginTrial, cycle: CycleState, applied: AppliedChange, place: int
) -> tuple[RuleViolation | None, CycleState]:
    """How state that was notified of the change differs from state prepared again, if so; and the state to go on
    with."""
    plugin, fresh = trial.plugin, CycleState()
    is_prepared = asking.pre_filter(plugin, fresh, trial.pod, trial.nodes).status.is_success
    changes = trial.cluster.table.journal.pods.since(place)
    if applied.change.kind != "Pod" or changes is None or not isinstance(plugin, FollowsPods):
        return None, fresh
    if not plugin.pods_changed(cycle, trial.pod, changes) or not is_prepared:
        return None, fresh
    for name, one, other in zip(trial.nodes.names, trial.filtered(cycle), trial.filtered(fresh), strict=True):
        if (one.code, one.reasons) != (other.code, other.reasons):
            problem = "pods_changed says that the state followed, and filter answers otherwise than if prepared again"
            answers = {"followed": shown(one), "prepared": shown(other)}
            return RuleViolation(problem, name, answers, applied.change), fresh
    return None, cycle
