"""The trial of a pod group: its pods are placed one after another on the table itself, then all is taken back.

Each pod is decided for as any other, and then counts where it would go, so that the next one sees it; plugins reserve
for it, and Permit says whether the group is complete. A pod for which others would have to be evicted counts on the
node where that would be. Whatever comes of it, the table is afterwards as it was; `group_cycle` acts on the outcome.

All of that happens between two facts: nothing else sees the table in between.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from kubesched.framework.groups import GroupCycle
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NominatingMode
from kubesched.framework.status import OK, Code, Status
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.storage import READ_WRITE_ONCE_POD
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import Decision, MemberTrial, ProfileScheduler
from kubesched.scheduler.engine.permit import WaitingPod, run_permit
from kubesched.scheduler.engine.plugin_call import PluginError, broken_turn
from kubesched.scheduler.engine.reserve import run_reserve, run_unreserve

GROUP_UNSCHEDULABLE = "pod group is unschedulable"
WAITING_FOR_PREEMPTION = "pod group is waiting for preemption to complete"
_ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


@dataclass(slots=True)
class MemberOutcome:
    """What became of one pod of the group."""

    decision: Decision
    status: Status = OK
    """OK: it found a node. If it `requires_preemption`, the status of the search that found none."""
    node_name: str = ""
    permit: Status = OK
    """What Permit said, if the pod has a node."""
    requires_preemption: bool = False
    is_rejected_late: bool = False
    """An extension point after the search rejected it, or broke."""

    @property
    def has_failed(self) -> bool:
        return not self.status.is_success and not self.requires_preemption


@dataclass(slots=True)
class GroupOutcome:
    """What became of the group. An error, or a group without a placement, has fewer members."""

    status: Status
    members: list[MemberOutcome] = field(default_factory=list)
    waits_for_preemption: bool = False
    nominations: dict[PodKey, str] = field(default_factory=dict)
    """Where its pods go once the victims have left, if whole groups were evicted for it."""
    before_preemption: Status | None = None
    """What it came to before others were looked for who could leave."""
    n_placements: int = 0
    """How many were tried, where there was a choice."""
    placement: str = ""
    """The one that was taken."""

    @property
    def is_feasible(self) -> bool:
        return self.status.is_success or self.waits_for_preemption


@dataclass(slots=True)
class PlacedMember:
    """A pod that counts where it would go."""

    decision: Decision
    assumed: PodInfo
    node_name: str
    nominated: str
    """Where it was nominated to before."""


class GroupTrial:
    """Of one profile's scheduler, on its cluster."""

    def __init__(
        self,
        cluster: Cluster,
        scheduler: ProfileScheduler,
        now_s: float,
        *,
        hides_demands: bool = False,
        decide: Callable[[PodInfo, MemberTrial], Decision] | None = None,
    ) -> None:
        """`decide` decides in the place of the scheduler, where extenders have a say."""
        self._cluster = cluster
        self._scheduler = scheduler
        self._now_s = now_s
        self.hides_demands = hides_demands
        """Whether pods do not see what those before them in the group demand of others (v1.36)."""
        self._decide = decide or scheduler.decide_in_trial
        self.can_count = decide is None
        """Whether how many pods fit follows from what plugins say."""
        self._placed: list[PlacedMember] = []
        self._waits = Status(Code.WAIT, (_ASKED_TO_WAIT,))
        """What Permit said last when it asked to wait."""

    def run(
        self,
        group: GroupCycle,
        pods: Sequence[PodInfo],
        *,
        within: RowArray | None = None,
        post_filter: bool = True,
        reasons: bool = True,
        keeps: bool = False,
        stops_early: bool = False,
    ) -> GroupOutcome:
        """All pods in turn. With `keeps` they stay where they are if the group fits, until `take_kept` or
        `take_back`. With `stops_early` no more pods are tried once too few of them are left."""
        trial, start = MemberTrial(group, within, post_filter, reasons), self.n_placed
        outcome = GroupOutcome(Status.unschedulable(GROUP_UNSCHEDULABLE))
        requires_preemption = has_room = False
        is_counted = self._is_counted(group)
        try:
            for place, pod in enumerate(pods, 1):
                member = self._try(pod, trial, asks_permit=not is_counted)
                outcome.members.append(member)
                if member.has_failed:
                    if member.status.is_rejected:
                        if stops_early and is_counted and not self._may_complete(group, len(pods) - place):
                            break
                        continue
                    text = f"failed to schedule other pod from a pod group: {member.status.message}"
                    outcome.status, outcome.waits_for_preemption = Status.error(text), False
                    break
                requires_preemption |= member.requires_preemption
                has_room = True
                if not is_counted and member.permit.is_success:
                    _complete(outcome, requires_preemption)
            else:
                if is_counted and has_room:
                    if self._is_complete(group.key, self._n_scheduled(group)):
                        _complete(outcome, requires_preemption)
                    elif reasons:
                        self._ask_permit_late(outcome.members, start)
        finally:
            if not (keeps and outcome.status.is_success):
                self.take_back(start)
        return outcome

    @property
    def n_placed(self) -> int:
        return len(self._placed)

    def would_fit(self, group: GroupCycle, n_pods: int) -> bool | None:
        """Whether the group fits where so many of its pods find a node; None if only a trial can tell."""
        plugins, n_scheduled = self._scheduler.profile.completes_groups, self._n_scheduled(group) + n_pods
        if plugins is None:
            return None
        return n_pods > 0 and self._is_complete(group.key, n_scheduled)

    def _is_counted(self, group: GroupCycle) -> bool:
        """Whether it is the number of its pods that decides about the group, and nobody follows how Permit is asked:
        then it need not be asked about each. In v1.36 asking has consequences, and a group that is gone is an error."""
        profile = self._scheduler.profile
        if self.hides_demands or profile.completes_groups is None or profile.observers.steps is not None:
            return False
        return self._is_complete(group.key, sys.maxsize)

    def _may_complete(self, group: GroupCycle, n_left: int) -> bool:
        return self._is_complete(group.key, self._n_scheduled(group) + n_left)

    def _is_complete(self, key: str, n_scheduled: int) -> bool:
        return all(plugin.is_complete(key, n_scheduled) for plugin in self._scheduler.profile.completes_groups or ())

    def _n_scheduled(self, group: GroupCycle) -> int:
        state = None if self._cluster.groups is None else self._cluster.groups.get(group.key)
        return 0 if state is None else state.n_scheduled

    def place_again(self, outcome: GroupOutcome) -> None:
        """The pods of an outcome that was taken back are where they were in it: nothing has changed since."""
        start = self.n_placed
        for member in outcome.members:
            if member.node_name and not self._place(member.decision, member.node_name).is_success:
                self.take_back(start)
                return

    def take_kept(self) -> dict[PodKey, PlacedMember]:
        """Those that stay: from here on they are the caller's."""
        kept, self._placed = {placed.assumed.key: placed for placed in self._placed}, []
        return kept

    def _try(self, pod: PodInfo, trial: MemberTrial, *, asks_permit: bool = True) -> MemberOutcome:
        decision = self._decide(pod, trial)
        member = MemberOutcome(decision, node_name=decision.node_name)
        if not decision.node_name:
            if decision.diagnosis is not None and trial.reasons:
                decision.diagnosis.remember()
            member.status = _status_of(decision)
            nominated = decision.post_filter
            if nominated is None or nominated.mode is not NominatingMode.OVERRIDE or not nominated.node_name:
                return member
            member.requires_preemption, member.node_name = True, nominated.node_name
        status = self._place(decision, member.node_name)
        if status is OK or status.is_success:
            status = self._permit(self._placed[-1], member) if asks_permit else OK
            if status is OK or status.is_success:
                return member
            self._take_back_last()
        return MemberOutcome(decision, status, is_rejected_late=True)

    def _place(self, decision: Decision, node_name: str) -> Status:
        """Counts the pod on the node, and has plugins reserve for it."""
        cluster, pod = self._cluster, decision.pod
        nominated = cluster.nominations.node_of(pod)
        assumed = cluster.assume(_without_demands(cluster, pod, node_name) if self.hides_demands else pod, node_name)
        self._placed.append(PlacedMember(decision, assumed, node_name, nominated))
        if not decision.needs_reserve:
            return OK
        profile = self._scheduler.profile
        try:
            status = run_reserve(profile, decision.cycle, assumed, node_name)
        except PluginError as bug:
            status = broken_turn(profile, bug, assumed)
        if not status.is_success:
            self._take_back_last()
        return status

    def _ask_permit_late(self, members: Sequence[MemberOutcome], start: int) -> None:
        """Too few were placed: what Permit says to each of them is what the pod will be told."""
        placed = [member for member in members if not member.has_failed]
        for there, member in zip(self._placed[start:], placed, strict=True):
            self._permit(there, member)

    def _permit(self, placed: PlacedMember, member: MemberOutcome) -> Status:
        """What Permit says goes into `member`, unless it is a rejection or an error, which is given."""
        profile = self._scheduler.profile
        if not profile.permit:
            return OK
        try:
            permit = run_permit(profile, placed.decision.cycle, placed.assumed, placed.node_name, self._now_s)
        except PluginError as bug:
            return broken_turn(profile, bug, placed.decision.pod)
        if not isinstance(permit, WaitingPod):
            return permit
        if permit.reasons != self._waits.reasons[:-1]:
            self._waits = Status(Code.WAIT, (*permit.reasons, _ASKED_TO_WAIT))
        member.permit = self._waits
        return OK

    def _take_back_last(self) -> None:
        placed = self._placed.pop()
        cluster = self._cluster
        if placed.decision.needs_reserve:
            run_unreserve(self._scheduler.profile, placed.decision.cycle, placed.assumed, placed.node_name)
        cluster.forget(placed.assumed)
        if placed.nominated:
            cluster.nominations.add(cluster.pending[placed.assumed.key], placed.nominated)

    def take_back(self, to: int = 0) -> None:
        """The last ones that were placed, until there are so many."""
        while len(self._placed) > to:
            self._take_back_last()


