"""The node that a bought machine becomes, and its daemons: what DaemonSets would put on a node that is not there yet.

This is the one place where an offer turns into objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.apps import DaemonSet
from kubesched.k8s.model.core import Node, NodeCondition, NodeSpec, NodeStatus, Pod, PriorityClass, RuntimeClass
from kubesched.k8s.model.limits import LimitRange
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.resource import ResourcePool, ResourceSlice
from kubesched.k8s.model.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from kubesched.k8s.workloads.daemon_sets import node_of, tied_to_node
from kubesched.planning.catalogue import Option
from kubesched.simulator.expansion import expand
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.trial import LoadedWorld, WorldTrial

HOSTNAME = "kubernetes.io/hostname"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]+")
_LONGEST_STEM = 200
_VERSIONS = {"Node": "v1", "CSINode": "storage.k8s.io/v1", "ResourceSlice": "resource.k8s.io/v1"}


def node_name(option: Option, number: int) -> str:
    stem = "-".join(part for part in ("new", *option.name.lower().split("/")) if part)
    return f"{_NOT_IN_NAMES.sub('-', stem)[:_LONGEST_STEM].strip('-.')}-{number}"


def node_from_offer(option: Option, number: int) -> list[KubeObject]:
    """A ready node of this option, and what its drivers publish: a CSINode if the shape limits volumes, slices of its
    devices. Start-up taints are gone by the time that pods are placed, so a new node has none."""
    return _ready_node(option, node_name(option, number))


def node_for_trial(option: Option, name: str = "") -> Node:
    """The node alone, under this name or the first that a bought one would have."""
    node = _ready_node(option, name or node_name(option, 1))[0]
    assert isinstance(node, Node)
    return node


def sample_node(option: Option, number: int) -> list[KubeObject]:
    """A node of an option to ask about, under a name that no other node has."""
    return _ready_node(option, f"{node_name(option, number)}-sample-{number}")


def _ready_node(option: Option, name: str) -> list[KubeObject]:
    node = Node(
        metadata=ObjectMeta(name=name, labels={**option.labels, HOSTNAME: name}),
        spec=NodeSpec(taints=option.taints or None),
        status=NodeStatus(
            allocatable=dict(option.shape.allocatable),
            capacity=dict(option.shape.capacity),
            conditions=(NodeCondition("Ready", "True"),),
        ),
    )
    slices = [_published(option, name, number) for number in range(len(option.shape.devices))]
    if not option.shape.volume_limits:
        return [node, *slices]
    drivers = tuple(
        CSINodeDriver(name=driver, node_id=name, allocatable=VolumeNodeResources(count=most))
        for driver, most in sorted(option.shape.volume_limits.items())
    )
    return [node, CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers)), *slices]


def _published(option: Option, name: str, number: int) -> ResourceSlice:
    """All slices of a driver on a node are one pool, named after the node."""
    spec = option.shape.devices[number]
    n_slices = sum(one.driver == spec.driver for one in option.shape.devices)
    pool = ResourcePool(name=name, generation=1, resource_slice_count=n_slices)
    return ResourceSlice(ObjectMeta(f"{name}-{spec.driver}-{number}"), replace(spec, pool=pool, node_name=name))


def manifest_of(item: KubeObject) -> dict[str, Any]:
    """A new node, or what comes with it, as a manifest to create it by."""
    kind = type(item).__name__
    record = {"apiVersion": _VERSIONS[kind], "kind": kind, **msgspec.json.decode(msgspec.json.encode(item))}
    if isinstance(item, ResourceSlice):  # an API server wants it said, even if there is one
        record["spec"]["pool"]["resourceSliceCount"] = item.spec.pool.resource_slice_count
    return record


def daemons_of(objects: Iterable[KubeObject], options: Sequence[Option], seed: int = 0) -> tuple[tuple[Pod, ...], ...]:
    """What the daemon sets among the objects put on a node of each option, by the controller's own rules, admitted as
    an API server would. They are for a node of another name: `daemon_on` gives them the right one."""
    objects = tuple(objects)
    sets = [item for item in objects if isinstance(item, DaemonSet)]
    if not sets:
        return tuple(() for _ in options)
    around = [item for item in objects if isinstance(item, PriorityClass | RuntimeClass | LimitRange)]
    samples = [sample_node(option, number) for number, option in enumerate(options)]
    nodes = [item for sample in samples for item in sample if isinstance(item, Node)]
    found = expand(SimulationInput((*around, *nodes, *sets), ()), seed)
    by_node: dict[str, list[Pod]] = {}
    for item in found.objects:
        if isinstance(item, Pod):
            by_node.setdefault(node_of(item), []).append(item)
    return tuple(tuple(by_node.get(node.name, ())) for node in nodes)


def daemon_makers(world: LoadedWorld) -> tuple[KubeObject, ...]:
    """What decides about the daemons of a loaded cluster: `objects` of `daemons_of`."""
    objects = world.cluster.objects
    return (*world.workloads, *world.bounds, *objects.priority_classes.values(), *objects.runtime_classes.values())


def daemon_on(daemon: Pod, node_name: str, suffix: str) -> Pod:
    """The daemon's pod for another node."""
    metadata = replace(daemon.metadata, name=f"{daemon.name[:180]}-{suffix}", uid="")
    return replace(daemon, metadata=metadata, spec=tied_to_node(daemon.spec, node_name))


def join_with_daemons(trial: WorldTrial, option: Option, daemons: Iterable[Pod]) -> Node:
    """A new node of this option, under a name that no node has; its daemons, as `daemons_of` gives them, wait."""
    rows = trial.world.cluster.table.rows
    number = next(number for number in count(1) if node_name(option, number) not in rows)
    return join_as(trial, node_from_offer(option, number), daemons)


def join_as(trial: WorldTrial, made: Sequence[KubeObject], daemons: Iterable[Pod]) -> Node:
    """The same for a node that `node_from_offer` has made."""
    node, *others = made
    assert isinstance(node, Node)
    trial.add_node(node)
    for item in others:
        trial.put_object(item)
    for n, daemon in enumerate(daemons):
        trial.add_admitted(daemon_on(daemon, node.name, f"{node.name}-{n}"))
    return node
