"""Which nodes a daemon belongs on, and how a pod is tied to one of them.

Next: `daemon_sets`, which keeps one daemon on each.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, CompiledNodeSelector, Selector
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE, find_untolerated

_TOLERATED: tuple[tuple[str, str], ...] = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
"""Taints (key, effect) that a daemon puts up with for good."""

_NETWORK_UNAVAILABLE = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def with_daemon_tolerations(spec: PodSpec) -> PodSpec:
    wanted = (*_TOLERATED, _NETWORK_UNAVAILABLE) if spec.host_network else _TOLERATED
    added = tuple(Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted)
    known = tuple(toleration for toleration in spec.tolerations or () if toleration not in added)
    return replace(spec, tolerations=(*known, *added))


@dataclass(frozen=True, slots=True)
class DaemonRules:
    """What a daemon's spec says about nodes, compiled once for all of them."""

    node_name: str
    labels: Selector
    affinity: CompiledNodeSelector | None
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, spec: PodSpec) -> DaemonRules:
        required = _required(spec)
        return cls(
            node_name=spec.node_name,
            labels=selectors.from_labels(spec.node_selector),
            affinity=None if required is None else selectors.from_node_selector(required),
            tolerations=spec.tolerations or (),
        )

    def should_run_on(self, node: Node) -> bool:
        return self._is_meant_for(node) and find_untolerated(node.spec.taints or (), self.tolerations) is None

    def may_stay_on(self, node: Node) -> bool:
        """A daemon that runs leaves only for a taint that drives pods out, or when the node is not meant at all."""
        drives_out = find_untolerated(node.spec.taints or (), self.tolerations, (NO_EXECUTE,)) is not None
        return self._is_meant_for(node) and not drives_out

    def _is_meant_for(self, node: Node) -> bool:
        if self.node_name and self.node_name != node.name:
            return False
        return self.labels.matches(node.labels) and (self.affinity is None or self.affinity.matches(node))


def tied_to_node(spec: PodSpec, node_name: str) -> PodSpec:
    """The node's name takes the place of all that was required of a node before."""
    affinity = spec.affinity or Affinity()
    field = NodeSelectorRequirement(NODE_NAME_FIELD, "In", (node_name,))
    required = NodeSelector((NodeSelectorTerm(match_fields=(field,)),))
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=required
    )
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))


def node_of(pod: Pod) -> str:
    """Where a daemon runs, or is to run."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = _required(pod.spec)
    for term in () if required is None else required.node_selector_terms:
        for field in term.match_fields or ():
            if field.key == NODE_NAME_FIELD and field.values:
                return field.values[0]
    return ""


def _required(spec: PodSpec) -> NodeSelector | None:
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    return None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
