"""A change that would make a pod fit: what it is in a sentence, what it costs, and what exactly would be done.

A change of a pod or a node is written as a JSON patch (RFC 6902, as `kubectl patch --type=json` takes it), once: what
the engine tried out and what the user is given to apply are the same text.

Next: `what_if`, which tries changes out; `search`, which looks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, TypeVar

import msgspec

from kubesched.explanation.layout import exact
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import KubeObject, PodKey

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
