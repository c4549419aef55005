"""A change that would make a pod fit: what it is in a sentence, what it costs, what would be done; and trying it out.

A change of a pod or a node is written as a JSON patch (RFC 6902, as `kubectl patch --type=json` takes it), once: what
the engine tried out and what the user is given to apply are the same text.

The engine is asked on the changed pod and the changed cluster, which is taken back as trials are. A trial asks only
whether and where the pod fits: its scheduler has the same plugins up to Filter, and none after it. What a search knows
beforehand (the pod, the cluster, every reason against each node) is a Situation.

Next: `search`, which looks for changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from itertools import islice
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np

from kubesched.explanation.evidence import Failures
from kubesched.explanation.layout import exact
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import node_units
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.undo import UndoLog
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint

Object = TypeVar("Object", bound=KubeObject)

APPEND = "-"
"""As the last part of a path: the end of a list."""


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """`add` sets a field or inserts into a list, `remove` takes a field or an entry away."""

    op: str
    path: tuple[str | int, ...]
    value: Any = None

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer."""
        return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in self.path)

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"op": self.op, "path": self.pointer}
        return record if self.op == "remove" else {**record, "value": self.value}


def put(*path: str | int, value: Any) -> PatchOperation:
    return PatchOperation("add", path, value)


def remove(*path: str | int) -> PatchOperation:
    return PatchOperation("remove", path)


def append(entries: Iterable[Any], *path: str | int, has_list: bool) -> list[PatchOperation]:
    """Puts entries at the end of a list that may not be there yet."""
    values = list(entries)
    if not has_list:
        return [put(*path, value=values)]
    return [put(*path, APPEND, value=value) for value in values]


def patched(item: Object, operations: Iterable[PatchOperation]) -> Object:
    """The object with all operations applied in turn."""
    document = msgspec.json.decode(msgspec.json.encode(item))
    for operation in operations:
        _apply(document, operation)
    return msgspec.convert(document, type(item))


def _apply(document: Any, operation: PatchOperation) -> None:
    *above, last = operation.path
    place = document
    for part in above:
        if isinstance(place, dict) and part not in place and operation.op == "add":
            place[part] = {}
        place = place[part]
    if operation.op == "remove":
        del place[last]
    elif isinstance(place, dict):
        place[last] = deepcopy(operation.value)
    else:
        place.insert(len(place) if last == APPEND else last, deepcopy(operation.value))


class Reluctance(IntEnum):
    """How unwilling the pod's owner, or others, would be. The last is never proposed first if there is another way."""

    NONE = 0
    """Nobody gives anything up: a slip is corrected, a right is used."""
    LITTLE = 1
    """The pod gives up a little."""
    OTHERS = 2
    """Others help: they move, they open a node, they pay for one."""
    MUCH = 3
    """The pod gives up much of what it asked for."""
    HARM = 4
    """Others are harmed, or the pod is left without what it needs."""
    LAST = 5
    """Undoes what somebody decided on purpose: a taint, an architecture, whose priority counts."""


class ChangeKind(Enum):
    """In the order of preference among changes that are as acceptable."""

    CORRECT = "correct"
    EVICT = "evict"
    SPREAD = "raise-max-skew"
    REQUESTS = "lower-requests"
    UNCORDON = "uncordon"
    FREE = "free"
    LABEL_NODE = "label-node"
    ADD_NODE = "add-node"
    RELAX = "relax"
    MOVE_VOLUMES = "move-volumes"
    COMBINED = "combined"
    TOLERATE = "tolerate"
    PRIORITY = "raise-priority"
    SMALLER_GANG = "lower-min-count"

    @property
    def rank(self) -> int:
        return list(ChangeKind).index(self)


# -- what would be done ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PatchPod:
    """The pending pod's manifest, changed."""

    pod: PodKey
    operations: tuple[PatchOperation, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"action": "patch", "kind": "Pod", "name": self.pod, "patch": [o.to_dict() for o in self.operations]}


