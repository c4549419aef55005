"""Nodes as Karpenter's NodeClaims tell of them: what a node that is there does not say itself, and nodes that are on
their way.

A claim that is launched says what its node will have; it counts as ready then, without start-up taints. One that is not
launched yet, or that is being deleted, is no node.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubesched.k8s.model.autoscaling import NodeClaim
from kubesched.k8s.model.core import Node, NodeCondition, NodeSpec, NodeStatus
from kubesched.k8s.model.meta import ObjectMeta

_HOSTNAME = "kubernetes.io/hostname"
_NAMED = (
    "karpenter.sh/nodepool",
    "karpenter.sh/capacity-type",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
)
_PRICE = "kubesched.dev/price"


def nodes_with_claims(nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> list[Node]:
    """The nodes, of those with a claim with pool, type, zone, capacity type and price of it; then those on their
    way."""
    by_node = {claim.status.node_name or claim.name: claim for claim in claims}
    found = [_completed(node, by_node.pop(node.name, None)) for node in nodes]
    coming = [claim for claim in by_node.values() if is_on_its_way(claim)]
    return [*found, *(_coming(claim) for claim in coming)]


def is_on_its_way(claim: NodeClaim) -> bool:
    """Whether a claim without a node will have one, and says how large it is."""
    has_amounts = bool(claim.status.allocatable or claim.status.capacity)
    return has_amounts and claim.metadata.deletion_timestamp is None


def is_unknown(claim: NodeClaim) -> bool:
    """Whether the size of its node is not known yet."""
    return not (claim.status.node_name or is_on_its_way(claim) or claim.metadata.deletion_timestamp)


def _labels_of(claim: NodeClaim) -> dict[str, str]:
    """What is certain of its node: requirements that leave one value, and its own labels."""
    chosen: dict[str, str] = {}
    for one in claim.spec.requirements or ():
        if one.operator == "In" and one.values is not None and len(one.values) == 1:
            chosen[one.key] = one.values[0]
    return {**chosen, **(claim.metadata.labels or {})}


def _completed(node: Node, claim: NodeClaim | None) -> Node:
    if claim is None:
        return node
    labels, annotations = node.metadata.labels or {}, node.metadata.annotations or {}
    known = _labels_of(claim)
    more = {key: known[key] for key in _NAMED if key in known and key not in labels}
    price = (claim.metadata.annotations or {}).get(_PRICE) or known.get(_PRICE)
    says_price = price is not None and _PRICE not in annotations and _PRICE not in labels
    if not more and not says_price:
        return node
    noted = {**annotations, _PRICE: price} if price is not None and says_price else annotations
    return replace(
        node, metadata=replace(node.metadata, labels={**labels, **more}, annotations=noted or node.metadata.annotations)
    )


def _coming(claim: NodeClaim) -> Node:
    name = claim.status.node_name or claim.name
    status = claim.status
    return Node(
        metadata=ObjectMeta(
            name=name,
            labels={_HOSTNAME: name, **_labels_of(claim)},
            annotations=claim.metadata.annotations,
            creation_timestamp=claim.metadata.creation_timestamp,
        ),
        spec=NodeSpec(taints=claim.spec.taints),
        status=NodeStatus(
            allocatable=status.allocatable or status.capacity,
            capacity=status.capacity or status.allocatable,
            conditions=(NodeCondition("Ready", "True"),),
        ),
    )
