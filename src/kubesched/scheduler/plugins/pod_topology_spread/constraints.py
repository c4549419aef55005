"""Topology spread constraints, compiled: those of a pod, or the default ones of a pod that has none; what they count.

`ConstraintSource` gives a pod's hard (`DoNotSchedule`) or soft (`ScheduleAnyway`) constraints with their selectors.
Default constraints select the pods that the pod's services and its controller select. A selector that cannot be parsed
raises `ConstraintError`, worded as the status that it becomes.

Which nodes are eligible, by a constraint's inclusion policies, depends on the pod and the nodes alone: that holds for a
whole cycle. Pods are counted per row, once for each selector and cycle, by Filter and Score together; pods that are
added or removed later are matched by their label class.

Next: `filtering`, `scoring`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework.caching import PodChange
from kubesched.framework.handle import Handle, Objects
from kubesched.framework.nodes import MISSING, IntArray, NodeTable, matching_nodes
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, PodSpec, ReplicationController, Service, TopologySpreadConstraint
from kubesched.k8s.model.meta import LabelSelector, controller_of
from kubesched.k8s.model.selectors import (
    HOSTNAME_LABEL,
    Labels,
    Selector,
    SelectorError,
    from_label_selector,
    from_labels,
    from_node_selector,
)
from kubesched.k8s.model.taints import find_untolerated
from kubesched.scheduler.config.plugin_args import SYSTEM_DEFAULTING, PodTopologySpreadArgs

SELECTING_KINDS = (Service, ReplicationController, ReplicaSet, StatefulSet)
"""The objects that are asked."""


def default_selector(pod: Pod, objects: Objects) -> Selector:
    """Selects everything when neither a service nor a known controller selects the pod."""
    labels = _service_labels(pod, objects)
    owner = controller_of(pod.metadata)
    if owner is None:
        return from_labels(labels)
    key = f"{pod.namespace}/{owner.name}"
    match (owner.api_version, owner.kind):
        case ("v1", "ReplicationController"):
            controller = objects.replication_controllers.get(key)
            return from_labels(labels | (controller.spec.selector or {}) if controller else labels)
        case ("apps/v1", "ReplicaSet"):
            replica_set = objects.replica_sets.get(key)
            return _narrowed(labels, replica_set.spec.selector if replica_set else None)
        case ("apps/v1", "StatefulSet"):
            stateful_set = objects.stateful_sets.get(key)
            return _narrowed(labels, stateful_set.spec.selector if stateful_set else None)
        case _:
            return from_labels(labels)


def _service_labels(pod: Pod, objects: Objects) -> dict[str, str]:
    """The joined selectors of the services that select the pod."""
    joined: dict[str, str] = {}
    pod_labels = pod.labels
    for service in objects.services.values():
        if service.metadata.namespace == pod.metadata.namespace:
            selector = service.spec.selector
            if selector and selector.items() <= pod_labels.items():
                joined |= selector
    return joined


def _narrowed(labels: Labels, selector: LabelSelector | None) -> Selector:
    """A controller's selector that is missing or cannot be understood adds nothing."""
    requirements = from_labels(labels).requirements
    try:
        return Selector(requirements + from_label_selector(selector).requirements)
    except SelectorError:
        return Selector(requirements)


ZONE_LABEL = "topology.kubernetes.io/zone"

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HONOR = "Honor"
IGNORE = "Ignore"

SYSTEM_DEFAULT_CONSTRAINTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME_LABEL, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE_LABEL, when_unsatisfiable=SCHEDULE_ANYWAY),
)

_STRENGTH = {DO_NOT_SCHEDULE: "hard", SCHEDULE_ANYWAY: "soft"}


