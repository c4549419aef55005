"""NodeAffinity and TaintToleration with their scores of old: like today's, on the scale of their version."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import Scores, default_normalize_score
from kubesched.k8s.model import selectors, taints
from kubesched.k8s.model.core import Toleration
from kubesched.k8s.model.taints import PREFER_NO_SCHEDULE
from kubesched.older.plugins.node_checks import WRONG_LABELS, TaintFilter, fits_selector_and_affinity
from kubesched.older.plugins.rejection import Reason, ReasonedFilter


class OlderNodeAffinity(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        return () if fits_selector_and_affinity(pod.spec, node.node) else (WRONG_LABELS,)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
        preferred = None if affinity is None else affinity.preferred_during_scheduling_ignored_during_execution
        total = 0
        for term in preferred or ():
            if not term.weight:
                continue
            compiled = selectors.compile_node_term(term.preference)
            if compiled.error is not None:
                raise ValueError(compiled.error)
            # Fields are not looked at, and a preference without expressions matches no node.
            labels = node.node.labels
            if compiled.labels and all(r.matches(labels.get(r.key)) for r in compiled.labels):
                total += term.weight
        return total

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=False, highest=self.generation.highest_score)


class OlderTaintToleration(TaintFilter):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Taints that the pod would rather avoid."""
        tolerations = [known for known in pod.tolerations if _is_about_preference(known)]
        return sum(
            taint.effect == PREFER_NO_SCHEDULE and not taints.is_tolerated(taint, tolerations)
            for taint in node.node.spec.taints or ()
        )

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=True, highest=self.generation.highest_score)


def _is_about_preference(toleration: Toleration) -> bool:
    return toleration.effect in ("", PREFER_NO_SCHEDULE)
