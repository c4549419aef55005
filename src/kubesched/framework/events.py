"""Cluster events, and which of them may make a rejected pod schedulable.

A plugin that rejects pods lists the events that can undo its rejection, each with an optional hint: a function that
looks at the changed object and says whether this pod should be tried again.

Plugins register events of `POD`; whether the pod is assigned or still unscheduled, only events that happen tell.

Next: `kubesched.scheduler.queue.changes` tells which events a changed object makes, `kubesched.scheduler.queue` what
follows from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from enum import Enum, Flag, auto

from kubesched.framework.pod_info import PodInfo


class EventResource(Enum):
    """What changed. The values are part of the events' labels in metrics."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    COMPOSITE_POD_GROUP = "scheduling.k8s.io/CompositePodGroup"
    WILDCARD = "*"


class ActionType(Flag):
    """What happened to the object. `UPDATE` is any change that has no more specific name, or all of them."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    UPDATE_OTHER = auto()
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


_POD_RESOURCES = frozenset({EventResource.POD, EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD})


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    resource: EventResource
    action: ActionType
    custom_label: str = ""
    """Stands in for the label of an event that is none of an object."""
    label: str = field(init=False, repr=False, compare=False)
    """The event's name in metrics, such as `NodeUpdateNodeTaint`."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = (self.action.name or "").split("_")
        label = self.custom_label or self.resource.value + "".join(word.capitalize() for word in words)
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "_hash", hash((self.resource, self.action, self.custom_label)))

    def __hash__(self) -> int:
        """Looked up for every change of an object: worked out once."""
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        """Another process has other hashes."""
        return ClusterEvent, (self.resource, self.action, self.custom_label)

    @property
    def is_wildcard(self) -> bool:
        """Stands for whatever may happen: moves every pod, whichever plugin rejected it."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Whether what happened is this event or a special case of it. `UPDATE`, when it happens, is a change that has
        no more specific name: no special case of anything but `UPDATE`."""
        if self.is_wildcard:
            return True
        same_resource = (
            self.resource is EventResource.WILDCARD
            or self.resource is incoming.resource
            or (self.resource is EventResource.POD and incoming.resource in _POD_RESOURCES)
        )
        return same_resource and bool(incoming.action) and incoming.action in self.action


ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_UPDATE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULED_POD_ADD = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULED_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE)
UNSCHEDULED_POD_DELETE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
"""A pod was unschedulable for so long that it is tried again without a reason."""
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")
"""A plugin wants a pod tried again."""
PLUGINS_RELOADED = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "PluginsReloaded")
"""Plugins were replaced by others of the same name, who may see things differently."""


class Hint(Enum):
    """Whether an event is worth another attempt for a pod."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


HintFunction = Callable[[PodInfo, object | None, object | None], Hint]
"""(rejected pod, old object, new object) -> hint. The old one is None for an addition, the new one for a deletion."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """What a hint looks for in a change, so that it need not be asked about every pod that waits. Where a pod and a
    change have no subject in common, and the pod is not the changed object itself, the hint says SKIP.

    A subject is anything that can be compared: a label, a name. None stands for any subject: such a pod, or such a
    change, is always asked about. For hints that are asked by signature: a pod's subjects are its signature's."""

    of_pod: Callable[[PodInfo], Collection[Hashable] | None]
    of_change: Callable[[object | None, object | None], Collection[Hashable] | None]


@dataclass(frozen=True, slots=True)
class RegisteredEvent:
    """An event that may undo a plugin's rejection; without a hint, every such event does."""

    event: ClusterEvent
    hint: HintFunction | None = None
    by_signature: bool = False
    """Of a pod that is not itself the changed object, the hint looks at nothing but what pods with the same signature
    share, and at the node that it is pinned to: it may be asked once for all of them."""
    subjects: Subjects | None = None
    """Which pods it need not be asked about."""


EVERY_CHANGE: tuple[RegisteredEvent, ...] = tuple(
    RegisteredEvent(ClusterEvent(resource, ActionType.ALL))
    for resource in (
        EventResource.POD,
        EventResource.NODE,
        EventResource.PERSISTENT_VOLUME,
        EventResource.PERSISTENT_VOLUME_CLAIM,
        EventResource.CSI_NODE,
        EventResource.CSI_DRIVER,
        EventResource.CSI_STORAGE_CAPACITY,
        EventResource.STORAGE_CLASS,
        EventResource.RESOURCE_CLAIM,
        EventResource.DEVICE_CLASS,
    )
)
"""What counts for a plugin that does not say which events could undo its rejections: a plugin without
`events_to_register`, or an extender."""
