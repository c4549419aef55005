"""How nodes are upgraded: how many come before, how many may lack, how long a drain may take, and what then.

Presets have the defaults of services and tools that upgrade nodes. A value that is given counts more than the preset's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Node
from kubesched.k8s.workloads.replicas import ShareError, share_of
from kubesched.planning.node_groups import group_of

ORDERS = ("name", "zone", "age", "least-pods")
ON_TIMEOUT = ("stop", "force", "skip")


class UpgradeError(KubeschedError, ValueError):
    """What is asked for is no upgrade that could be played."""


@dataclass(frozen=True, slots=True)
class UpgradeStrategy:
    max_surge: int | str = 1
    """New nodes that come before old ones are drained: a number, or a percentage, rounded up."""
    max_unavailable: int | str = 0
    """Nodes that may lack meanwhile: a number, or a percentage, rounded down."""
    drain_timeout_s: float | None = 3600.0
    """None: a drain waits forever."""
    on_timeout: str = "stop"
    boot_s: float = 120.0
    soak_s: float = 0.0
    """How long a new node is watched before the next is drained."""
    order: str = "name"
    reboots: bool = False
    """The same node comes back, instead of another one."""

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UpgradeError(f'there is no order "{self.order}": {", ".join(ORDERS)} are known')
        if self.on_timeout not in ON_TIMEOUT:
            raise UpgradeError(f'on_timeout "{self.on_timeout}": {", ".join(ON_TIMEOUT)} are known')

    def numbers(self, n_nodes: int) -> tuple[int, int]:
        """The surge and how many may lack. Raises UpgradeError."""
        try:
            surge = share_of(self.max_surge, n_nodes, rounding_up=True)
            lacking = share_of(self.max_unavailable, n_nodes, rounding_up=False)
        except ShareError as error:
            raise UpgradeError(str(error)) from None
        if surge < 0 or lacking < 0:
            raise UpgradeError("a surge and what may be unavailable are not negative")
        if self.reboots:
            surge = 0
        if surge == 0 and lacking == 0:
            raise UpgradeError("with neither a surge nor unavailable nodes, no node can be upgraded")
        return surge, lacking


PRESETS: Mapping[str, UpgradeStrategy] = {
    "gke": UpgradeStrategy(1, 0, 3600.0, "force"),
    "aks": UpgradeStrategy("10%", 0, 1800.0, "stop"),
    "eks": UpgradeStrategy(1, 1, 900.0, "stop"),
    "capi": UpgradeStrategy(1, 0, None, "stop"),
    "karpenter-drift": UpgradeStrategy("10%", 0, None, "stop"),
    "reboot": UpgradeStrategy(0, 1, 3600.0, "stop", reboots=True),
}
"""Surge upgrades of GKE node pools and of Cluster API, AKS's and EKS's managed groups, Karpenter's replacement of
drifted nodes under its default budget, and rebooting nodes in place."""


def strategy_of(preset: str | None, **given: Any) -> UpgradeStrategy:
    """The preset with what is given (that is not None) in its place. Raises UpgradeError."""
    if preset is not None and preset not in PRESETS:
        raise UpgradeError(f'there is no preset "{preset}": {", ".join(PRESETS)} are known')
    base = UpgradeStrategy() if preset is None else PRESETS[preset]
    return replace(base, **{name: value for name, value in given.items() if value is not None})


def ordered(nodes: Sequence[Node], order: str, n_pods: Mapping[str, int]) -> list[str]:
    """The names of the nodes in the order in which they are upgraded."""
    keys: dict[str, Any] = {
        "name": lambda node: node.name,
        "zone": lambda node: (group_of(node, "zone") or "", node.name),
        "age": lambda node: (node.metadata.creation_timestamp or "", node.name),
        "least-pods": lambda node: (n_pods.get(node.name, 0), node.name),
    }
    return [node.name for node in sorted(nodes, key=keys[order])]
