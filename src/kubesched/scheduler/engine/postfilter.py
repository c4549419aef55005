"""PostFilter: no node fits. What is wrong with each node, the message that says it, and can anything be done?

Nodes that the filters looked at have their own status; all others share one (`absent`): those that PreFilter left out,
or every node when PreFilter rejected the pod as a whole. `Diagnosis` implements `framework.NodeStatuses`, which
PostFilter plugins are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NominatingMode, PostFilterResult
from kubesched.framework.status import Code, Status
from kubesched.framework.verdicts import BoolArray
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.plugin_call import blamed
from kubesched.scheduler.engine.prefilter import PreFilterOutcome
from kubesched.scheduler.engine.profile import Profile

_EVENT_LIMIT = 1024
_CUT = " ..."

UNKNOWN_NODE = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
"""The status of nodes that were not evaluated, unless PreFilter gave one."""


class NodeFindings(Protocol):
    """What the filters found on each node: a `FilterOutcome`, or what was kept of one."""

    @property
    def nodes(self) -> NodeTable: ...
    @property
    def fits(self) -> BoolArray: ...
    @property
    def unresolvable(self) -> BoolArray: ...
    def resolvable(self) -> RowArray:
        """The places of nodes that reject the pod, but not for good."""
        ...

    def status(self, position: int) -> Status: ...
    def reason_counts(self) -> dict[str, int]: ...
    def rejecting_plugins(self) -> list[str]: ...


@dataclass(slots=True)
class Diagnosis:
    """The findings on all nodes after a search that found none that fits."""

    cluster_nodes: TableView
    prefilter: PreFilterOutcome
    filtered: NodeFindings | None = None
    post_filter_message: str = ""
    messages: dict[str, str] | None = None
    """By what PostFilter says: the messages about these findings, where they are kept for the next pod."""
    _plugins: frozenset[str] | None = None
    within: RowArray | None = None
    """The nodes that the search was about, if not all."""
    as_of_then: tuple[str, frozenset[str]] | None = None
    """Message and plugins, if they are to be remembered (`remember`)."""

    @property
    def absent(self) -> Status:
        return absent_status(self.prefilter)

    def status_of(self, node_name: str) -> Status:
        if self.filtered is not None:
            row = self.cluster_nodes.row_of(node_name)
            if row is not None:
                positions = np.flatnonzero(self.filtered.nodes.rows == row)
                if len(positions):
                    return self.filtered.status(int(positions[0]))
        return self.absent

    def explicit(self) -> Mapping[str, Status]:
        if self.filtered is None:
            return {}
        names = self.filtered.nodes.names
        return {
            names[position]: self.filtered.status(position) for position in np.flatnonzero(~self.filtered.fits).tolist()
        }

    def resolvable_rows(self) -> RowArray:
        filtered = self.filtered
        if filtered is not None and filtered.nodes.whole is filtered.nodes:
            return filtered.resolvable()
        hopeful = np.zeros(len(self.cluster_nodes), dtype=np.bool_)
        if self.absent.code is Code.UNSCHEDULABLE:
            hopeful[slice(None) if self.within is None else self.within] = True
        if filtered is not None:
            hopeful[filtered.nodes.rows] = ~(filtered.fits | filtered.unresolvable)
        return np.flatnonzero(hopeful)

    def remember(self) -> None:
        """Keeps what is found now: findings that are kept for a class change with the table."""
        self.as_of_then = self.message(), self.unschedulable_plugins()

    def unschedulable_plugins(self) -> frozenset[str]:
        """The plugins that must change their mind before the pod is worth another try."""
        if self.as_of_then is not None:
            return self.as_of_then[1]
        if self._plugins is None:
            self._plugins = self._find_plugins()
        return self._plugins

    def _find_plugins(self) -> frozenset[str]:
        found = set(self.prefilter.narrowed_by)
        if self.prefilter.status.plugin:
            found.add(self.prefilter.status.plugin)
        if self.filtered is not None:
            found.update(self.filtered.rejecting_plugins())
        return frozenset(found)

    def message(self) -> str:
        """`0/N nodes are available: …`, as kube-scheduler words it."""
        if self.as_of_then is not None:
            return self.as_of_then[0]
        known = None if self.messages is None else self.messages.get(self.post_filter_message)
        if known is None:
            known = self._worded()
            if self.messages is not None:
                self.messages[self.post_filter_message] = known
        return known

    def _worded(self) -> str:
        n = len(self.cluster_nodes) if self.within is None else len(self.within)
        text = f"0/{n} nodes are available:"
        if not self.prefilter.status.is_success:
            text += f" {self.prefilter.status.message}."
        else:
            lines = sorted(f"{count} {reason}" for reason, count in self._reason_counts(n).items())
            if lines:
                text += f" {', '.join(lines)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text

    def _reason_counts(self, n_nodes: int) -> dict[str, int]:
        counts = {} if self.filtered is None else self.filtered.reason_counts()
        n_explicit = 0 if self.filtered is None else int(np.count_nonzero(~self.filtered.fits))
        if n_explicit < n_nodes:
            for reason in self.absent.reasons:
                counts[reason] = counts.get(reason, 0) + n_nodes - n_explicit
        return counts


def absent_status(prefilter: PreFilterOutcome) -> Status:
    """The status that nodes share which the filters never looked at."""
    if not prefilter.status.is_success:
        return prefilter.status
    if prefilter.node_names is not None:
        return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(prefilter.narrowed_by)}]")
    return UNKNOWN_NODE


def for_event(message: str) -> str:
    """Cut to what an event's note holds."""
    if len(message) <= _EVENT_LIMIT:
        return message
    return message[: _EVENT_LIMIT - len(_CUT)] + _CUT


@timed_extension_point("PostFilter")
def run_post_filter(profile: Profile, cycle: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> PostFilterResult:
    """Plugins in turn until one succeeds or knows that nothing helps; else the reasons of all of them."""
    cycle.put(profile.unmeasured or profile)  # a dry run asks the filters again
    reasons: list[str] = []
    last: PostFilterResult | None = None
    lasts = True
    for plugin in profile.post_filter:
        try:
            result = plugin.post_filter(cycle, pod, diagnosis)
        except Exception as raised:  # noqa: BLE001  whatever a plugin raises is its error
            bug = blamed(raised, plugin.name, 'running PostFilter plugin "{}"')
            if bug is not raised:
                bug.__cause__ = raised  # whose stack is logged
            tell = profile.observers.trouble
            if tell is not None:
                tell(PluginBroke(bug, pod))
            return PostFilterResult(Status.error(bug.message).by(plugin.name))
        status = result.status.by(plugin.name)
        if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterResult(status, result.mode, result.node_name)
        if not status.is_rejected:
            return PostFilterResult(status)
        if result.mode is not NominatingMode.NOOP:
            last = result
        reasons.extend(status.reasons)
        lasts = lasts and result.lasts
    status = Status.unschedulable(*reasons)
    mode, node_name = (NominatingMode.NOOP, "") if last is None else (last.mode, last.node_name)
    return PostFilterResult(status, mode, node_name, lasts)