@dataclass(frozen=True, slots=True)
class PatchNode:
    node: str
    operations: tuple[PatchOperation, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"action": "patch", "kind": "Node", "name": self.node, "patch": [o.to_dict() for o in self.operations]}


@dataclass(frozen=True, slots=True)
class FreeOnNode:
    """So much less is used on a node. Milli-cpus, bytes, whole units; `pods` counts pods."""

    node: str
    amounts: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        printed = {resource: exact(resource, units) for resource, units in self.amounts.items()}
        return {"action": "free", "kind": "Node", "name": self.node, "amounts": printed}


@dataclass(frozen=True, slots=True)
class DeletePods:
    node: str
    pods: tuple[PodKey, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"action": "delete", "kind": "Pod", "names": list(self.pods)}


@dataclass(frozen=True, slots=True)
class CreateNode:
    """A new node, a copy of another, on which only those pods run that come with every such node."""

    manifest: Node
    like: str
    taken: Mapping[str, int] = field(default_factory=dict)
    """What these pods take. Milli-cpus, bytes, whole units; `pods` counts them."""

    def to_dict(self) -> dict[str, Any]:
        return {"action": "create", "kind": "Node", "name": self.manifest.name, "like": self.like}


Action = PatchPod | PatchNode | FreeOnNode | DeletePods | CreateNode


# -- the change --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that may help on a node; whether it does has not been tried."""

    kind: ChangeKind
    description: str
    """One sentence without a full stop, in the imperative."""
    node: str
    actions: tuple[Action, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    n_edits: int = 1
    """How many single things change: one toleration, one request, one label, one pod, one node."""
    cost: float = 0.0
    """Tells changes of the same kind and number of edits apart, the smaller the better."""
    reluctance: Reluctance = Reluctance.OTHERS
    cost_to_others: str = ""
    """Who pays what for it, in a few words."""
    is_drastic: bool = False
    """Leaves nothing of something that was asked for; such a change is told last."""

    @property
    def burden(self) -> int:
        """Who pays: 0 if only settings of the pod or a node change, 1 if other pods must give way, 2 for hardware."""
        if any(isinstance(action, CreateNode) for action in self.actions):
            return 2
        takes_place = any(isinstance(action, FreeOnNode | DeletePods) for action in self.actions)
        return int(takes_place or self.kind is ChangeKind.PRIORITY)

    @property
    def acceptance(self) -> tuple[bool, int, int, int, float, str]:
        """What people accept most easily sorts first."""
        return self.is_drastic, self.reluctance, self.kind.rank, self.n_edits, self.cost, self.node

    @property
    def size(self) -> tuple[bool, int, int, int, float, str]:
        """Smaller proposals sort first: by who pays, number of edits, kind, cost."""
        return self.is_drastic, self.burden, self.n_edits, self.kind.rank, self.cost, self.node


@dataclass(frozen=True, slots=True, repr=False)
class Change:
    """A proposal that was tried out: with its actions done, the engine finds that the pod fits on `node` (after the
    evictions that a raised priority entitles it to)."""

    proposal: Proposal
    node: str

    def __repr__(self) -> str:
        return f"<Change: {self.description} -> {self.node}>"

    @property
    def kind(self) -> ChangeKind:
        return self.proposal.kind

    @property
    def description(self) -> str:
        return self.proposal.description

    @property
    def cost(self) -> str:
        """What it costs, and whom."""
        return self.proposal.cost_to_others

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "description": self.description,
            "node": self.node,
            "cost": self.cost,
            **self.proposal.details,
            "actions": [action.to_dict() for action in self.proposal.actions],
        }


TRIES = 6
"""How many proposals of a kind are tried, smallest first, before the search gives up on that kind."""

_ALL_NODES = 100


