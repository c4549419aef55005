"""Behind TaintToleration and NodeUnschedulable: which taints the pod does not tolerate, which nodes are cordoned."""

from __future__ import annotations

from kubesched.explanation.findings.finding import Fact
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Taint, Toleration
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE, is_tolerated
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.taint_toleration import TaintToleration


class UntoleratedTaints:
    """Facts by row; nodes with the same taints share them."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._nodes = cluster.table.nodes
        self._tolerations = pod.tolerations
        self._known: dict[tuple[Taint, ...], tuple[Fact, ...]] = {}

    def of(self, row: int) -> tuple[Fact, ...]:
        taints = self._nodes[row].spec.taints or ()
        if taints not in self._known:
            self._known[taints] = tuple(_fact(taint) for taint in untolerated(taints, self._tolerations))
        return self._known[taints]


class Cordoned:
    """The same fact for every row."""

    _FACT = Fact(NodeUnschedulable.name, "the node is cordoned (spec.unschedulable)", {"unschedulable": True})

    def of(self, row: int) -> tuple[Fact, ...]:
        return (self._FACT,)


def untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> tuple[Taint, ...]:
    """All taints that keep the pod off the node."""
    return tuple(
        taint for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not is_tolerated(taint, tolerations)
    )


def taint_text(taint: Taint) -> str:
    """As kubectl writes it: `key=value:effect`."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _fact(taint: Taint) -> Fact:
    fields = {"taint": {"key": taint.key, "value": taint.value, "effect": taint.effect}}
    return Fact(TaintToleration.name, f"taint {taint_text(taint)} is not tolerated", fields)
