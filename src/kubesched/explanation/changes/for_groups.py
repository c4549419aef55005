"""What would make a pod group fit: more nodes, smaller pods, no topology constraint, a smaller gang.

Each is tried out: the cluster is changed, the group is tried where it came nearest, as its cycle would try it there,
and the cluster is changed back. Of how much is needed (nodes, or how little each pod may request) the smallest step
that helps is found by halving.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from msgspec.structs import replace

from kubesched.explanation.changes.adding import empty_copy, machine_size, taken_by_daemons, unused_names
from kubesched.explanation.changes.opening_for_groups import labelled, labelled_for_topology, openings
from kubesched.explanation.changes.requests import lower_request, reluctance_to_lose
from kubesched.explanation.changes.volumes_of_groups import places_of_volumes
from kubesched.explanation.changes.what_if import ChangeKind, CreateNode, Reluctance, carry_out, patched
from kubesched.explanation.findings.volumes import Place, meets, place_text
from kubesched.explanation.layout import counted, exact_and_readable
from kubesched.framework.groups import GroupCycle, Placement
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.requests import CPU, MEMORY, is_extended
from kubesched.k8s.model.scheduling import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.undo import UndoLog
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.group_trial import GroupTrial
from kubesched.scheduler.engine.placements import generate

_MOST_SHAPES = 4
_MOST_NODES = 128
_MOST_PLACEMENTS = 4
_SHARES = 20
"""In so many steps requests of cpu and bytes are lowered; those of devices by whole ones."""


@dataclass(frozen=True, slots=True)
class GroupChange:
    """With it, the group fits in `placement`, which is empty if it may go anywhere."""

    kind: ChangeKind
    description: str
    """One sentence without a full stop, in the imperative."""
    placement: str
    cost: str
    reluctance: Reluctance

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "description": self.description,
            "placement": self.placement,
            "cost": self.cost,
        }


def changes_for_group(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    group: PodGroup,
    pods: Sequence[PodInfo],
    nearest: Placement,
    n_missing: int,
    lacked: Sequence[str],
    others: Sequence[Placement] = (),
) -> tuple[GroupChange, ...]:
    """The most acceptable first. `nearest` came nearest, and takes all but so many pods, which lack these resources;
    others may have room for the group, and keep it off."""
    what_if = _WhatIf(cluster, scheduler, group, pods, nearest.name)
    found = [
        *(_fewer_per_pod(what_if, resource) for resource in lacked),
        _nodes_for_volumes(what_if, (nearest, *others)) or _more_nodes(what_if, nearest, n_missing),
        _no_topology(what_if),
        _smaller_gang(what_if, n_missing),
        *_openings(what_if, (nearest, *others)),
    ]
    helping = [change for change in found if change is not None]
    return tuple(sorted(helping, key=lambda change: (change.reluctance, change.kind.rank)))


def _openings(what_if: _WhatIf, placements: Sequence[Placement]) -> list[GroupChange]:
    """Of the first placement that has room for the group and can be opened to it."""
    for placement in placements[:_MOST_PLACEMENTS]:
        told = openings(what_if.within(placement.name), placement)
        if found := [GroupChange(kind, text, placement.name, cost, how) for kind, text, cost, how in told]:
            return found
    return []


def changes_without_topology(
    cluster: Cluster, scheduler: ProfileScheduler, group: PodGroup, pods: Sequence[PodInfo]
) -> tuple[GroupChange, ...]:
    """Of a group that wants to be near by a label that no node has."""
    what_if = _WhatIf(cluster, scheduler, group, pods, None)
    found = [_no_topology(what_if)]
    if (told := labelled_for_topology(what_if, group.topology_key, cluster.table.nodes)) is not None:
        kind, text, cost, how = told
        found.append(GroupChange(kind, text, "", cost, how))
    helping = [change for change in found if change is not None]
    return tuple(sorted(helping, key=lambda change: (change.reluctance, change.kind.rank)))


def changes_without_gates(
    cluster: Cluster, scheduler: ProfileScheduler, group: PodGroup, pods: Sequence[PodInfo]
) -> tuple[GroupChange, ...]:
    """Of a group all of whose pods are held back by their scheduling gates."""
    gated = [info for info in pods if info.spec.scheduling_gates]
    if not gated or not _WhatIf(cluster, scheduler, group, pods, None).fits_after(lambda _changes: None):
        return ()
    told = f"remove the scheduling gates of {counted(len(gated), 'pod')}"
    cost = "ask whoever set them: they may wait for something"
    return (GroupChange(ChangeKind.CORRECT, told, "", cost, Reluctance.OTHERS),)


def changes_for_members(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    group: PodGroup,
    pods: Sequence[PodInfo],
    n_there: int,
    allowing: str | None = None,
) -> tuple[GroupChange, ...]:
    """Of a gang that is held back since pods of it do not exist: so many do, of which these have no node; where none
    does, a pod as it would be created. `allowing` lets the others be created, if something keeps them from it; "" if
    nobody knows what would."""
    there = pods if n_there else ()
    n_missing = group.min_count - n_there
    found = []
    copies = [_copy_of(cluster, info, f"more-{number}") for info in pods[:1] for number in range(n_missing)]

    def create(changes: UndoLog) -> None:
        for copy in copies:
            changes.put_pod(copy)

    told = f"create {counted(n_missing, 'more pod')} like {pods[0].name}" if allowing is None else allowing
    if copies and told:
        complete = _WhatIf(cluster, scheduler, group, (*there, *copies), None, create)
        cost = "costs others nothing" if allowing is None else "ask whoever set it"
        if complete.fits_after(lambda _changes: None):
            how = Reluctance.NONE if allowing is None else Reluctance.OTHERS
            found.append(GroupChange(ChangeKind.CORRECT, told, "", f"{cost}; there is room", how))
        elif nodes := _more_nodes(complete, Placement("", cluster.rows_in_order), group.min_count):
            both, paid = f"{told}, and {nodes.description}", nodes.cost if allowing is None else f"{cost}; {nodes.cost}"
            found.append(GroupChange(ChangeKind.COMBINED, both, "", paid, Reluctance.OTHERS))
    if n_there and (smaller := _smaller_gang(_WhatIf(cluster, scheduler, group, there, None), n_missing)) is not None:
        found.append(smaller)
    return tuple(sorted(found, key=lambda change: change.reluctance))


def _copy_of(cluster: Cluster, info: PodInfo, name: str) -> PodInfo:
    metadata = replace(info.pod.metadata, name=f"{info.name}-{name}", uid="")
    return cluster.signatures.info(replace(info.pod, metadata=metadata))


class _WhatIf:
    """Questions about one group on one cluster, in one placement."""

    def __init__(
        self,
        cluster: Cluster,
        scheduler: ProfileScheduler,
        group: PodGroup,
        pods: Sequence[PodInfo],
        placement: str | None,
        first: Callable[[UndoLog], None] | None = None,
    ) -> None:
        """`placement` None: whichever it fits in. `first` comes before each change."""
        self.cluster = cluster
        self.group = group
        self.pods = pods
        self._scheduler = scheduler
        self._within = placement
        self._first = first
        self.placement = placement or ""

    def within(self, placement: str | None) -> _WhatIf:
        return _WhatIf(self.cluster, self._scheduler, self.group, self.pods, placement, self._first)

    def fits_after(self, change: Callable[[UndoLog], None]) -> bool:
        """Whether the group fits then: in the placement, or anywhere if it has no topology any more."""
        changes = UndoLog(self.cluster)
        try:
            if self._first is not None:
                self._first(changes)
            change(changes)
            tried = GroupCycle(self.group.key, [self.cluster.pending[pod.key] for pod in self.pods])
            placements = generate(self.cluster, self._scheduler.profile, tried).placements
            there = [one.rows for one in placements if self._within is None or one.name in (self._within, "")]
            trial = GroupTrial(self.cluster, self._scheduler, 0.0)
            return any(trial.run(tried, tried.pods, within=rows, post_filter=False).status.is_success for rows in there)
        finally:
            changes.revert()

    def fewest(self, most: int, change_by: Callable[[int], Callable[[UndoLog], None]]) -> int | None:
        """The smallest number from 1 with which the group fits; None if the largest is not enough."""
        if most < 1 or not self.fits_after(change_by(most)):
            return None
        return 1 + bisect_left(range(1, most), True, key=lambda step: self.fits_after(change_by(step)))


def _fewer_per_pod(what_if: _WhatIf, resource: str) -> GroupChange | None:
    """Each pod requests less of it, as little less as is enough."""
    largest = max(pod.resources.wanted.get(resource, 0) for pod in what_if.pods)
    n_steps = largest if is_extended(resource) else _SHARES

    def amount(step: int) -> int:
        return largest * (n_steps - step) // n_steps

    def lower_by(step: int) -> Callable[[UndoLog], None]:
        def lower(changes: UndoLog) -> None:
            for pod in what_if.pods:
                operations = lower_request(pod.pod, resource, amount(step))
                if operations:
                    changes.put_pod(what_if.cluster.signatures.info(patched(pod.pod, operations)))

        return lower

    step = what_if.fewest(n_steps - 1, lower_by)
    if step is None:
        return None
    before, after = exact_and_readable(resource, largest), exact_and_readable(resource, amount(step))
    told = f"lower the {resource} request of each pod from {before} to {after}"
    cut = 1 - amount(step) / largest
    cost = f"costs others nothing; each pod gets {cut:.0%} less"
    return GroupChange(ChangeKind.REQUESTS, told, what_if.placement, cost, reluctance_to_lose(cut))


def _nodes_for_volumes(what_if: _WhatIf, placements: Sequence[Placement]) -> GroupChange | None:
    """Nodes where the volumes are, if not all nodes are there: like one that is, or, where none is, with its labels."""
    nodes, key = what_if.cluster.table.nodes, what_if.group.topology_key
    most = max(what_if.group.min_count, 1)
    for place in places_of_volumes(what_if.cluster, what_if.pods):
        is_there = np.array([meets(place, node) for node in nodes], dtype=bool)
        if is_there.all():
            continue
        there = [Placement(one.name, one.rows[is_there[one.rows]]) for one in placements if is_there[one.rows].any()]
        for placement in there[:_MOST_PLACEMENTS]:
            if (found := _more_nodes(what_if.within(placement.name), placement, most, place)) is not None:
                return found
        if not there and (not key or key in dict(place)):
            models = Placement("", what_if.cluster.rows_in_order)
            if (found := _more_nodes(what_if.within(None), models, most, place)) is not None:
                return found
    return None


def _more_nodes(what_if: _WhatIf, models: Placement, n_missing: int, place: Place = ()) -> GroupChange | None:
    """Copies of one of these nodes, in this place: of the kind of which fewest are needed, the smallest of these."""
    cluster = what_if.cluster
    best: tuple[int, int] | None = None
    for row in islice(_shapes(cluster, models), _MOST_SHAPES):
        most = min(n_missing, _MOST_NODES) if best is None else best[0] - 1
        fewest = what_if.fewest(most, partial(_adding, cluster, row, place))
        best = best if fewest is None else (fewest, row)
    if best is None:
        return None
    n, model = best
    nodes = "a node" if n == 1 else f"{n} nodes"
    told = f"add {nodes} like {cluster.table.names[model]} ({machine_size(cluster, model)}{' each' if n > 1 else ''})"
    where = f" with {place_text(place)}, where volumes of the pods are" if place else ""
    cost = f"costs {counted(n, 'more node')}"
    return GroupChange(ChangeKind.ADD_NODE, told + where, what_if.placement, cost, Reluctance.OTHERS)


def _shapes(cluster: Cluster, placement: Placement) -> Iterator[int]:
    """One row for each size of node that the placement has, the smallest first."""
    cpu, memory = cluster.nodes.allocatable(CPU), cluster.nodes.allocatable(MEMORY)
    seen: set[tuple[int, int]] = set()
    for row in sorted(placement.rows.tolist(), key=lambda row: (cpu[row], memory[row], cluster.table.names[row])):
        size = int(cpu[row]), int(memory[row])
        if size not in seen:
            seen.add(size)
            yield row


def _adding(cluster: Cluster, row: int, place: Place, n: int) -> Callable[[UndoLog], None]:
    node, taken = cluster.table.nodes[row], taken_by_daemons(cluster, row)
    model = node if meets(place, node) else labelled(node, {key: values[0] for key, values in place})
    names = list(islice(unused_names(cluster), n))

    def add(changes: UndoLog) -> None:
        for name in names:
            carry_out(CreateNode(empty_copy(model, name), model.name, taken), cluster, changes)

    return add


def _no_topology(what_if: _WhatIf) -> GroupChange | None:
    group = what_if.group
    if not group.topology_key:
        return None
    free = replace(group, spec=replace(group.spec, scheduling_constraints=None))
    if not what_if.fits_after(lambda changes: changes.put_object(free)):
        return None
    told = f"drop the topology constraint on {group.topology_key}"
    cost = "costs others nothing; its pods are not near each other"
    return GroupChange(ChangeKind.RELAX, told, "", cost, Reluctance.MUCH)


def _smaller_gang(what_if: _WhatIf, n_missing: int) -> GroupChange | None:
    """A gang of those who find a node now."""
    group = what_if.group
    size = group.min_count - n_missing
    if size < 1:
        return None
    policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=size))
    smaller = replace(group, spec=replace(group.spec, scheduling_policy=policy))
    if not what_if.fits_after(lambda changes: changes.put_object(smaller)):
        return None
    told = f"lower minCount from {group.min_count} to {size}"
    cost = f"costs others nothing; the gang starts with {counted(n_missing, 'pod')} fewer"
    reluctance = reluctance_to_lose(n_missing / group.min_count)
    return GroupChange(ChangeKind.SMALLER_GANG, told, what_if.placement, cost, reluctance)
