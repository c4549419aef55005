"""The form of what is found behind a rejection: a sentence for people, fields for machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubesched.explanation.amounts import exact, readable

HOSTNAME_LABEL = "kubernetes.io/hostname"


class Finding(Protocol):
    """One fact about one node, in the light of one plugin."""

    @property
    def plugin(self) -> str: ...
    @property
    def text(self) -> str:
        """A sentence without the node's name: nodes of which the same is true share it."""
        ...

    @property
    def distance(self) -> float:
        """How far the node is from being accepted, where that can be said: tells the nearest ones first."""
        ...

    @property
    def reason(self) -> str:
        """Which of the plugin's reasons it stands behind; empty if it has but one."""
        ...

    def to_dict(self) -> dict[str, Any]: ...


class FindingSource(Protocol):
    """Finds what stands behind one plugin's rejections."""

    def of(self, row: int) -> tuple[Finding, ...]: ...


@dataclass(frozen=True, slots=True)
class Fact:
    """A finding that a sentence tells in full."""

    plugin: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    distance: float = 0.0
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"plugin": self.plugin, **self.fields, "text": self.text}


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which a node has not enough free. Milli-cpus, bytes, whole units."""

    plugin: str
    resource: str
    requested: int
    used: int
    allocatable: int
    nominated: int = 0
    """Of `used`, what pods have that are nominated to the node but not there yet."""

    @property
    def free(self) -> int:
        return self.allocatable - self.used

    @property
    def missing(self) -> int:
        return self.requested - self.free

    @property
    def reason(self) -> str:
        return ""

    @property
    def distance(self) -> float:
        """What is missing, as a share of what is requested."""
        return self.missing / max(self.requested, 1)

    @property
    def text(self) -> str:
        requested, free, used, allocatable = (
            readable(self.resource, units) for units in (self.requested, self.free, self.used, self.allocatable)
        )
        by_nominated = f", {readable(self.resource, self.nominated)} of it by nominated pods" if self.nominated else ""
        return f"{self.resource}: requested {requested}, free {free} (used {used} of {allocatable}{by_nominated})"

    def to_dict(self) -> dict[str, Any]:
        amounts = {
            "requested": self.requested,
            "used": self.used,
            "nominated": self.nominated,
            "free": self.free,
            "allocatable": self.allocatable,
            "missing": self.missing,
        }
        printed = {name: exact(self.resource, units) for name, units in amounts.items()}
        return {"plugin": self.plugin, "resource": self.resource, **printed, "text": self.text}


def place_text(topology_key: str, domain: str | None) -> str:
    """A domain in words. A node as its own domain is not named, so that nodes can share the sentence."""
    return "on the node" if topology_key == HOSTNAME_LABEL else f"in {topology_key}={domain}"
