"""Decides a binding of another scheduler again, in the state that it was made in, and says how the two compare.

    same         the node is the best one, and the only one that good
    tie          it is one of several that are equally good
    sampled      it is the best of a part of the nodes, as a search finds them that is cut short in a large cluster
    stale        it is so in the state a moment earlier or later: watches lag, and pods are bound out of order
    foreign      it was not for the schedulers of this configuration to decide, or not for them alone
    differs      it could take the pod, and others are better: by these scores
    infeasible   it could not take the pod: by this plugin

The first four are agreement. A pod whose volumes or devices are assigned before it is bound is judged at that moment:
later on there is only one node left. From then on it counts on that node, as it does for its scheduler.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from kubesched.framework.handle import Registry
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.k8s.model.storage import SELECTED_NODE_ANNOTATION, PersistentVolumeClaim, claims_of
from kubesched.older.config import Emulation
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster.view import NodeRow, TableView
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.filter import feasible_nodes_to_find
from kubesched.scheduler.engine.score import ByName, run_scores
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.image_locality import ImageLocality
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.simulator.recording.reader import BoundSeen, ObjectGone, ObjectSeen, Recorded
from kubesched.simulator.replay.cut_search import CutSearch
from kubesched.simulator.replay.followed_cluster import FollowedCluster, Shift, StateChange, scheduled_condition
from kubesched.simulator.replay.suspects import ChangesTried, ConfigChange
from kubesched.simulator.run import without_extenders

_MOST_MOMENTS = 400
"""How many earlier and how many later states are looked at for one binding."""
_MOST_OVERLAP = 4
"""How many other bindings may have overtaken one, or been overtaken by it: a scheduler knows its own decisions at once,
whatever its watch shows; but it binds several pods at a time."""
_NEAR_MOMENTS = 10
"""In so many of them, and where something is about the node itself, parts of the nodes are tried, too."""


_PREPARING = (VolumeBinding.name, DynamicResources.name)
"""What they do before a pod is bound, they do for its claims."""


class BindingVerdict(StrEnum):
    SAME = "same"
    TIE = "tie"
    SAMPLED = "sampled"
    STALE = "stale"
    FOREIGN = "foreign"
    DIFFERS = "differs"
    INFEASIBLE = "infeasible"


AGREEMENT = frozenset({BindingVerdict.SAME, BindingVerdict.TIE, BindingVerdict.SAMPLED, BindingVerdict.STALE})


@dataclass(frozen=True, slots=True)
class ScoreGap:
    """What one plugin, weighted, gives the node that was taken and the one that we would take."""

    plugin: str
    theirs: int
    ours: int


@dataclass(frozen=True, slots=True)
class Judgement:
    at_s: float
    pod: str
    node: str
    """That it was bound to."""
    verdict: BindingVerdict
    why: str = ""
    plugin: str = ""
    """Whose answer makes the difference."""
    ours: str = ""
    """The node that we would take; empty if none."""
    scores: tuple[ScoreGap, ...] = ()
    explained_by: tuple[ConfigChange, ...] = ()
    """Changes of the configuration with which it would agree."""

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"at": self.at_s, "pod": self.pod, "node": self.node, "verdict": self.verdict.value}
        record |= {name: value for name in ("why", "plugin", "ours") if (value := getattr(self, name))}
        if self.scores:
            record["scores"] = [dataclasses.asdict(one) for one in self.scores]
        return record


class BindingJudge:
    """Takes what is recorded, in order, and gives a judgement for each binding, a little later."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        *,
        registry: Registry | None = None,
        emulation: Emulation | None = None,
    ) -> None:
        self.followed = FollowedCluster()
        self._cluster = self.followed.cluster
        self._has_extenders = bool(config.extenders)
        self._parallelism = config.parallelism
        self._schedulers = build_schedulers(
            self._cluster,
            without_extenders(config),
            ByName(),
            registry=registry,
            keeps_classes=True,
            variant=variant_of(emulation),
        )
        for scheduler in self._schedulers.values():
            # Whom to evict is another question.
            scheduler.take_profile(dataclasses.replace(scheduler.profile, post_filter=[]))
        self._changes = None if emulation else ChangesTried(self._cluster, config.parallelism, registry)
        self._users: dict[str, set[PodKey]] = {}
        """By claim, the pending pods that use it."""
        self._early: dict[str, Judgement] = {}
        """By uid, pods that were judged when their claims were assigned."""

    def feed(self, event: Recorded) -> Iterator[Judgement]:
        for due in self.followed.feed(event):
            yield from self._happened(due)

    def pass_time(self, now_s: float) -> Iterator[Judgement]:
        """Nothing else has happened until now."""
        for due in self.followed.due(now_s):
            yield from self._happened(due)

    def finish(self) -> Iterator[Judgement]:
        """Nothing more will come."""
        for due in self.followed.rest():
            yield from self._happened(due)

    def _happened(self, event: Recorded) -> Iterator[Judgement]:
        if isinstance(event, BoundSeen):
            yield self._bound(event)
            return
        decided: list[tuple[PodKey, str]] = []
        if isinstance(event, ObjectSeen) and not event.is_initial:
            decided = self._decided_before_binding(event.item)
            for key, node in decided:
                info = self._cluster.pending[key]
                self._early[info.uid] = self._judged(event.at_s, info, node)
        self.followed.apply(event)
        for key, node in decided:
            self.followed.assume(key, node, event.at_s)

    # -- decisions that are seen before the binding --------------------------------------------------------------------

    def _decided_before_binding(self, item: KubeObject) -> list[tuple[PodKey, str]]:
        """The pods that have just been decided, with their nodes, as this object says; it is not applied yet."""
        if isinstance(item, Pod):
            if item.spec.node_name:
                return []
            for claim in _claim_keys(item):
                self._users.setdefault(claim, set()).add(item.pod_key)
            users, node = {item.pod_key}, self._expected_node(item)
        elif isinstance(item, PersistentVolumeClaim | ResourceClaim) and item.key in self._users:
            before = self._cluster.objects.find(item)
            node = _assigned_node(item)
            if not node or (before is not None and _assigned_node(before) == node):
                return []
            users = self._assigned_for(item)
        else:
            return []
        if node not in self._cluster.table.rows:
            return []
        waiting = [key for key in sorted(users) if key in self._cluster.pending and not self._cluster.is_assumed(key)]
        return [(key, node) for key in waiting]

    def _assigned_for(self, claim: PersistentVolumeClaim | ResourceClaim) -> set[PodKey]:
        """For which pods: a claim may have many users, and devices say for whom they are reserved."""
        users = self._users.pop(claim.key)
        if isinstance(claim, ResourceClaim):
            uids = {consumer.uid for consumer in claim.status.reserved_for or ()}
            return {key for key in users if (info := self._cluster.pending.get(key)) is not None and info.uid in uids}
        return users if len(users) == 1 else set()

    def _expected_node(self, pod: Pod) -> str:
        """The node that a scheduler nominates a pod to before it writes to claims. Not the one that preemption makes
        room on: that comes with the pod being unschedulable, and cannot take it yet."""
        known = self._cluster.pending.get(pod.pod_key)
        node = pod.status.nominated_node_name
        if known is None or not node or node == known.pod.status.nominated_node_name:
            return ""
        if scheduled_condition(pod) != scheduled_condition(known.pod):
            return ""
        scheduler, row = self._schedulers.get(known.spec.scheduler_name), self._cluster.table.rows.get(node)
        if scheduler is None or row is None or not _may_wait(scheduler, pod):
            return ""
        filtered = self._complete(scheduler, known).filtered
        if filtered is None:
            return ""
        fits = filtered.fits[filtered.nodes.rows == row]
        return node if bool(fits.any()) else ""

    # -- one binding ---------------------------------------------------------------------------------------------------

    def _bound(self, event: BoundSeen) -> Judgement:
        key, node = PodKey(event.pod), event.seen.node
        info = self._cluster.pending.get(key)
        if info is None:
            return Judgement(event.at_s, key, node, BindingVerdict.FOREIGN, "it had its node when it was first seen")
        early = self._early.pop(info.uid, None)
        if early is not None and early.node == node:
            return dataclasses.replace(early, at_s=event.at_s)
        self.followed.forget(key, event.at_s)
        return self._judged(event.at_s, info, node)

    def _judged(self, at_s: float, info: PodInfo, node: str) -> Judgement:
        scheduler = self._schedulers.get(info.spec.scheduler_name)
        if scheduler is None:
            why = f"it is for {info.spec.scheduler_name}, which this configuration does not have"
            return Judgement(at_s, info.key, node, BindingVerdict.FOREIGN, why)
        found = self._agrees(scheduler, info, node)
        if found is not None:
            return Judgement(at_s, info.key, node, found)
        self.followed.let_go(at_s)
        complete = self._complete(scheduler, info)
        if self._is_best_of_a_part(scheduler, info, node, complete):
            return Judgement(at_s, info.key, node, BindingVerdict.SAMPLED, "the best of a part of the nodes")
        why = self._another_moment(scheduler, info, node)
        if why:
            return Judgement(at_s, info.key, node, BindingVerdict.STALE, why)
        images = self._images_scored_before(scheduler, complete)
        if self._agrees_with_images_counted_before(node, complete, images):
            why = "with the nodes that have its images counted when each of them last changed"
            return Judgement(at_s, info.key, node, BindingVerdict.STALE, why)
        enough = feasible_nodes_to_find(scheduler.percentage, self._cluster.table.n)
        told = _difference(at_s, info, node, complete, enough)
        if self._changes is not None:
            told = dataclasses.replace(told, explained_by=self._changes.explaining(scheduler, complete, node, images))
        if self._has_extenders:
            return dataclasses.replace(told, verdict=BindingVerdict.FOREIGN, why=f"extenders are not asked; {told.why}")
        return told

    def _agrees(self, scheduler: ProfileScheduler, info: PodInfo, node: str) -> BindingVerdict | None:
        """Whether the node is the best, or one of the best, in the state as it is now."""
        row, start = self._cluster.table.rows.get(node), scheduler.next_start
        decision = scheduler.decide(info)
        best = decision.best_rows
        if row is not None and best is not None and row in best:
            return BindingVerdict.SAME if len(best) == 1 else BindingVerdict.TIE
        scheduler.next_start = start
        return None

    def _complete(self, scheduler: ProfileScheduler, info: PodInfo) -> Decision:
        start = scheduler.next_start
        decision = scheduler.decide(info, complete=True)
        scheduler.next_start = start
        return decision

    # -- a part of the nodes -------------------------------------------------------------------------------------------

    def _is_best_of_a_part(
        self, scheduler: ProfileScheduler, info: PodInfo, node: str, complete: Decision | None = None
    ) -> bool:
        """Whether a search that is cut short may choose it: one that begins elsewhere, or whose threads did not all
        come equally far."""
        n = self._cluster.table.n
        enough = feasible_nodes_to_find(scheduler.percentage, n)
        row = self._cluster.table.rows.get(node)
        if enough >= n or row is None:
            return False
        decision = self._complete(scheduler, info) if complete is None else complete
        if decision.scored is None or decision.filtered is None:
            return False
        known = scheduler.next_start
        scored, order = decision.scored, self._cluster.rows_in_order
        search = CutSearch.of(scored.nodes.rows, scored.total, order, enough, self._parallelism)
        for start in search.starts(row):
            scheduler.next_start = start
            if self._agrees(scheduler, info, node) is not None:
                return True
        scheduler.next_start = known
        return any(self._is_best_among(scheduler, decision, rows, row) for rows in search.parts(row, known))

    def _is_best_among(self, scheduler: ProfileScheduler, decision: Decision, rows: RowArray, row: int) -> bool:
        """Scores depend on the nodes compared: they are computed again."""
        nodes = TableView(self._cluster.table, rows)
        total = run_scores(scheduler.profile, decision.cycle, decision.pod, nodes).total
        return bool(total[rows == row].max() == total.max())

    # -- images --------------------------------------------------------------------------------------------------------

    def _images_scored_before(self, scheduler: ProfileScheduler, complete: Decision) -> IntArray | None:
        """What ImageLocality gives the nodes by counts from when each of them last changed; None without it."""
        step = next((one for one in scheduler.profile.score if one.name == ImageLocality.name), None)
        plugin = None if step is None else getattr(step.score, "__self__", None)
        if complete.scored is None or not isinstance(plugin, ImageLocality):
            return None
        nodes = [NodeRow(self._cluster.table, row) for row in complete.scored.nodes.rows.tolist()]
        counted = self.followed.images_counted
        given = [plugin.score_by_counts(complete.pod, then, counted.get(then.name, {})) for then in nodes]
        return np.array(given, dtype=np.int64)

    def _agrees_with_images_counted_before(self, node: str, complete: Decision, images: IntArray | None) -> bool:
        scored, row = complete.scored, self._cluster.table.rows.get(node)
        if scored is None or images is None or row is None or row not in scored.nodes.rows:
            return False
        given = next((one for one in scored.by_plugin if one.plugin == ImageLocality.name), None)
        if given is None:
            return False
        total = scored.total - given.weighted + given.weight * images
        return bool(total[scored.nodes.rows == row].max() == total.max())

    # -- another moment ------------------------------------------------------------------------------------------------

    def _another_moment(self, scheduler: ProfileScheduler, info: PodInfo, node: str) -> str:
        """What was different when it agreed; empty if it never did. A scheduler knows its own decisions at once, so
        that they may only have been made in another order; of everything else, it knows what its watch has shown."""
        if self._agrees_before(scheduler, info, node):
            return "as the cluster was a moment before"
        if self._agrees_after(scheduler, info, node):
            return "as the cluster was a moment later"
        for overtakes in (False, True):
            if self._agrees_in_queue_order(scheduler, info, node, overtakes=overtakes):
                return "with the pods around it decided in the order in which they came"
        if self._agrees_before(scheduler, info, node, with_bindings=True):
            return "as the cluster was a moment before"
        if self._agrees_after(scheduler, info, node, with_bindings=True):
            return "as the cluster was a moment later"
        if self._agrees_out_of_order(scheduler, info, node):
            return "with the pods around it bound in another order"
        return ""

    def _agrees_before(
        self, scheduler: ProfileScheduler, info: PodInfo, node: str, *, with_bindings: bool = False
    ) -> bool:
        with self.followed.shifted() as shift:
            return self._goes_back(scheduler, info, node, shift, with_bindings=with_bindings)

    def _agrees_in_queue_order(self, scheduler: ProfileScheduler, info: PodInfo, node: str, *, overtakes: bool) -> bool:
        with self.followed.shifted() as shift:
            if not shift.to_queue_order(info, overtakes=overtakes):
                return False
            return self._agrees_now(scheduler, info, node, _Moments()) or self._goes_back(scheduler, info, node, shift)

    def _goes_back(
        self, scheduler: ProfileScheduler, info: PodInfo, node: str, shift: Shift, *, with_bindings: bool = False
    ) -> bool:
        """Step by step, until it agrees."""
        moments, has_come = _Moments(), True
        for change in reversed(self.followed.past):
            is_binding = self._is_ours(change)
            if change.key == info.key:
                # Before it came, it was not decided; its own changes may not have been known.
                has_come = isinstance(change.before, PodInfo)
                info = change.before if isinstance(change.before, PodInfo) else info
            elif (
                (is_binding and not with_bindings)
                or (change.pod is not None and not has_come)
                # A pod that had not come was not decided, whenever it was bound.
                or not (change.matters or (change.is_arrival and shift.is_placed(change.key)))
                or not shift.take_back(change)
            ):
                continue
            if not moments.next(is_binding=is_binding):
                return False
            if self._agrees_now(scheduler, info, node, moments, is_near=change.is_about(node)):
                return True
        return False

    def _agrees_after(
        self, scheduler: ProfileScheduler, info: PodInfo, node: str, *, with_bindings: bool = False
    ) -> bool:
        moments = _Moments()
        with self.followed.shifted() as shift:
            for event in self.followed.future:
                is_binding = isinstance(event, BoundSeen)
                if _key_of(event) == info.key or (is_binding and not with_bindings) or not shift.bring_forward(event):
                    continue
                if not moments.next(is_binding=is_binding):
                    return False
                if self._agrees_now(scheduler, info, node, moments, is_near=_is_about(event, node)):
                    return True
        return False

    def _agrees_now(
        self, scheduler: ProfileScheduler, info: PodInfo, node: str, moments: _Moments, *, is_near: bool = False
    ) -> bool:
        if self._agrees(scheduler, info, node) is not None:
            return True
        return (is_near or moments.n <= _NEAR_MOMENTS) and self._is_best_of_a_part(scheduler, info, node)

    def _is_ours(self, change: StateChange) -> bool:
        """A decision of these schedulers, which they know at once."""
        pod = change.pod
        return change.is_decision and pod is not None and pod.spec.scheduler_name in self._schedulers

    def _agrees_out_of_order(self, scheduler: ProfileScheduler, info: PodInfo, node: str) -> bool:
        """Pods that were bound to this node just before it may have been decided after it; those that are bound to
        better nodes just after it, before."""
        n_taken = 0
        with self.followed.shifted() as shift:
            for change in reversed(self.followed.past):
                pod = change.pod
                if change.key == info.key and change.is_arrival:
                    break  # who had a node then was decided before
                if pod is None or pod.key == info.key or pod.spec.node_name != node:
                    continue
                n_taken += self._is_ours(change)
                if n_taken > _MOST_OVERLAP:
                    break
                if shift.take_back(change) and self._fills(scheduler, info, node, shift, _MOST_OVERLAP - n_taken):
                    return True
            if self._fills(scheduler, info, node, shift, _MOST_OVERLAP):
                return True
            return self._is_best_of_a_part(scheduler, info, node)

    def _fills(self, scheduler: ProfileScheduler, info: PodInfo, node: str, shift: Shift, most: int) -> bool:
        """Fills better nodes with the pods that are bound to them next."""
        waiting = [event for event in self.followed.future if isinstance(event, BoundSeen) and event.pod != info.key]
        for _ in range(most + 1):
            if self._agrees(scheduler, info, node) is not None:
                return True
            better = set(scheduler.decide(info).best)
            index = next((i for i, event in enumerate(waiting) if event.seen.node in better), None)
            if index is None or not shift.bring_forward(waiting.pop(index)):
                return False
        return False


