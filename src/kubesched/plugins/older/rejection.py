"""Reasons of old, and what became of several at once: that differed by version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubesched.config.older.generations import Generation
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import EVERY_CHANGE, EventResource, Hint, RegisteredEvent
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.model.core import Pod
from kubesched.model.meta import ObjectMeta


class Reason(NamedTuple):
    text: str
    is_resolvable: bool = True
    """Whether evicting pods could change it."""


def unresolvable(text: str) -> Reason:
    return Reason(text, is_resolvable=False)


def rejection(generation: Generation, reasons: Sequence[Reason]) -> Status:
    """OK without reasons. Where a version tells one reason only, it is the first that no eviction removes."""
    if not reasons:
        return OK
    final = [reason for reason in reasons if not reason.is_resolvable]
    told = (final or list(reasons))[:1] if generation.one_reason_per_node else reasons
    texts = tuple(reason.text for reason in told)
    return Status.unresolvable(*texts) if final else Status.unschedulable(*texts)


def _unless_own_status(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """A pod that waits was tried again when its metadata or its spec had changed."""
    if not isinstance(old, Pod) or not isinstance(new, Pod) or new.metadata.uid != pod.uid:
        return Hint.QUEUE
    return Hint.SKIP if new.spec == old.spec and _lasting(new) == _lasting(old) else Hint.QUEUE


def _lasting(pod: Pod) -> ObjectMeta:
    """The metadata without what changes with every write."""
    return replace(pod.metadata, resource_version="", generation=0)


EVERY_CHANGE_BUT_OWN_STATUS: tuple[RegisteredEvent, ...] = tuple(
    RegisteredEvent(entry.event, _unless_own_status) if entry.event.resource is EventResource.POD else entry
    for entry in EVERY_CHANGE
)
"""What could bring a pod back: whatever happened, but for what was written into its own status."""


class OlderPlugin:
    """What all of them are built with. `name` is the one of the version, or of the Policy."""

    def __init__(self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation) -> None:
        self._name = name
        self.args = args
        self.handle = handle
        self.generation = generation

    @property
    def name(self) -> str:
        return self._name

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return EVERY_CHANGE_BUT_OWN_STATUS


class ReasonedFilter(OlderPlugin, ABC):
    """A filter that collects reasons, and leaves it to the version what is told of them."""

    @abstractmethod
    def reasons(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        """What speaks against the node; nothing if it does."""

    def filter_node(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return rejection(self.generation, self.reasons(cycle, pod, node))
