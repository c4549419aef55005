"""Karpenter's NodePools as pools of a catalogue, its NodeOverlays as overlays.

What a NodePool requires is asked of each machine's labels. A label of one's own that no machine has is given to the
nodes, as Karpenter does; where it may have several values, there is a variant of the pool for each. Start-up taints are
gone by the time that pods are placed, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace as changed
from itertools import product

from kubesched.k8s.model.autoscaling import MachineRequirement, NodeOverlay, NodePool
from kubesched.planning.catalogue import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    POOL,
    ZONE,
    Catalogue,
    CatalogueError,
    MachineOffer,
    Pool,
    Shape,
)
from kubesched.planning.catalogue_checks import (
    AskedRequirement,
    check_labels,
    checked_change,
    checked_extra_capacity,
    checked_limits,
    checked_requirements,
    checked_taints,
)
from kubesched.planning.cloud_lists import AWS_LABELS, ON_DEMAND, OS, aws_labels
from kubesched.planning.node_pool_budgets import disruption_of
from kubesched.planning.overlays import Overlay
from kubesched.planning.pool_requirements import PoolRequirement
from kubesched.simulator.loading import SourcedObject

_OF_MACHINES = ("kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "azure.com", "amazonaws.com", "google.com")
"""Domains of labels that say what a machine is; others are one's own."""
_OWN_ALL_THE_SAME = ("node-restriction.kubernetes.io", "kops.k8s.io")
_MOST_VARIANTS = 16
_MOST_WEIGHT, _MOST_OVERLAY_WEIGHT = 100, 10_000
_REQUIREMENTS = "spec.template.spec.requirements"


def with_node_pools(catalogue: Catalogue, makers: Iterable[SourcedObject]) -> Catalogue:
    """The catalogue with the NodePools and NodeOverlays among these objects. Raises CatalogueError."""
    makers = tuple(makers)
    overlays = tuple(overlay_of(one.item, one.source) for one in makers if isinstance(one.item, NodeOverlay))
    pools = [(pool_of(one.item, one.source), one.source) for one in makers if isinstance(one.item, NodePool)]
    if not pools and not overlays:
        return catalogue
    found = changed(catalogue, overlays=(*catalogue.overlays, *overlays))
    if not pools:
        return found
    names = {pool.name for pool in catalogue.pools}
    for pool, source in pools:
        if pool.name in names:
            raise CatalogueError(source, f"NodePool {pool.name}", "metadata.name: there are two pools of this name")
        names.add(pool.name)
    shapes = tuple(_completed(shape, [pool for pool, _ in pools]) for shape in catalogue.shapes)
    keys = {key for shape in shapes for key in shape.labels} | {INSTANCE_TYPE, POOL}
    keys |= {ZONE} if any(offer.zone for shape in shapes for offer in shape.offers) else set()
    keys |= {CAPACITY_TYPE} if any(offer.capacity_type for shape in shapes for offer in shape.offers) else set()
    variants = [variant for pool, source in pools for variant in _variants(pool, keys, source)]
    variants.sort(key=lambda pool: -pool.weight)
    return changed(found, shapes=shapes, pools=(*catalogue.pools, *variants))


def beside_cluster(catalogue: Catalogue, makers: Iterable[SourcedObject]) -> Catalogue:
    """With the NodePools and NodeOverlays that the cluster has, but for those that the catalogue knows already."""
    known = {pool.name for pool in catalogue.pools} | {overlay.name for overlay in catalogue.overlays}
    return with_node_pools(catalogue, [one for one in makers if one.item.metadata.name not in known])


# -- one object --------------------------------------------------------------------------------------------------------


def pool_of(item: NodePool, source: str) -> Pool:
    where, spec = f"NodePool {item.name}", item.spec
    if not item.name:
        raise CatalogueError(source, "NodePool", "metadata.name: missing")
    labels = spec.template.metadata.labels or {}
    check_labels(labels, source, where, "spec.template.metadata.labels")
    if POOL in labels:
        raise CatalogueError(source, where, f"spec.template.metadata.labels.{POOL}: Karpenter sets it")
    requirements = checked_requirements(_asked(spec.template.spec.requirements), source, where, _REQUIREMENTS)
    for i, one in enumerate(requirements):
        if one.key == POOL:
            raise CatalogueError(source, where, f"{_REQUIREMENTS}[{i}].key: {POOL} cannot be required")
    taints = checked_taints(spec.template.spec.taints or (), source, where, "spec.template.spec.taints")
    checked_taints(spec.template.spec.startup_taints or (), source, where, "spec.template.spec.startupTaints")
    most_nodes, limits = checked_limits(spec.limits or {}, source, where, "spec.limits")
    disruption = disruption_of(item, source)
    weight = _weight(spec.weight, _MOST_WEIGHT, source, where)
    if spec.replicas is not None:
        if spec.replicas < 0:
            raise CatalogueError(source, where, f"spec.replicas: {spec.replicas} is negative")
        if limits:
            problem = f"spec.limits.{next(iter(limits))}: a pool with replicas has no limit but of nodes"
            raise CatalogueError(source, where, problem)
        if weight:
            raise CatalogueError(source, where, "spec.weight: a pool with replicas has none")
        most_nodes = spec.replicas if most_nodes is None else min(most_nodes, spec.replicas)
    return Pool(
        item.name,
        labels,
        taints,
        requirements,
        most_nodes,
        limits,
        least_nodes=0 if spec.replicas is None else most_nodes or 0,
        weight=weight,
        is_static=spec.replicas is not None,
        disruption=disruption,
    )