class _Moments:
    """Counts the states that were looked at, and the bindings that were moved for that."""

    def __init__(self) -> None:
        self.n = 0
        self._n_bindings = 0

    def next(self, *, is_binding: bool) -> bool:
        """Whether one more is to be looked at."""
        self.n += 1
        self._n_bindings += is_binding
        return self.n <= _MOST_MOMENTS and self._n_bindings <= _MOST_OVERLAP


def _may_wait(scheduler: ProfileScheduler, pod: Pod) -> bool:
    """Whether something may come between the decision about this pod and its binding. Nobody else is nominated to where
    it is decided to go."""
    profile = scheduler.profile
    others = [plugin for plugin in profile.pre_bind if plugin.name not in _PREPARING]
    return bool(profile.permit or others) or any(_claim_keys(pod))


def _is_about(event: Recorded, node: str) -> bool:
    match event:
        case BoundSeen(seen=seen):
            return seen.node == node
        case ObjectSeen(item=Pod() as pod) | ObjectGone(item=Pod() as pod):
            return pod.spec.node_name == node
        case ObjectSeen(item=item) | ObjectGone(item=item):
            return item.key == node
        case _:
            return False


def _key_of(event: Recorded) -> str:
    if isinstance(event, BoundSeen):
        return event.pod
    return event.item.key if isinstance(event, ObjectSeen) and isinstance(event.item, Pod) else ""


