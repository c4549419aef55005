"""Taints and tolerations: which taints a pod puts up with."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.core import Taint, Toleration
from kubesched.k8s.model.resource import DeviceTaint, DeviceToleration

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""A pod that tolerates this taint may go to a cordoned node."""


def tolerates(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    """The rule for taints of nodes and of devices."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated(
    taints: Iterable[Taint],
    tolerations: Iterable[Toleration],
    effects: tuple[str, ...] = (NO_SCHEDULE, NO_EXECUTE),
) -> Taint | None:
    """The first taint with one of these effects that no toleration covers."""
    known = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, known):
            return taint
    return None