def _complete(outcome: GroupOutcome, requires_preemption: bool) -> None:
    """Enough pods are placed: the group fits, or will once others have left."""
    if requires_preemption:
        outcome.status = Status.unschedulable(GROUP_UNSCHEDULABLE, WAITING_FOR_PREEMPTION)
        outcome.waits_for_preemption = True
    else:
        outcome.status = OK


def _without_demands(cluster: Cluster, pod: PodInfo, node_name: str) -> PodInfo:
    """The pod as later ones of its group see it in v1.36: where no pod on the node had such demands before, its own
    anti-affinity and affinity are overlooked; and so is that it uses claims that are for one pod alone."""
    affinity, spec = pod.spec.affinity, pod.spec
    there = cluster.table.pods.on(cluster.table.rows[node_name])
    if affinity is not None and pod.affinity and not any(other.affinity for other in there):
        spec = replace(spec, affinity=replace(affinity, pod_affinity=None, pod_anti_affinity=None))
    elif affinity is not None and pod.affinity.required_anti and not any(o.affinity.required_anti for o in there):
        assert affinity.pod_anti_affinity is not None
        preferred = replace(affinity.pod_anti_affinity, required_during_scheduling_ignored_during_execution=None)
        spec = replace(spec, affinity=replace(affinity, pod_anti_affinity=preferred))
    claims = cluster.objects.persistent_volume_claims
    volumes = tuple(
        volume
        for volume in spec.volumes or ()
        if volume.persistent_volume_claim is None
        or (claim := claims.get(f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}")) is None
        or READ_WRITE_ONCE_POD not in (claim.spec.access_modes or ())
    )
    if len(volumes) != len(spec.volumes or ()):
        spec = replace(spec, volumes=volumes)
    return pod if spec is pod.spec else cluster.signatures.info(replace(pod.pod, spec=spec), pod.key)


def _status_of(decision: Decision) -> Status:
    """Of a search that found no node; the words are the decision's."""
    return Status.error(decision.error) if decision.error else Status.unschedulable()
