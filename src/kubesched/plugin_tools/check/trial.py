"""One case, built up: a cluster, a new plugin over it, and all that the plugin says about the case's pod.

Next: `asking` for single extension points, `answer_checks` for what is made of the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np

from kubesched.framework import OK, Code, CycleState, PodInfo, Status
from kubesched.framework.extension_points import Permit, PreEnqueue, Reserve
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.cases import Case, Manifest
from kubesched.plugin_tools.check.subject import Subject
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
            status = asking.one_status("reserve", partial(plugin.reserve, cycle, self.pod, node_name))
        if status.is_success and isinstance(plugin, Permit):
            status = asking.one_status("permit", partial(plugin.permit, cycle, self.pod, node_name))
        if isinstance(plugin, Reserve):
            asking.done("unreserve", partial(plugin.unreserve, cycle, self.pod, node_name))
        return status

    def gate(self) -> Status:
        if not hasattr(self.plugin, "pre_enqueue"):
            return OK
        plugin = cast(PreEnqueue, self.plugin)
        status = asking.one_status("pre_enqueue", lambda: plugin.pre_enqueue(self.pod))
        return OK if status.is_success else Status(status.code, status.reasons)

    def statuses(self, cycle: CycleState) -> dict[str, Status]:
        """What preFilter and filter come to, by node."""
        names, nodes = self.nodes.names, self.nodes
        result = asking.pre_filter(self.plugin, cycle, self.pod, nodes)
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
        if not asking.has_filter(self.plugin):
            return [OK] * len(self.nodes)
        return asking.filter_nodes(self.plugin, cycle, self.pod, self.nodes)

    def scored(self, cycle: CycleState, feasible: TableView) -> tuple[dict[str, int], dict[str, int]]:
        """Raw and normalised scores of these nodes."""
        plugin, pod = self.plugin, self.pod
        if not asking.has_score(plugin) or not len(feasible):
            return {}, {}
        if not asking.pre_score(plugin, cycle, pod, feasible).is_success:
            return {}, {}
        raw = asking.raw_scores(plugin, cycle, pod, feasible)
        given = raw.copy()
        scores = asking.normalized(plugin, cycle, pod, feasible, given)
        return _by_name(feasible.names, raw.tolist()), _by_name(feasible.names, scores.tolist())


def _by_name(names: Sequence[str], values: list[int]) -> dict[str, int]:
    return dict(zip(names, values, strict=True))