def overlay_of(item: NodeOverlay, source: str) -> Overlay:
    where, spec = f"NodeOverlay {item.name}", item.spec
    if not item.name:
        raise CatalogueError(source, "NodeOverlay", "metadata.name: missing")
    return Overlay(
        item.name,
        checked_requirements(_asked(spec.requirements), source, where, "spec.requirements"),
        checked_change(spec.price, spec.price_adjustment, source, where, "spec."),
        checked_extra_capacity(spec.capacity or {}, source, where, "spec.capacity"),
        _weight(spec.weight, _MOST_OVERLAY_WEIGHT, source, where),
    )


def _asked(given: Sequence[MachineRequirement] | None) -> list[AskedRequirement]:
    return [(one.key, one.operator, one.values, one.min_values) for one in given or ()]


def _weight(given: int | None, most: int, source: str, where: str) -> int:
    if given is not None and not 1 <= given <= most:
        raise CatalogueError(source, where, f"spec.weight: {given} is not between 1 and {most}")
    return given or 0


# -- pools and machines ------------------------------------------------------------------------------------------------


def _completed(shape: Shape, pools: Sequence[Pool]) -> Shape:
    """With what Karpenter knows of any machine: the operating system, on-demand where nothing is said, a zone of those
    that pools name where there is none, and on Amazon's what the name says."""
    labels = dict(shape.labels)
    labels.setdefault(OS, "linux")
    asked = [one for pool in pools for one in pool.requirements]
    if any(one.key.startswith(AWS_LABELS) for one in asked):
        labels = {**aws_labels(shape.name), **labels}
    zones = dict.fromkeys(value for one in asked if one.key == ZONE and one.operator == "In" for value in one.values)
    offers = []
    for offer in shape.offers or (MachineOffer(),):
        offer = changed(offer, capacity_type=offer.capacity_type or ON_DEMAND)
        offers += [offer] if offer.zone or not zones else [changed(offer, zone=zone) for zone in zones]
    return changed(shape, labels=labels, offers=tuple(offers))


def _variants(pool: Pool, keys: set[str], source: str) -> Iterator[Pool]:
    """The pool, once for each choice of those labels that it gives to its nodes."""
    known = keys | pool.labels.keys()
    of_machines: list[PoolRequirement] = []
    own: dict[str, list[PoolRequirement]] = {}
    for i, one in enumerate(pool.requirements):
        if one.key in known or one.matches(None):
            of_machines.append(one)
        elif _is_of_machines(one.key):
            problem = f"{_REQUIREMENTS}[{i}].key: no machine of the catalogue has the label {one.key}"
            raise CatalogueError(source, f"NodePool {pool.name}", problem)
        else:
            own.setdefault(one.key, []).append(one)
    choices = [_values(asked) for asked in own.values()]
    n_variants = 1
    for values in choices:
        n_variants *= len(values)
    if n_variants > _MOST_VARIANTS:
        problem = f"{_REQUIREMENTS}: more than {_MOST_VARIANTS} combinations of labels that no machine has"
        raise CatalogueError(source, f"NodePool {pool.name}", problem)
    for chosen in product(*choices):
        given = {key: value for key, value in zip(own, chosen, strict=True) if value is not None}
        told = ",".join(
            f"{key}={value}"
            for key, value, values in zip(own, chosen, choices, strict=True)
            if value is not None and len(values) > 1
        )
        yield changed(pool, labels={**pool.labels, **given}, requirements=tuple(of_machines), variant=told)


def _values(asked: Sequence[PoolRequirement]) -> list[str | None]:
    """Those that all requirements on a label leave; None where nothing says which: then nodes do not have it."""
    listed = [one for one in asked if one.operator == "In"]
    if not listed:
        return [None]
    return [value for value in listed[0].values if all(one.matches(value) for one in asked)]


def _is_of_machines(key: str) -> bool:
    domain = key.rpartition("/")[0]
    if domain.endswith(_OWN_ALL_THE_SAME):
        return False
    return any(domain == one or domain.endswith(f".{one}") for one in _OF_MACHINES)
