"""Opening nodes that are closed to the pod: tolerate which taints, uncordon which node."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.explanation.changes.change import (
    Change,
    ChangeKind,
    PatchNode,
    PatchPod,
    Proposal,
    Reluctance,
    append,
    remove,
)
from kubesched.explanation.changes.what_if import Situation
from kubesched.explanation.findings.taints import is_meant_for, is_passing, taint_text, untolerated
from kubesched.explanation.layout import counted
from kubesched.k8s.model.core import Node, Taint
from kubesched.k8s.model.taints import UNSCHEDULABLE_TAINT
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.taint_toleration import TaintToleration


def tolerate_taints(situation: Situation) -> list[Change]:
    """The smallest set of tolerations after which the pod fits somewhere."""
    proposals: dict[tuple[Taint, ...], Proposal] = {}
    for row in situation.failures.only({TaintToleration.name}).tolist():
        taints = _keeping_off(situation, row)
        if taints not in proposals:
            proposals[taints] = _toleration(situation, row, taints)
    change = situation.what_if.first_that_helps(sorted(proposals.values(), key=lambda proposal: proposal.size))
    return [] if change is None else [change]


def uncordon_node(situation: Situation) -> list[Change]:
    change = situation.what_if.first_that_helps(_cordoned(situation))
    return [] if change is None else [change]


def propose_tolerations(situation: Situation, row: int) -> Proposal | None:
    """Tolerations for all taints of the node, but for the one that goes with its being cordoned."""
    node = situation.cluster.table.nodes[row]
    taints = tuple(taint for taint in _keeping_off(situation, row) if not _stands_for_cordon(taint, node))
    return _toleration(situation, row, taints) if taints else None


def propose_uncordoning(situation: Situation, row: int) -> Proposal:
    node = situation.cluster.table.nodes[row]
    operations = [remove("spec", "unschedulable")]
    taints = node.spec.taints or ()
    operations.extend(
        remove("spec", "taints", index)
        for index in reversed(range(len(taints)))
        if _stands_for_cordon(taints[index], node)
    )
    return Proposal(
        ChangeKind.UNCORDON,
        f"uncordon {node.name}",
        node.name,
        (PatchNode(node.name, tuple(operations)),),
        reluctance=Reluctance.OTHERS,
        cost_to_others="ask whoever cordoned it: it may be about to be drained",
    )


def _cordoned(situation: Situation) -> Iterator[Proposal]:
    """Nodes that are rejected for being cordoned and nothing else."""
    for row in situation.failures.only({NodeUnschedulable.name, TaintToleration.name}).tolist():
        node = situation.cluster.table.nodes[row]
        if node.spec.unschedulable and propose_tolerations(situation, row) is None:
            yield propose_uncordoning(situation, row)


def _keeping_off(situation: Situation, row: int) -> tuple[Taint, ...]:
    return untolerated(situation.cluster.table.nodes[row].spec.taints or (), situation.pod.tolerations)


def _stands_for_cordon(taint: Taint, node: Node) -> bool:
    return node.spec.unschedulable and taint.key == UNSCHEDULABLE_TAINT.key


def _toleration(situation: Situation, row: int, taints: tuple[Taint, ...]) -> Proposal:
    tolerations = [_toleration_of(taint) for taint in taints]
    reluctance, cost = _price(situation, row, taints)
    operations = append(tolerations, "spec", "tolerations", has_list=situation.pod.spec.tolerations is not None)
    return Proposal(
        kind=ChangeKind.TOLERATE,
        description=f"tolerate {' and '.join(taint_text(taint) for taint in taints)}",
        node=situation.name(row),
        actions=(PatchPod(situation.pod.key, tuple(operations)),),
        details={"tolerations": tolerations},
        n_edits=len(taints),
        cost=sum(is_passing(taint) for taint in taints),
        reluctance=reluctance,
        cost_to_others=cost,
    )


def _price(situation: Situation, row: int, taints: tuple[Taint, ...]) -> tuple[Reluctance, str]:
    """A taint that keeps a resource for those who ask for it is meant to be tolerated by them; no other is."""
    if any(map(is_passing, taints)):
        return Reluctance.LAST, "the node is not well, or about to go"
    if all(is_meant_for(taint, situation.pod) for taint in taints):
        return Reluctance.NONE, "costs nobody anything: the taint keeps what the pod asks for"
    n_pods = len(situation.cluster.table.pods.on(row))
    return Reluctance.LAST, f"takes room that is kept for others ({counted(n_pods, 'pod')} there)"


def _toleration_of(taint: Taint) -> dict[str, str]:
    if not taint.value:
        return {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
