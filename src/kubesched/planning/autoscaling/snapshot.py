"""The simulated cluster as it is now, as a world to ask questions on."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.limits import LimitRange, ResourceQuota
from kubesched.k8s.model.manifests import KINDS
from kubesched.k8s.model.meta import KubeObject
from kubesched.planning.consolidate.rules import DO_NOT_DISRUPT, SCALE_DOWN_DISABLED
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.trial import LoadedWorld
from kubesched.simulator.virtual.cluster import VirtualCluster
from kubesched.simulator.virtual.controllers import MAKES_PODS

_SCHEDULED_BY = frozenset(KINDS.values())
_KEPT = {DO_NOT_DISRUPT: "true", SCALE_DOWN_DISABLED: "true"}


def snapshot(
    cluster: VirtualCluster,
    config: KubeSchedulerConfiguration,
    registry: Registry | None,
    *,
    tie_break: str,
    seed: int,
    kept: Collection[str] = (),
) -> LoadedWorld:
    """Nodes of these names count as nodes that nobody may remove."""
    there: list[KubeObject] = []
    bounds: list[KubeObject] = []
    for item in cluster.store:
        if isinstance(item, Node) and item.name in kept:
            there.append(_kept(item))
        elif isinstance(item, LimitRange | ResourceQuota):
            bounds.append(item)
        elif type(item) in _SCHEDULED_BY and not (isinstance(item, Pod) and item.is_terminal):
            there.append(item)
    return LoadedWorld(
        there,
        config,
        registry=registry,
        tie_break=tie_break,
        seed=seed,
        workloads=[item for item in cluster.store if isinstance(item, MAKES_PODS)],
        bounds=bounds,
        keeps_classes=None,
    )


def _kept(node: Node) -> Node:
    return replace(node, metadata=replace(node.metadata, annotations={**(node.metadata.annotations or {}), **_KEPT}))