def _claim_keys(pod: Pod) -> Iterator[str]:
    for use in claims_of(pod):
        yield use.key
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    for entry in pod.spec.resource_claims or ():
        name = entry.resource_claim_name or made.get(entry.name)
        if name:
            yield f"{pod.namespace}/{name}"


def _assigned_node(claim: KubeObject) -> str:
    """The node for which a claim's volume is made or its devices are taken, as far as the claim says."""
    if isinstance(claim, PersistentVolumeClaim):
        return (claim.metadata.annotations or {}).get(SELECTED_NODE_ANNOTATION, "")
    if isinstance(claim, ResourceClaim) and claim.status.allocation is not None:
        selector = claim.status.allocation.node_selector
        for term in () if selector is None else selector.node_selector_terms:
            for wanted in term.match_fields or ():
                if wanted.key == "metadata.name" and wanted.values and len(wanted.values) == 1:
                    return wanted.values[0]
    return ""


def _difference(at_s: float, info: PodInfo, node: str, complete: Decision, enough: int) -> Judgement:
    """Why it is not the best, or not possible, in the state as it was seen. A search stops at `enough` nodes; which
    ones these were depends on how far each of the threads had come, which is not recorded."""
    ours = complete.node_name
    names = complete.node_names
    if complete.filtered is None:
        message = complete.message.removesuffix(".")
        plugin = "" if complete.prefilter is None else complete.prefilter.status.plugin
        return Judgement(at_s, info.key, node, BindingVerdict.INFEASIBLE, message, plugin, ours)
    rows = complete.filtered.nodes.rows
    position = next((i for i, row in enumerate(rows.tolist()) if names[row] == node), None)
    if position is None:
        return Judgement(at_s, info.key, node, BindingVerdict.INFEASIBLE, "the node is not known", "", ours)
    if not complete.filtered.fits[position]:
        status = complete.filtered.status(position)
        why = "; ".join(status.reasons) or status.message
        return Judgement(at_s, info.key, node, BindingVerdict.INFEASIBLE, why, status.plugin, ours)
    gaps = _score_gaps(complete, node, ours)
    telling = max(gaps, key=lambda gap: gap.ours - gap.theirs, default=None)
    total = sum(gap.ours for gap in gaps), sum(gap.theirs for gap in gaps)
    why = f"{ours} scores {total[0]}, {node} {total[1]}"
    if complete.scored is not None and enough < len(complete.scored.total):
        n_no_better = int(np.count_nonzero(complete.scored.total <= total[1]))
        why += f" (no lower than {n_no_better} of {len(complete.scored.total)} nodes, of which {enough} are compared)"
    return Judgement(
        at_s, info.key, node, BindingVerdict.DIFFERS, why, "" if telling is None else telling.plugin, ours, tuple(gaps)
    )


def _score_gaps(complete: Decision, node: str, ours: str) -> list[ScoreGap]:
    scored = complete.scored
    if scored is None:
        return []
    places = {complete.node_names[row]: place for place, row in enumerate(scored.nodes.rows.tolist())}
    if node not in places or ours not in places:
        return []
    return [
        ScoreGap(scores.plugin, int(scores.weighted[places[node]]), int(scores.weighted[places[ours]]))
        for scores in scored.by_plugin
    ]
