"""The daemons of nodes that are not there yet: what DaemonSets would put on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from msgspec.structs import replace

from kubesched.k8s.model.apps import DaemonSet
from kubesched.k8s.model.core import Node, Pod, PriorityClass
from kubesched.k8s.model.limits import LimitRange
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.daemon_sets import node_of, tied_to_node
from kubesched.planning.catalogue import Option
from kubesched.planning.new_nodes import node_from_offer, node_name, sample_node
from kubesched.simulator.expansion import expand
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.trial import LoadedWorld, WorldTrial


def daemons_of(objects: Iterable[KubeObject], options: Sequence[Option], seed: int = 0) -> tuple[tuple[Pod, ...], ...]:
    """What the daemon sets among the objects put on a node of each option, by the controller's own rules, admitted as
    an API server would. They are for a node of another name: `daemon_on` gives them the right one."""
    objects = tuple(objects)
    sets = [item for item in objects if isinstance(item, DaemonSet)]
    if not sets:
        return tuple(() for _ in options)
    around = [item for item in objects if isinstance(item, PriorityClass | LimitRange)]
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
    return (*world.workloads, *world.bounds, *world.cluster.objects.priority_classes.values())


def daemon_on(daemon: Pod, node_name: str, suffix: str) -> Pod:
    """The daemon's pod for another node."""
    metadata = replace(daemon.metadata, name=f"{daemon.name[:180]}-{suffix}", uid="")
    return replace(daemon, metadata=metadata, spec=tied_to_node(daemon.spec, node_name))


def join_with_daemons(trial: WorldTrial, option: Option, daemons: Iterable[Pod]) -> Node:
    """A new node of this option, under a name that no node has; its daemons, as `daemons_of` gives them, wait."""
    rows = trial.world.cluster.table.rows
    number = next(number for number in count(1) if node_name(option, number) not in rows)
    node, *others = node_from_offer(option, number)
    assert isinstance(node, Node)
    trial.add_node(node)
    for item in others:
        trial.put_object(item)
    for n, daemon in enumerate(daemons):
        trial.add_admitted(daemon_on(daemon, node.name, f"{node.name}-{n}"))
    return node
