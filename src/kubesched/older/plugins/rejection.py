"""Reasons of old, and what became of several at once: that differed by version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.older.config.generations import Generation


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


class ReasonedFilter(OlderPlugin, ABC):
    """A filter that collects reasons, and leaves it to the version what is said of them."""

    @abstractmethod
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        """The reasons against the node; nothing if it does."""

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return rejection(self.generation, self.reasons(cycle, pod, node))
