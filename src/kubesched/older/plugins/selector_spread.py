"""SelectorSpread: pods of one service or controller are spread over nodes, and even more over zones.

Which services and controllers select a pod is what spreading went by, before pods had constraints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Objects
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import Scores
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, Service
from kubesched.k8s.model.meta import LabelSelector
from kubesched.k8s.model.selectors import Selector, SelectorError, from_label_selector, from_labels
from kubesched.older.config.generations import Generation
from kubesched.older.plugins.rejection import OlderPlugin


def services_of(pod: Pod, objects: Objects) -> list[Service]:
    """Services that select the pod, by name. One without a selector selects nothing, one with an empty selector
    everything."""
    found = (service for service in objects.services.values() if service.namespace == pod.namespace)
    selecting = [s for s in found if s.spec.selector is not None and from_labels(s.spec.selector).matches(pod.labels)]
    return sorted(selecting, key=lambda service: service.name)


def controller_selectors(pod: Pod, objects: Objects) -> Iterator[Selector]:
    """Of the replication controllers, replica sets and stateful sets that select the pod, whoever owns it."""
    if not pod.labels:
        return
    for controller in objects.replication_controllers.values():
        selector = from_labels(controller.spec.selector)
        if controller.namespace == pod.namespace and selector.requirements and selector.matches(pod.labels):
            yield selector
    owners: list[ReplicaSet | StatefulSet] = [*objects.replica_sets.values(), *objects.stateful_sets.values()]
    for owner in owners:
        if owner.namespace == pod.namespace:
            found = _compiled(owner.spec.selector)
            if found is not None and found.requirements and found.matches(pod.labels):
                yield found


def each_selector(pod: Pod, objects: Objects) -> Iterator[Selector]:
    """Those of the services, and of the controllers, that select the pod."""
    for service in services_of(pod, objects):
        yield from_labels(service.spec.selector)
    yield from controller_selectors(pod, objects)


def joined_selector(pod: Pod, objects: Objects) -> Selector:
    """What all of them ask for at once; everything if there is none."""
    labels: dict[str, str] = {}
    for service in services_of(pod, objects):
        labels |= service.spec.selector or {}
    requirements = list(from_labels(labels).requirements)
    for selector in controller_selectors(pod, objects):
        requirements.extend(selector.requirements)
    return Selector(tuple(dict.fromkeys(requirements)))


def _compiled(selector: LabelSelector | None) -> Selector | None:
    try:
        return from_label_selector(selector)
    except SelectorError:
        return None


_ZONE_SHARE = 2.0 / 3.0
"""How much of a score the zone makes up."""

_BETA = ("failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone")
_STABLE = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


@dataclass(slots=True)
class SpreadSelectors:
    """Empty for a pod that nobody selects. A pod that one of several matches is like the new one."""

    selectors: tuple[Selector, ...]


class SelectorSpread(OlderPlugin):
    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
        cycle.put(SpreadSelectors(self._selectors(pod)))
        return OK

    def _selectors(self, pod: PodInfo) -> tuple[Selector, ...]:
        if self.generation.selectors_count_each:
            return tuple(each_selector(pod.pod, self.handle.objects))
        selector = joined_selector(pod.pod, self.handle.objects)
        is_selected = bool(selector.requirements)
        if self.generation.has_predicates:  # a service that selects everything counts here
            is_selected = is_selected or bool(services_of(pod.pod, self.handle.objects))
        return (selector,) if is_selected else ()

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How many pods like this one the node has."""
        selectors = cycle.get(SpreadSelectors).selectors
        if not selectors or self._leaves_alone(pod):
            return 0
        return sum(
            other.namespace == pod.namespace
            and not other.pod.is_terminating
            and any(selector.matches(other.labels) for selector in selectors)
            for other in node.pods
        )

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        if self._leaves_alone(pod):
            return scores
        counts = scores.tolist()
        zones = [zone_of(nodes.at(position).node, self.generation) for position in range(len(nodes))]
        by_zone: dict[str, int] = {}
        for zone, count in zip(zones, counts, strict=True):
            if zone:
                by_zone[zone] = by_zone.get(zone, 0) + count
        most_on_node = max(counts, default=0)
        most_in_zone = max(by_zone.values(), default=0)
        top = float(self.generation.highest_score)
        found = []
        for zone, count in zip(zones, counts, strict=True):
            score = top * ((most_on_node - count) / most_on_node) if most_on_node > 0 else top
            if zone:
                zone_score = top * ((most_in_zone - by_zone[zone]) / most_in_zone) if most_in_zone > 0 else top
                score = score * (1.0 - _ZONE_SHARE) + _ZONE_SHARE * zone_score
            found.append(int(score))
        return np.array(found, dtype=np.int64)

    def _leaves_alone(self, pod: PodInfo) -> bool:
        return self.generation.skips_spread_pods and bool(pod.spec.topology_spread_constraints)


def zone_of(node: Node, generation: Generation) -> str:
    """Region and zone as one name; empty for a node that has neither."""
    parts = []
    for beta, stable in zip(_BETA, _STABLE, strict=True):
        value = node.labels.get(beta)
        if value is None and generation.stable_zone_labels:
            value = node.labels.get(stable)
        parts.append(value or "")
    return ":\0:".join(parts) if any(parts) else ""
