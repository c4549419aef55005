"""Which taints a node has by its state: pure rules, as the node lifecycle controller applies them.

Not ready and unreachable keep pods away and drive them out; pressure and `kubectl cordon` only keep them away.
"""

from __future__ import annotations

from kubesched.k8s.model.core import Node
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE
from kubesched.playground.controllers.documents import Body

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_BY_READINESS = {"False": NOT_READY, "Unknown": UNREACHABLE}
_OURS = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()})

TaintId = tuple[str, str]
"""Key and effect."""


def wanted_taints(node: Node) -> set[TaintId]:
    """Those that follow from the node's state; others are none of our business."""
    found: set[TaintId] = set()
    for condition in node.status.conditions or ():
        if condition.type == "Ready" and condition.status in _BY_READINESS:
            key = _BY_READINESS[condition.status]
            found |= {(key, NO_SCHEDULE), (key, NO_EXECUTE)}
        elif condition.type in _PRESSURES and condition.status == "True":
            found.add((_PRESSURES[condition.type], NO_SCHEDULE))
    if node.spec.unschedulable:
        found.add((UNSCHEDULABLE, NO_SCHEDULE))
    return found


def are_taints_right(node: Node) -> bool:
    known = {(taint.key, taint.effect) for taint in node.spec.taints or () if taint.key in _OURS}
    return known == wanted_taints(node)


def with_taints_right(taints: list[Body], wanted: set[TaintId], moment: str) -> list[Body]:
    """The node's taints, whole, with ours as they should be."""
    kept = [known for known in taints if known["key"] not in _OURS or (known["key"], known["effect"]) in wanted]
    present = {(known["key"], known["effect"]) for known in kept}
    made: list[Body] = []
    for key, effect in sorted(wanted - present):
        taint: Body = {"key": key, "effect": effect}
        if effect == NO_EXECUTE or key == UNSCHEDULABLE:
            taint["timeAdded"] = moment
        made.append(taint)
    return [*kept, *made]
