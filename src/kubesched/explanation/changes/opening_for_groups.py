"""What would let a pod group onto nodes that have room for it and keep it off: by taints, cordons, labels, host ports;
or are not where its volumes are.

Each is told only if the group fits with it, tried out as `for_groups` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from kubesched.explanation.changes.volumes_of_groups import move_volumes
from kubesched.explanation.changes.what_if import (
    ChangeKind,
    GroupWhatIf,
    Opening,
    PatchOperation,
    Reluctance,
    append,
    patched,
    remove,
)
from kubesched.explanation.findings.taints import taint_text, untolerated
from kubesched.explanation.layout import all_of, counted
from kubesched.framework.groups import Placement
from kubesched.k8s.model.core import Node, Pod, Taint
from kubesched.k8s.model.selectors import HOSTNAME_LABEL
from kubesched.k8s.model.taints import UNSCHEDULABLE_TAINT
from kubesched.scheduler.cluster.undo import UndoLog

_MOST_TAINTS = 6
_NAMES_SHOWN = 3
_NODE_LIFECYCLE = "node.kubernetes.io/"


def openings(what_if: GroupWhatIf, nearest: Placement) -> Iterator[Opening]:
    nodes = [what_if.cluster.table.nodes[row] for row in nearest.rows.tolist()]
    for propose in (_toleration, _uncordoning, _labelling, move_volumes):
        if (found := propose(what_if, nodes)) is not None:
            yield found
    for propose_for_pods in (_without_selector, _without_host_ports):
        if (found := propose_for_pods(what_if)) is not None:
            yield found


def _patched_pods(
    what_if: GroupWhatIf, operations_for: Callable[[Pod], list[PatchOperation]], changes: UndoLog
) -> None:
    for info in what_if.pods:
        operations = operations_for(info.pod)
        if operations:
            changes.put_pod(what_if.cluster.signatures.info(patched(info.pod, operations)))


# -- taints ------------------------------------------------------------------------------------------------------------


def _toleration(what_if: GroupWhatIf, nodes: Sequence[Node]) -> Opening | None:
    """Of one taint, or of all of them together. That a node is not well is no taint to tolerate."""
    keeping_off: Counter[Taint] = Counter()
    for node in nodes:
        found = (taint for info in what_if.pods for taint in untolerated(node.spec.taints or (), info.tolerations))
        keeping_off.update(taint for taint in dict.fromkeys(found) if not taint.key.startswith(_NODE_LIFECYCLE))
    most_common = [taint for taint, _ in keeping_off.most_common(_MOST_TAINTS)]
    tried = [(taint,) for taint in most_common]
    for taints in [*tried, *([tuple(most_common)] if len(most_common) > 1 else [])]:
        if what_if.fits_after(partial(_patched_pods, what_if, partial(_tolerating, taints))):
            told = f"tolerate {all_of([taint_text(taint) for taint in taints])} on each pod"
            table = what_if.cluster.table
            opened = [node for node in nodes if not set(taints).isdisjoint(node.spec.taints or ())]
            n_pods = sum(len(table.pods.on(table.rows[node.name])) for node in opened)
            cost = f"takes room that is kept for others ({counted(n_pods, 'pod')} there)"
            return ChangeKind.TOLERATE, told, cost, Reluctance.LAST
    return None


def _tolerating(taints: Sequence[Taint], pod: Pod) -> list[PatchOperation]:
    tolerations = []
    for taint in taints:
        by_value = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
        tolerations.append({"key": taint.key, "effect": taint.effect, **by_value})
    return append(tolerations, "spec", "tolerations", has_list=pod.spec.tolerations is not None)


# -- nodes -------------------------------------------------------------------------------------------------------------


def _uncordoning(what_if: GroupWhatIf, nodes: Sequence[Node]) -> Opening | None:
    cordoned = sorted((node for node in nodes if node.spec.unschedulable), key=lambda node: node.name)

    def uncordon(n: int) -> Callable[[UndoLog], None]:
        return partial(_put_nodes, [_uncordoned(node) for node in cordoned[:n]])

    n = what_if.fewest(len(cordoned), uncordon)
    if n is None:
        return None
    ask = "whoever cordoned it: it" if n == 1 else "whoever cordoned them: they"
    return ChangeKind.UNCORDON, f"uncordon {_named(cordoned[:n])}", f"ask {ask} may be about to be drained", _OTHERS


def _uncordoned(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints or () if taint.key != UNSCHEDULABLE_TAINT.key)
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints or None))


def _labelling(what_if: GroupWhatIf, nodes: Sequence[Node]) -> Opening | None:
    """Nodes get the labels that all pods select."""
    selector = what_if.pods[0].spec.node_selector or {}
    if not selector or any((info.spec.node_selector or {}) != selector for info in what_if.pods):
        return None
    if HOSTNAME_LABEL in selector:
        return None
    lacking = sorted((node for node in nodes if not selector.items() <= node.labels.items()), key=lambda one: one.name)

    def label(n: int) -> Callable[[UndoLog], None]:
        return partial(_put_nodes, [labelled(node, selector) for node in lacking[:n]])

    n = what_if.fewest(len(lacking), label)
    if n is None:
        return None
    labels = all_of([f"{key}={value}" for key, value in selector.items()])
    cost = "costs others nothing, if the nodes are what the label says"
    return ChangeKind.LABEL_NODE, f"label {_named(lacking[:n])} with {labels}", cost, _OTHERS


def labelled_for_topology(what_if: GroupWhatIf, key: str, nodes: Sequence[Node]) -> Opening | None:
    """Where no node has the label that the group wants to be near by: how many of them need one value of it."""
    lacking = sorted((node for node in nodes if key not in node.labels), key=lambda node: node.name)

    def label(n: int) -> Callable[[UndoLog], None]:
        return partial(_put_nodes, [labelled(node, {key: "one"}) for node in lacking[:n]])

    n = what_if.fewest(len(lacking), label)
    if n is None:
        return None
    cost = "costs others nothing, if the nodes are near each other"
    return ChangeKind.LABEL_NODE, f"label {_named(lacking[:n])} with one value of {key}", cost, _OTHERS


def labelled(node: Node, labels: dict[str, str]) -> Node:
    return replace(node, metadata=replace(node.metadata, labels={**node.labels, **labels}))


def _put_nodes(nodes: Sequence[Node], changes: UndoLog) -> None:
    for node in nodes:
        changes.put_node(node)


def _named(nodes: Sequence[Node]) -> str:
    names = [node.name for node in nodes[:_NAMES_SHOWN]]
    more = len(nodes) - len(names)
    return all_of([*names, counted(more, "other node")] if more else names)


_OTHERS = Reluctance.OTHERS


# -- pods --------------------------------------------------------------------------------------------------------------


def _without_selector(what_if: GroupWhatIf) -> Opening | None:
    if not any(_selecting(info.pod) for info in what_if.pods):
        return None
    if not what_if.fits_after(partial(_patched_pods, what_if, _selecting)):
        return None
    told = "drop node selector and required node affinity of each pod"
    return ChangeKind.RELAX, told, "costs others nothing; its pods may go to any node", Reluctance.MUCH


def _selecting(pod: Pod) -> list[PatchOperation]:
    """What takes its choice of nodes away."""
    operations = [remove("spec", "nodeSelector")] if pod.spec.node_selector else []
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is not None and affinity.required_during_scheduling_ignored_during_execution is not None:
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        operations.append(remove("spec", "affinity", "nodeAffinity", required))
    return operations


def _without_host_ports(what_if: GroupWhatIf) -> Opening | None:
    ports = sorted({port.host_port for info in what_if.pods for port in info.host_ports})
    if not ports or not what_if.fits_after(partial(_patched_pods, what_if, _holding_ports)):
        return None
    told = f"give up host port {all_of(list(map(str, ports)))} of each pod"
    return ChangeKind.RELAX, told, "costs others nothing; its pods are not reached by the node's address", _RELAXED


_RELAXED = Reluctance.MUCH


def _holding_ports(pod: Pod) -> list[PatchOperation]:
    return [
        remove("spec", "containers", at, "ports", place, "hostPort")
        for at, container in enumerate(pod.spec.containers)
        for place, port in enumerate(container.ports or ())
        if port.host_port
    ]
