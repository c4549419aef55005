"""What would let more copies fit, and how many more: each remedy is tried out.

Asked are the smallest changes that `kubesched explain` finds for the copy that found no node, and one more node of each
kind that the cluster has. Nodes that come or change are tried with the copies in place. A change of the pod is one of
all copies, which are placed again.

Next: `kubesched.explanation.changes`, which finds the changes; `copies`, which places the copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kubesched.explanation.changes.relaxing import REQUIRED
from kubesched.explanation.changes.requests import lower_request
from kubesched.explanation.changes.what_if import (
    Change,
    ChangeKind,
    PatchOperation,
    PatchPod,
    Proposal,
    Reluctance,
    patched,
    remove,
)
from kubesched.explanation.explain import Explanation
from kubesched.explanation.layout import any_of, readable
from kubesched.framework.pod_info import AffinityTerm
from kubesched.k8s.model.core import Node, Pod, PodSpec
from kubesched.k8s.model.meta import Amount
from kubesched.k8s.model.requests import CPU, MEMORY, pod_resources
from kubesched.planning.capacity_report import Remedy
from kubesched.planning.catalogue import INSTANCE_TYPE, ZONE, Option
from kubesched.planning.catalogue_files import from_nodes
from kubesched.planning.new_nodes import daemon_makers, daemons_of, join_with_daemons
from kubesched.planning.node_groups import group_of
from kubesched.planning.resting_workloads import Replica
from kubesched.simulator.trial import WorldTrial

MOST_MORE = 10_000
"""Copies beyond this are not tried."""
_KINDS_OF_NODES = 6
_AT_OTHERS_COST = (ChangeKind.FREE, ChangeKind.EVICT, ChangeKind.PRIORITY)
_UNITS = {CPU: 1, MEMORY: 1 << 20}
"""What requests are rounded down to: milli-cpus, and bytes."""

MoreCopies = Callable[[WorldTrial, int], int]
"""Places so many more copies in a trial, as far as they fit."""


def explained(trial: WorldTrial, failed: Pod, placed: Counter[str]) -> tuple[Explanation, list[Change]]:
    """Why the copy that found no node found none, and what would change that: changes that cost others nothing but
    money, and leave the pod something of what it asks for. `placed` says how many copies are on which node."""
    key = trial.add_admitted(failed)
    explanation = trial.explain(key)
    found = [one for one in explanation.changes if _is_bearable(one)]
    _ = explanation.groups  # it looks at the cluster as it is now, as the changes do
    terms = explanation.pod.affinity.required_anti
    trial.delete_pod(key)
    known = [one.proposal.actions for one in found]
    others = (*_smaller(trial, failed, placed), *_less_apart(failed, terms))
    return explanation, found + [one for one in others if one.proposal.actions not in known]


def _less_apart(pod: Pod, terms: Sequence[AffinityTerm]) -> Iterator[Change]:
    """Without a term that keeps copies away from each other: for one pod alone that changes nothing, since those that
    are there have it, too."""
    for index, term in enumerate(terms):
        operation = remove("spec", "affinity", "podAntiAffinity", REQUIRED, index)
        told = f"drop the pod anti-affinity term {term.selector or 'any pod'} within {term.topology_key}"
        yield Change(Proposal(ChangeKind.RELAX, told, "", (PatchPod(pod.pod_key, (operation,)),)), "")


def _is_bearable(change: Change) -> bool:
    drastic = change.proposal.is_drastic or change.proposal.reluctance is Reluctance.HARM
    return not drastic and change.kind not in _AT_OTHERS_COST


def _smaller(trial: WorldTrial, pod: Pod, placed: Counter[str]) -> Iterator[Change]:
    """For cpu and memory, the largest request with which one copy more would be on some node that has copies."""
    nodes, rows = trial.world.cluster.nodes, trial.world.cluster.table.rows
    for resource, unit in _UNITS.items():
        asked = pod_resources(pod).requests.get(resource, 0)
        free = nodes.allocatable(resource) - nodes.requested(resource)
        best = (
            max(((int(free[rows[name]]) + n * asked) // (n + 1) // unit * unit, name) for name, n in placed.items())
            if placed
            else (0, "")
        )
        operations = lower_request(pod, resource, best[0]) if asked / 2 < best[0] < asked else None
        if operations:
            told = f"lower the {resource} request from {readable(resource, asked)} to {readable(resource, best[0])}"
            proposal = Proposal(ChangeKind.REQUESTS, told, best[1], (PatchPod(pod.pod_key, operations),))
            yield Change(proposal, best[1])


def of_nodes(trial: WorldTrial, changes: Sequence[Change], closed: Collection[str], more: MoreCopies) -> list[Remedy]:
    """Of the changes that leave the pod as it is, and of one more node; nodes that are closed on purpose stay so."""
    found = list(_of_one_more_node(trial, closed, more))
    has_node = any(one.more for one in found)
    for change in changes:
        if _operations(change) or change.node in closed or (has_node and change.kind is ChangeKind.ADD_NODE):
            continue
        with trial.trial() as inner:
            inner.carry_out(change.proposal.actions)
            found.append(tried(change.description, more(inner, MOST_MORE)))
    return found


def of_pod(changes: Sequence[Change], fits: int, fitting: Callable[[Change], int]) -> list[Remedy]:
    """Of the changes of the pod: how many copies fit with each from the start."""
    return [tried(change.description, fitting(change) - fits) for change in changes if _operations(change)]


def best_first(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    return tuple(sorted((one for one in remedies if one.more > 0), key=lambda one: -one.more))


def changed_replicas(replicas: Iterator[Replica], change: Change) -> Iterator[Replica]:
    """As they would be with the change."""
    operations = _operations(change)
    known: tuple[PodSpec | None, PodSpec | None] = None, None
    for replica in replicas:
        pod = replica.pod
        if known[0] is not pod.spec:
            known = pod.spec, patched(pod, operations).spec
        assert known[1] is not None
        yield Replica(replace(pod, spec=known[1]), replica.claims)


def _operations(change: Change) -> list[PatchOperation]:
    actions = change.proposal.actions
    return [one for action in actions if isinstance(action, PatchPod) for one in action.operations]


def tried(description: str, n_more: int) -> Remedy:
    return Remedy(description, n_more, n_more >= MOST_MORE)


# -- one more node -----------------------------------------------------------------------------------------------------


def _of_one_more_node(trial: WorldTrial, closed: Collection[str], more: MoreCopies) -> Iterator[Remedy]:
    """Kinds that differ in nothing but the zone, and bring the same, are told together."""
    models = [node for node in trial.world.cluster.table.nodes if node.name not in closed]
    zones: dict[tuple[str, int], list[str]] = {}
    options = _kinds_of_nodes(models)
    for option, daemons in zip(options, daemons_of(daemon_makers(trial.world), options), strict=True):
        with trial.trial() as inner:
            node = join_with_daemons(inner, option, daemons)
            inner.settle()
            kind = _told(option, node)
            zones.setdefault((kind, more(inner, MOST_MORE)), []).append(option.offer.zone)
    for (kind, n_more), names in zones.items():
        where = any_of(sorted(filter(None, names)))
        yield tried(f"add a node{f' in zone {where}' if where else ''}{kind}", n_more)


def _kinds_of_nodes(nodes: Sequence[Node]) -> list[Option]:
    """Those that there are most of."""
    known = [node for node in nodes if node.status.allocatable]
    numbers = Counter((_amounts(node.status.allocatable or {}), node.labels.get(ZONE, "")) for node in known)
    options = list(from_nodes(known).options())
    options.sort(key=lambda option: -numbers[_amounts(option.shape.allocatable), option.offer.zone])
    return options[:_KINDS_OF_NODES]


def _amounts(allocatable: Mapping[str, Amount]) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(amount)) for name, amount in allocatable.items())


def _told(option: Option, node: Node) -> str:
    """Which kind of node it is, but for the zone."""
    pool, amounts = group_of(node, "pool"), option.shape.allocatable
    size = [f"{amounts[name]} {name}" for name in (CPU, MEMORY) if name in amounts]
    kind = option.shape.labels.get(INSTANCE_TYPE, "")
    return f"{f' of pool {pool}' if pool else ''} ({', '.join(filter(None, (kind, *size)))})"
