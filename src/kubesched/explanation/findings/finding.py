"""The form of what is found behind a rejection: a sentence for people, fields for machines, how near it is to fitting.

`CauseKind` names what stands in the way, `Nearness` says whether that can pass. Resources, which are most often
lacking, are found here. Next: the module of each other plugin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Protocol

from kubesched.explanation.layout import exact, readable
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.requests import PODS, is_extended
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.node_resources_fit.filtering import TOO_MANY_PODS

if TYPE_CHECKING:
    from kubesched.explanation.evidence import Failures

HOSTNAME_LABEL = "kubernetes.io/hostname"
NEAR, FAR = 1.0, 4.0
"""Distances of what has no amounts: a thing that one change undoes, and hardware that would have to be another."""


class Nearness(IntEnum):
    """How near a node is to taking the pod; the nearest first."""

    LACKS = 1
    """Would take it if enough became free there: of an amount, a port, a device, a domain's share of pods."""
    CLOSED = 2
    """Takes no new pods for the moment: cordoned, not ready, about to go."""
    TOO_SMALL = 3
    """Has too little of something even when it is empty."""
    EXCLUDED = 4
    """The pod may not, or cannot, run there, however empty it is."""

    @property
    def word(self) -> str:
        return _WORDS[self]


_WORDS = {
    Nearness.LACKS: "lacks",
    Nearness.CLOSED: "closed",
    Nearness.TOO_SMALL: "too-small",
    Nearness.EXCLUDED: "excluded",
}


class CauseKind(Enum):
    """What keeps a pod from a node, or from all of them."""

    # of nodes
    RESOURCES = "insufficient-resources"
    TOO_LARGE = "too-large"
    NO_SUCH_RESOURCE = "no-such-resource"
    NODE_AFFINITY = "node-affinity"
    TAINT = "taint"
    CORDONED = "cordoned"
    NOT_READY = "not-ready"
    HOST_PORT = "host-port"
    POD_AFFINITY = "pod-affinity"
    POD_ANTI_AFFINITY = "pod-anti-affinity"
    TOPOLOGY_SPREAD = "topology-spread"
    VOLUME_PLACE = "volume-place"
    VOLUME_PROVISIONING = "volume-provisioning"
    STORAGE_CAPACITY = "storage-capacity"
    VOLUME_LIMIT = "volume-limit"
    VOLUME_IN_USE = "volume-in-use"
    DEVICES = "insufficient-devices"
    NO_SUCH_DEVICE = "no-such-device"
    DEVICE_PLACE = "device-place"
    DEVICE_TAINT = "device-taint"
    NOMINATED = "nominated-pods"
    FEATURES = "node-features"
    PLUGIN = "plugin"
    # of the pod as a whole
    GATES = "scheduling-gates"
    POD_GROUP = "pod-group"
    TERMINATING = "terminating"
    FOREIGN_SCHEDULER = "foreign-scheduler"
    MISSING_PRIORITY_CLASS = "missing-priority-class"
    MISSING_RUNTIME_CLASS = "missing-runtime-class"
    CLAIM = "claim"
    DEVICE_CLAIM = "device-claim"
    QUOTA = "quota"
    NO_PODS = "no-pods"
    NO_NODES = "no-nodes"
    WAITS_FOR_EVICTIONS = "waits-for-evictions"
    ERROR = "error"
    REFUSED_CONFIGURATION = "refused-configuration"
    # no obstacle
    FITS = "fits"
    BOUND = "bound"


class Finding(Protocol):
    """One fact about one node, in the light of one plugin."""

    @property
    def plugin(self) -> str: ...
    @property
    def kind(self) -> CauseKind: ...
    @property
    def nearness(self) -> Nearness: ...
    @property
    def text(self) -> str:
        """A sentence without the node's name: nodes of which the same is true share it."""
        ...

    @property
    def shared(self) -> str:
        """What is true of all nodes with such a finding, whatever their numbers and pods are."""
        ...

    @property
    def distance(self) -> float:
        """How far the node is from being accepted: tells the nearest ones first."""
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
    kind: CauseKind = CauseKind.PLUGIN
    nearness: Nearness = Nearness.EXCLUDED
    general: str = ""
    """The text without what differs from node to node, where something does."""

    @property
    def shared(self) -> str:
        return self.general or self.text

    def to_dict(self) -> dict[str, Any]:
        return {"plugin": self.plugin, "kind": self.kind.value, **self.fields, "text": self.text}


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
    instead: str = ""
    """A resource that the node has, and that this one may be a slip for."""

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
    def kind(self) -> CauseKind:
        if self.allocatable >= self.requested:
            return CauseKind.RESOURCES
        return CauseKind.TOO_LARGE if self.allocatable > 0 else CauseKind.NO_SUCH_RESOURCE

    @property
    def nearness(self) -> Nearness:
        if self.allocatable >= self.requested:
            return Nearness.LACKS
        return Nearness.TOO_SMALL if self.allocatable > 0 else Nearness.EXCLUDED

    @property
    def distance(self) -> float:
        """What is missing, as a share of what is requested. A resource that the node does not have at all is far."""
        if self.allocatable <= 0:
            return FAR / 2 if self.instead else FAR
        return self.missing / max(self.requested, 1)

    @property
    def text(self) -> str:
        requested, free, used, allocatable = (
            readable(self.resource, units) for units in (self.requested, self.free, self.used, self.allocatable)
        )
        by_nominated = f", {readable(self.resource, self.nominated)} of it by nominated pods" if self.nominated else ""
        return f"{self.resource}: requested {requested}, free {free} (used {used} of {allocatable}{by_nominated})"

    @property
    def shared(self) -> str:
        requested = readable(self.resource, self.requested)
        match self.nearness:
            case Nearness.LACKS:
                return f"{self.resource}: requested {requested}, not enough free"
            case Nearness.TOO_SMALL:
                return f"{self.resource}: requested {requested}, too small even when empty"
            case _:
                return f"has no {self.resource}" + (f", but {self.instead}" if self.instead else "")

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
        head = {"plugin": self.plugin, "kind": self.kind.value, "resource": self.resource}
        return {**head, **printed, "text": self.text}


