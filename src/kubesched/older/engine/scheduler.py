"""One pod's cycle in an older scheduler: look at its claims, filter, score, or preempt.

Answers in today's `Decision`, so that loop, simulation and explanation need not know.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code
from kubesched.k8s.model.volume_claims import claim_not_found
from kubesched.older.config import EmulatedProfile, Generation
from kubesched.older.engine.diagnosis import OlderDiagnosis
from kubesched.older.engine.filtering import NodeByNode
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.filter import FilterOutcome
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.plugin_call import PluginError, SearchError
from kubesched.scheduler.engine.postfilter import run_post_filter
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.score import TieBreak, run_scores


class OlderScheduler(ProfileScheduler):
    """Decides as the scheduler of a version did. Keeps no classes."""

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        tie_break: TieBreak,
        percentage: int,
        handle: EngineHandle,
        *,
        generation: Generation,
        emulated: EmulatedProfile,
    ) -> None:
        super().__init__(cluster, profile, tie_break, percentage, handle)
        self.generation = generation
        self._emulated = emulated

    def decide(self, pod: PodInfo, *, complete: bool = False) -> Decision:
        decision = Decision(pod, CycleState(), self.cluster.table.names)
        try:
            self._decide_node_by_node(decision, complete)
        except PluginError as bug:
            decision.error = bug.message
            if self.profile.observers.trouble is not None:
                self.profile.observers.trouble(PluginBroke(bug, pod))
        return decision

    def _decide_node_by_node(self, decision: Decision, complete: bool) -> None:
        nodes = self.cluster.nodes
        decision.error = self._broken_claim(decision.pod)
        if decision.error or len(nodes) == 0:
            return
        decision.prefilter = run_pre_filter(self.profile, decision.cycle, decision.pod, nodes)
        if not decision.prefilter.status.is_success:
            self._preempt(decision, OlderDiagnosis(nodes, decision.prefilter))
            return
        filtered = decision.filtered = self._ask(decision.cycle, decision.pod, nodes)
        decision.error = self._errors(filtered)
        if decision.error:
            return
        feasible, decision.n_evaluated = self.feasible_rows(filtered, whole_search=True, complete=complete)
        decision.n_feasible = len(feasible)
        if len(feasible) == 0:
            self._preempt(decision, OlderDiagnosis(nodes, decision.prefilter, filtered))
        elif len(feasible) == 1 and not complete:
            self.choose_among(decision, feasible)
        else:
            view = TableView(self.cluster.table, feasible)
            scored = decision.scored = run_scores(self.profile, decision.cycle, decision.pod, view)
            self.choose_among(decision, feasible[scored.total == scored.total.max()])

    def filter_nodes(self, cycle: CycleState, pod: PodInfo, nodes: TableView) -> FilterOutcome:
        """For a cycle in which extenders take part: what would end any other search ends this one."""
        error = self._broken_claim(pod)
        if not error:
            filtered = self._ask(cycle, pod, nodes)
            error = self._errors(filtered)
        if error:
            raise SearchError(error)
        return filtered

    def _ask(self, cycle: CycleState, pod: PodInfo, nodes: TableView) -> FilterOutcome:
        return NodeByNode(self.cluster, self.profile, self.generation, self._emulated.checks_all).run(cycle, pod, nodes)

    def _broken_claim(self, pod: PodInfo) -> str:
        """A claim that is missing, or on its way out, ends the cycle before any node is looked at."""
        claims = self.cluster.objects.persistent_volume_claims
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                return claim_not_found(name)
            if claim.metadata.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
        return ""

    def _errors(self, filtered: FilterOutcome) -> str:
        """Empty if no filter broke."""
        broken = Counter(
            status.message
            for position in np.flatnonzero(~filtered.fits).tolist()
            if (status := filtered.status(position)).code is Code.ERROR
        )
        if not broken:
            return ""
        if not self.generation.repeats_errors:
            return next(iter(broken))
        texts = [text if n == 1 else f"{text} (repeated {n} times)" for text, n in sorted(broken.items())]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"

    def _preempt(self, decision: Decision, diagnosis: OlderDiagnosis) -> None:
        """Unlike today, the message says nothing about it."""
        decision.diagnosis = diagnosis
        if self.profile.post_filter:
            decision.post_filter = run_post_filter(self.profile, decision.cycle, decision.pod, diagnosis)
