"""Nodes that fail for resources and nothing else: what each of them lacks, as arrays over these nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.explanation.changes.situation import Situation
from kubesched.explanation.findings.resources import lacking
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray
from kubesched.k8s.model.requests import PODS
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit


@dataclass(frozen=True, slots=True)
class Shortfalls:
    """One row of each array per resource, one column per node."""

    rows: RowArray
    resources: tuple[str, ...]
    requested: IntArray
    """(n_resources,)"""
    free: IntArray
    allocatable: IntArray
    lacks: BoolArray

    @property
    def missing(self) -> IntArray:
        """(n_resources, n_nodes) how much more would have to be free; 0 where there is enough."""
        return np.where(self.lacks, self.requested[:, np.newaxis] - self.free, 0)

    def cost(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """(n_nodes,) what is missing, as shares of what is requested, added up."""
        shares = self.missing / np.maximum(self.requested, 1)[:, np.newaxis]
        total: np.ndarray[tuple[int], np.dtype[np.float64]] = shares.sum(axis=0)
        return total

    def amounts(self, position: int) -> dict[str, int]:
        """What is missing on one of the nodes."""
        column = self.missing[:, position].tolist()
        return {resource: units for resource, units in zip(self.resources, column, strict=True) if units > 0}


def find_shortfalls(situation: Situation, rows: RowArray) -> Shortfalls:
    """The shortfalls of these rows, all of which NodeResourcesFit rejects."""
    resources = _resources(situation)
    free, allocatable = _amounts(situation, rows, resources)
    wanted = situation.pod.resources.wanted
    requested = np.array([1 if name == PODS else wanted.get(name, 0) for name in resources], dtype=np.int64)
    return Shortfalls(rows, resources, requested, free, allocatable, _lacks(situation, rows, resources))


def _resources(situation: Situation) -> tuple[str, ...]:
    """All that any node lacks."""
    verdicts = situation.failures.verdicts_of(NodeResourcesFit.name)
    found = dict.fromkeys(lacking(verdicts.reasons))
    for statuses in situation.failures.crowded.values():
        for status in statuses:
            if status.plugin == NodeResourcesFit.name:
                found.update(dict.fromkeys(lacking(status.reasons)))
    return tuple(found)


def _amounts(situation: Situation, rows: RowArray, resources: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    nodes = situation.cluster.nodes.take(rows)
    free = np.zeros((len(resources), len(rows)), dtype=np.int64)
    allocatable = np.zeros_like(free)
    for index, name in enumerate(resources):
        allocatable[index] = nodes.allowed_pods if name == PODS else nodes.allocatable(name)
        free[index] = allocatable[index] - (nodes.pod_counts if name == PODS else nodes.requested(name))
        for row, nominated_pods in situation.nominated_pods.items():
            taken = sum(
                1 if name == PODS else nominated_pod.resources.requests.get(name, 0) for nominated_pod in nominated_pods
            )
            free[index, rows == row] -= taken
    return free, allocatable


def _lacks(situation: Situation, rows: RowArray, resources: tuple[str, ...]) -> BoolArray:
    """As the plugin itself said it."""
    lacks = np.zeros((len(resources), len(rows)), dtype=np.bool_)
    verdicts = situation.failures.verdicts_of(NodeResourcesFit.name)
    if verdicts is not ACCEPT_ALL:
        for reason, bits in zip(verdicts.reasons, verdicts.bits, strict=True):
            for name in lacking([reason]):
                lacks[resources.index(name)] = bits[rows]
    for row, statuses in situation.failures.crowded.items():
        for name in (name for s in statuses if s.plugin == NodeResourcesFit.name for name in lacking(s.reasons)):
            lacks[resources.index(name), rows == row] = True
    return lacks
