"""Topology spread constraints, compiled: those of a pod, or the default ones of a pod that has none.

`ConstraintSource` gives a pod's hard (`DoNotSchedule`) or soft (`ScheduleAnyway`) constraints with their selectors.
Default constraints select the pods that the pod's services and its controller select. A selector that cannot be parsed
raises `ConstraintError`, worded as the status that it becomes.

Next: `counting`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.framework.handle import Handle, Objects
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController, Service, TopologySpreadConstraint
from kubesched.k8s.model.meta import LabelSelector, controller_of
from kubesched.k8s.model.selectors import (
    HOSTNAME_LABEL,
    Labels,
    Selector,
    SelectorError,
    from_label_selector,
    from_labels,
)
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
                return tuple(_compile(own, pod.labels, action))
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


def _compile(
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
