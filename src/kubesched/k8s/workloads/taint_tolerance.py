"""How long a pod stays on a node whose taints drive pods out."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.core import Node, Taint, Toleration
from kubesched.k8s.model.taints import NO_EXECUTE, tolerates


def tolerated_for_s(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> float | None:
    """How long a pod stays on a node with these taints; None for good."""
    known = tuple(tolerations)
    spans: list[float] = []
    for taint in taints:
        covering = [toleration for toleration in known if tolerates(toleration, taint)]
        if not covering:
            return 0.0
        limits = (toleration.toleration_seconds for toleration in covering)
        spans.extend(max(0.0, seconds) for seconds in limits if seconds is not None)
    return min(spans, default=None)


def driving_taints(node: Node) -> tuple[Taint, ...]:
    """Those with the effect NoExecute."""
    return tuple(taint for taint in node.spec.taints or () if taint.effect == NO_EXECUTE)
