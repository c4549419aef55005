"""An explanation: the decision, and all that can be worked out about it when it is asked for.

Cause, groups, evidence, changes and the text are made on first use. Next: `explain`, the way in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kubesched.explanation.cause import Cause
from kubesched.explanation.changes import Change, smallest_change_on, smallest_changes
from kubesched.explanation.evidence import Evidence, Failures, find_failures, hard_constraints
from kubesched.explanation.findings.finding import CauseKind
from kubesched.explanation.groups import RejectedNodes, group_nodes
from kubesched.explanation.headline import WaitingGroup, cause_and_groups, headline_of
from kubesched.explanation.html import explanation_html
from kubesched.explanation.record import decision_record, full_report, gated_record
from kubesched.explanation.text import render
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import MAX_NODE_SCORE
from kubesched.framework.status import Status
from kubesched.k8s.model.manifests import collector_paused
from kubesched.scheduler import config as configuration
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint

COMPLETE_SEARCH = 100
"""Percent of nodes looked at: an explanation is about all of them."""


@dataclass(repr=False)
class Explanation:
    """Why a pod goes where it goes. `to_dict()` and `report()` are for machines, `str()` for people."""

    cluster: Cluster
    scheduler: ProfileScheduler
    pod: PodInfo
    gate: Status | None = None
    decision: Decision | None = None
    config: configuration.KubeSchedulerConfiguration | None = None
    placed_on: str = ""
    """The node that the pod is on. It is then explained as if it were to be scheduled again now."""
    recorded: Mapping[str, Any] | None = None
    """What its scheduler kept of the decision that brought it there: `at`, and `scores` by node."""
    without_gates: Explanation | None = None
    """For a pod that its scheduling gates hold back: what would become of it if they were removed now."""
    waiting_group: WaitingGroup | None = None
    """The pod's group, if that has to wait, whatever becomes of the pod by itself."""
    refusal: str = ""
    """Why the scheduler would not even have started, where an older one refused its configuration."""

    @property
    def highest_score(self) -> int:
        """What one plugin gives at most."""
        return MAX_NODE_SCORE

    @property
    def error_cause(self) -> str:
        """What ended the search, in a few words, where that was an error."""
        return "a plugin broke"

    @property
    def preamble(self) -> str:
        """What to know before reading on; mostly nothing."""
        return ""

    @property
    def is_stand_in(self) -> bool:
        """Whether the pod asks for a scheduler that is not configured, and another one answers for it."""
        return self.pod.spec.scheduler_name != self.scheduler.profile.scheduler_name

    @property
    def judged(self) -> Explanation:
        """The explanation that has looked at nodes: this one, or that of the pod without its gates."""
        return self.without_gates or self

    @property
    def fits(self) -> bool:
        return self.decision is not None and bool(self.decision.node_name)

    def to_dict(self) -> dict[str, Any]:
        if self.gate is not None:
            return gated_record(self.gate)
        assert self.decision is not None
        return decision_record(self.decision, list(self.cluster.table.names))

    def report(self) -> dict[str, Any]:
        """All that is known, for machines: `to_dict()` under `explanation`, and the rest beside it."""
        return full_report(self)

    def __str__(self) -> str:
        return render(self)

    def __repr__(self) -> str:
        return f"<Explanation: {self.headline}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        return explanation_html(self)

    @cached_property
    def failures(self) -> Failures | None:
        """Every filter's verdict on every node; None where no filter was asked about any."""
        if self.decision is None or self.decision.filtered is None:
            return None
        return find_failures(self.cluster, self.scheduler.profile, self.pod)

    @cached_property
    def numbers(self) -> Evidence | None:
        """What stands behind the rejections; None where there is no rejection by a filter."""
        if self.failures is None:
            return None
        return Evidence(self.cluster, self.pod, self.failures, self._hard_constraints)

    @property
    def groups(self) -> tuple[RejectedNodes, ...]:
        """The nodes that do not fit, by the reasons against them, the nearest to fitting first."""
        return self._cause_and_groups[1]

    @property
    def cause(self) -> Cause:
        """Why the pod is pending, or that it fits; with numbers, and what to do."""
        return self._cause_and_groups[0]

    @property
    def headline(self) -> str:
        """The answer in one line."""
        return headline_of(self)

    @cached_property
    def _cause_and_groups(self) -> tuple[Cause, tuple[RejectedNodes, ...]]:
        with collector_paused():
            return cause_and_groups(self, self._groups())

    def _groups(self) -> list[RejectedNodes]:
        if self.without_gates is not None:
            return list(self.without_gates.groups)
        decision = self.decision
        if decision is None or decision.filtered is None or self.failures is None or self.numbers is None:
            return []
        filtered = decision.filtered
        fitting = set(filtered.nodes.rows[filtered.fits].tolist())
        rows = [row for row in range(len(self.cluster.table.names)) if row not in fitting]
        return group_nodes(self.failures, self.numbers, self.cluster.table.names, rows)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """The smallest changes that would make the pod fit, if it does not; each was tried out."""
        if self.without_gates is not None:
            return self.without_gates.changes
        if self.cause.kind is CauseKind.TERMINATING:
            return ()
        decision = self.decision
        if decision is None or self.fits or decision.error or decision.prefilter is None:
            return ()
        return smallest_changes(self.cluster, self.scheduler, self.pod, decision, self.failures, self._hard_constraints)

    def change_for_node(self, node: str) -> Change | None:
        """The most acceptable change after which the pod fits on this node, if one was found."""
        decision = self.decision
        if decision is None or self.failures is None:
            return None
        return smallest_change_on(
            node, self.cluster, self.scheduler, self.pod, decision, self.failures, self._hard_constraints
        )

    @cached_property
    def _hard_constraints(self) -> tuple[SpreadConstraint, ...]:
        name = self.scheduler.profile.scheduler_name
        profiles = () if self.config is None else self.config.profiles
        entries = [entry for profile in profiles if profile.scheduler_name == name for entry in profile.plugin_config]
        args = next((entry.args for entry in entries if entry.name == PodTopologySpread.name), None)
        return hard_constraints(self.cluster, self.pod, args)