def place_text(topology_key: str, domain: str | None) -> str:
    """A domain in words. A node as its own domain is not named, so that nodes can share the sentence."""
    return "on the node" if topology_key == HOSTNAME_LABEL else f"in {topology_key}={domain}"


INSUFFICIENT = "Insufficient "
LIKENESS = 0.88
"""From which share of equal letters on the names of two resources may be the same."""
_NUMBERS = re.compile(r"\d+")


class ResourceShortages:
    """Shortages by row. `lacking` reads the plugin's own reasons, so that what it ignores is not told as missing."""

    def __init__(
        self, cluster: Cluster, pod: PodInfo, failures: Failures, nominated_pods: Mapping[int, Sequence[PodInfo]]
    ) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._nodes = cluster.nodes
        self._wanted = pod.resources.wanted
        self._failures = failures
        self._nominated_pods = nominated_pods
        self._slips: dict[str, str] = {}

    def of(self, row: int) -> tuple[Shortage, ...]:
        for status in self._failures.statuses(row):
            if status.plugin == NodeResourcesFit.name:
                return tuple(self.shortage(row, resource) for resource in lacking(status.reasons))
        return ()

    def shortage(self, row: int, resource: str) -> Shortage:
        nominated_pods = self._nominated_pods.get(row, ())
        if resource == PODS:
            n_pods = int(self._table.pod_counts.data[row]) + len(nominated_pods)
            allowed = int(self._table.allowed_pods.data[row])
            return Shortage(NodeResourcesFit.name, PODS, 1, n_pods, allowed, len(nominated_pods))
        nominated = sum(nominated_pod.resources.requests.get(resource, 0) for nominated_pod in nominated_pods)
        node = self._nodes.at(row)
        allocatable = node.allocatable(resource)
        meant = "" if allocatable else self._meant(resource)
        return Shortage(
            NodeResourcesFit.name,
            resource,
            self._wanted.get(resource, 0),
            node.requested(resource) + nominated,
            allocatable,
            nominated,
            meant if meant and node.allocatable(meant) else "",
        )

    def _meant(self, resource: str) -> str:
        """What a resource that no node has may be a slip for."""
        if resource not in self._slips:
            self._slips[resource] = meant_resource(resource, offered_resources(self._cluster))
        return self._slips[resource]


def offered_resources(cluster: Cluster) -> list[str]:
    """What any node has some of."""
    n_nodes = len(cluster.table.names)
    return sorted(name for name, column in cluster.table.allocatable.items() if column.data[:n_nodes].any())


def meant_resource(resource: str, offered: Sequence[str]) -> str:
    """The extended resource that somebody who wrote this one may have meant; empty if no node lacks it by a slip.

    Names that differ in a number only are different things: `nvidia.com/mig-2g.10gb` is not `nvidia.com/mig-3g.20gb`.
    """
    if resource in offered or not is_extended(resource):
        return ""
    near = [name for name in get_close_matches(resource, offered, 2, LIKENESS) if is_extended(name)]
    same_numbers = [name for name in near if _NUMBERS.findall(name) == _NUMBERS.findall(resource)]
    return same_numbers[0] if same_numbers else ""


def amount_of(pod: PodInfo, resource: str) -> int:
    """What a running pod takes of a resource; of `pods`, one place."""
    return 1 if resource == PODS else pod.resources.requests.get(resource, 0)


def comes_with_node(pod: PodInfo) -> bool:
    """Whether the pod would come back to the node it left: a DaemonSet's, or a static one of the kubelet."""
    owner = controller_of(pod.pod.metadata)
    return owner is not None and owner.kind in ("DaemonSet", "Node")


def lacking(reasons: Sequence[str]) -> list[str]:
    """The resources that NodeResourcesFit's reasons speak of; `pods` for their number."""
    found = [PODS] if TOO_MANY_PODS in reasons else []
    found.extend(reason.removeprefix(INSUFFICIENT) for reason in reasons if reason.startswith(INSUFFICIENT))
    return found