class ConstraintError(KubeschedError, ValueError):
    """A constraint has a selector that cannot be understood."""


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A constraint with everything that the object left out filled in."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class ConstraintSource:
    """Where constraints come from: the pod, or else the plugin's arguments."""

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._handle = handle
        self.system_defaulted = args.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = SYSTEM_DEFAULT_CONSTRAINTS if self.system_defaulted else args.default_constraints

    def requires_all_topologies(self, pod: Pod) -> bool:
        """Whether a node without one of the topology labels is left out of the score. Not so with the built-in
        constraints, so that a cluster without zones still spreads over hosts."""
        return bool(pod.spec.topology_spread_constraints) or not self.system_defaulted

    def of(self, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        own = pod.spec.topology_spread_constraints
        try:
            if own:
                return tuple(compiled_constraints(own, pod.labels, action))
            return self._default(pod, action)
        except SelectorError as error:
            origin = "obtaining pod's" if own else "setting default"
            text = f"{origin} {_STRENGTH[action]} topology spread constraints: {error}"
            raise ConstraintError(text) from error

    def _default(self, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        constraints = [c for c in self._defaults if c.when_unsatisfiable == action]
        if not constraints:
            return ()
        selector = default_selector(pod, self._handle.objects)
        if selector.is_everything:
            return ()
        return tuple(_fill_in(constraint, selector) for constraint in constraints)


def compiled_constraints(
    constraints: Iterable[TopologySpreadConstraint], pod_labels: Labels, action: str
) -> Iterable[SpreadConstraint]:
    for constraint in constraints:
        if constraint.when_unsatisfiable == action:
            selector = from_label_selector(constraint.label_selector)
            keys = constraint.match_label_keys or ()
            yield _fill_in(constraint, _with_labels(selector, {k: pod_labels[k] for k in keys if k in pod_labels}))


def _with_labels(selector: Selector, labels: Labels) -> Selector:
    """The selector, narrowed to these labels. What selects nothing stays so."""
    if selector.nothing or not labels:
        return selector
    return Selector(from_labels(labels).requirements + selector.requirements)


def _fill_in(constraint: TopologySpreadConstraint, selector: Selector) -> SpreadConstraint:
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy in (None, HONOR),
        honors_taints=constraint.node_taints_policy == HONOR,
    )


# -- eligible nodes ----------------------------------------------------------------------------------------------------


def with_all_keys(constraints: Sequence[SpreadConstraint], nodes: NodeTable) -> BoolArray:
    """(n_nodes,) nodes that have the topology label of every constraint."""
    complete = np.ones(len(nodes), dtype=np.bool_)
    for key in {constraint.topology_key for constraint in constraints}:
        complete &= nodes.label(key).codes != MISSING
    return complete


class InclusionPolicies:
    """Nodes as the policies of a pod's constraints see them; each question is answered at most once."""

    def __init__(self, pod: PodInfo, nodes: NodeTable) -> None:
        self._pod = pod
        self._nodes = nodes
        self._admitted: BoolArray | None = None
        self._tolerated: BoolArray | None = None

    def included(self, constraint: SpreadConstraint) -> BoolArray:
        """(n_nodes,) nodes that neither policy of the constraint leaves out."""
        if constraint.honors_affinity and constraint.honors_taints:
            return self._by_affinity() & self._by_taints()
        if constraint.honors_affinity:
            return self._by_affinity()
        if constraint.honors_taints:
            return self._by_taints()
        return np.ones(len(self._nodes), dtype=np.bool_)

    def _by_affinity(self) -> BoolArray:
        if self._admitted is None:
            self._admitted = _admitted_by_affinity(self._pod.spec, self._nodes)
        return self._admitted

    def _by_taints(self) -> BoolArray:
        if self._tolerated is None:
            tolerations = self._pod.tolerations
            self._tolerated = self._nodes.taints.where(
                lambda taints: find_untolerated(taints or (), tolerations) is None
            )
        return self._tolerated


def _admitted_by_affinity(spec: PodSpec, nodes: NodeTable) -> BoolArray:
    """Nodes that the pod's node selector and required node affinity admit. A term with a validation error admits
    none."""
    admitted = np.ones(len(nodes), dtype=np.bool_)
    for requirement in from_labels(spec.node_selector).requirements:
        admitted &= nodes.matching(requirement)
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity else None
    if required is not None:
        admitted &= matching_nodes(from_node_selector(required), nodes)
    return admitted


# -- pods on every row -------------------------------------------------------------------------------------------------


class RowCounts:
    """Counts of pods in one namespace, without those being deleted. A selector of everything counts none."""

    def __init__(self, nodes: NodeTable, namespace: str) -> None:
        self._nodes = nodes.whole
        self._namespaces = frozenset({namespace})
        self._known: dict[Selector, IntArray] = {}

    def of(self, selector: Selector) -> IntArray:
        """(n_rows,) of the whole table."""
        known = self._known.get(selector)
        if known is None:
            known = self._known[selector] = self._count(selector)
        return known

    def _count(self, selector: Selector) -> IntArray:
        if selector.is_everything:
            return np.zeros(len(self._nodes), dtype=np.int64)
        pods = self._nodes.pods
        return pods.counts(pods.classes(selector, self._namespaces), terminating=False)


# -- pods that are added and removed -----------------------------------------------------------------------------------


_MOST_KEPT = 1000
"""Where every pod has labels of its own, nothing is found again: then it must at least not pile up."""


class CountedPods:
    """Pods of one namespace, as the constraints of a pod to be placed there see them."""

    __slots__ = ("_by_label_class", "_constraints", "_namespace")

    def __init__(self, namespace: str, constraints: Sequence[SpreadConstraint]) -> None:
        self._namespace = namespace
        self._constraints = constraints
        self._by_label_class: dict[int, tuple[int, ...]] = {}

    def among(self, changes: Sequence[PodChange]) -> list[tuple[tuple[int, ...], int, int]]:
        """(numbers of the constraints that count the pod, row, 1 or -1) for each change of a pod that any counts."""
        found: list[tuple[tuple[int, ...], int, int]] = []
        known = self._by_label_class
        for row, pod, added in changes:
            numbers = known.get(pod.signature.label_class)
            if numbers is None:
                numbers = self._keep(pod)
            if numbers and pod.pod.metadata.deletion_timestamp is None:
                found.append((numbers, row, 1 if added else -1))
        return found

    def _keep(self, pod: PodInfo) -> tuple[int, ...]:
        """The numbers of the constraints that count pods with these labels."""
        if len(self._by_label_class) >= _MOST_KEPT:
            self._by_label_class.clear()
        numbers: tuple[int, ...] = ()
        if pod.namespace == self._namespace:
            numbers = tuple(
                number
                for number, constraint in enumerate(self._constraints)
                if not constraint.selector.is_everything and constraint.selector.matches(pod.labels)
            )
        self._by_label_class[pod.signature.label_class] = numbers
        return numbers