class WhatIf:
    """Questions about one pod on one cluster."""

    def __init__(self, cluster: Cluster, scheduler: ProfileScheduler, pod: PodInfo) -> None:
        self.cluster = cluster
        self.pod = pod
        filters_only = replace(scheduler.profile, post_filter=[], pre_score=[], score=[])
        self._trial = ProfileScheduler(cluster, filters_only, ByName(), _ALL_NODES)

    def fits_on(self, actions: Iterable[Action]) -> tuple[str, ...]:
        """The nodes on which the pod would fit after these actions, by name; none if a plugin breaks."""
        with self._after(actions) as pod:
            decision = self._trial.decide(pod, complete=True)
            if decision.error or decision.filtered is None:
                return ()
            names = decision.filtered.nodes.names
            return tuple(sorted(names[position] for position in np.flatnonzero(decision.filtered.fits).tolist()))

    def first_that_helps(self, proposals: Iterable[Proposal], n_most: int = TRIES) -> Change | None:
        """The first of at most so many proposals after which the pod fits."""
        for proposal in islice(proposals, n_most):
            nodes = self.fits_on(proposal.actions)
            if nodes:
                return Change(proposal, proposal.node if proposal.node in nodes else nodes[0])
        return None

    @contextmanager
    def _after(self, actions: Iterable[Action]) -> Iterator[PodInfo]:
        """The changed pod, and for as long, the changed cluster."""
        changes = UndoLog(self.cluster)
        operations: list[PatchOperation] = []
        try:
            for action in actions:
                if isinstance(action, PatchPod):
                    operations.extend(action.operations)
                else:
                    carry_out(action, self.cluster, changes)
            yield self._changed_pod(operations)
        finally:
            changes.revert()

    def _changed_pod(self, operations: Sequence[PatchOperation]) -> PodInfo:
        if not operations:
            return self.pod
        return self.cluster.signatures.info(patched(self.pod.pod, operations))


def carry_out(action: PatchNode | FreeOnNode | DeletePods | CreateNode, cluster: Cluster, changes: UndoLog) -> None:
    """Does it, such that it can be taken back."""
    match action:
        case PatchNode(name, operations):
            changes.put_node(patched(cluster.table.nodes[cluster.table.rows[name]], operations))
        case FreeOnNode(name, amounts):
            changes.put_node(_with_more(cluster.table.nodes[cluster.table.rows[name]], dict(amounts)))
        case DeletePods(_, keys):
            for key in keys:
                changes.remove_pod(key)
        case CreateNode(manifest, taken=taken):
            changes.put_node(_with_more(manifest, {resource: -units for resource, units in taken.items()}))


def _with_more(node: Node, amounts: dict[str, int]) -> Node:
    """To a filter, less used and more allocatable are the same: as much more is free."""
    units = node_units(node.status.allocatable, "status.allocatable")
    operations = [
        put("status", "allocatable", resource, value=exact(resource, units.get(resource, 0) + more))
        for resource, more in amounts.items()
    ]
    return patched(node, operations)


@dataclass(frozen=True, slots=True)
class Situation:
    """A pod that fits nowhere."""

    cluster: Cluster
    scheduler: ProfileScheduler
    pod: PodInfo
    decision: Decision
    failures: Failures
    nominated_pods: Mapping[int, Sequence[PodInfo]]
    """Pods nominated to a row that this one must not overtake."""
    spread_constraints: Sequence[SpreadConstraint]
    what_if: WhatIf

    def name(self, row: int) -> str:
        return self.cluster.table.names[row]


# -- of pod groups -----------------------------------------------------------------------------------------------------


Opening = tuple[ChangeKind, str, str, Reluctance]
"""(kind, what to do, what it costs, how reluctantly)"""


class GroupWhatIf(Protocol):
    """Questions about one group, in the placement where it came nearest."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def pods(self) -> Sequence[PodInfo]: ...
    def fits_after(self, change: Callable[[UndoLog], None]) -> bool: ...
    def fewest(self, most: int, change_by: Callable[[int], Callable[[UndoLog], None]]) -> int | None: ...
