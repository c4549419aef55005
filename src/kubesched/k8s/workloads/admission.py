"""What an API server fills in when an object is created, as far as scheduling sees it.

Priority and preemption policy from the priority class, overhead, node selector and tolerations from the runtime class,
requests from limits, tolerations for nodes that are not ready, host ports of pods on the host's network, label keys
merged into selectors; a claim's default storage class; defaults of the namespace's limit ranges. A selector that
already has its label keys, because the pod comes from an API server, stays as it is. What an API server would refuse,
for its class, a limit range or a quota, is an `AdmissionError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import limits, quantity
from kubesched.k8s.model.core import (
    Affinity,
    Container,
    ContainerPort,
    Namespace,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    PriorityClass,
    RuntimeClass,
    RuntimeClassScheduling,
    Toleration,
    TopologySpreadConstraint,
)
from kubesched.k8s.model.limits import LimitRange, ResourceQuota
from kubesched.k8s.model.meta import KubeObject, LabelSelector, LabelSelectorRequirement, ResourceList
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.requests import CPU, HUGE_PAGES_PREFIX, MEMORY, Amounts, Object, effective_requests
from kubesched.k8s.model.storage import STORAGE_CLASS_ANNOTATION, PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.taints import NO_EXECUTE

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
IMMEDIATE = "Immediate"


def with_object_defaults(item: KubeObject) -> KubeObject:
    if isinstance(item, Node):
        status = item.status
        if status.allocatable is None and status.capacity is not None:
            return replace(item, status=replace(status, allocatable=status.capacity))
    elif isinstance(item, Namespace):
        labels = {**item.labels, NAMESPACE_NAME_LABEL: item.name}
        return replace(item, metadata=replace(item.metadata, labels=labels))
    elif isinstance(item, StorageClass) and item.volume_binding_mode is None:
        return replace(item, volume_binding_mode=IMMEDIATE)
    elif isinstance(item, LimitRange):
        written = msgspec.to_builtins(item)
        limits.complete(written)
        return msgspec.convert(written, LimitRange)
    return item


NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
EVICTION_AFTER_S = 300


def with_default_requests(pod: Pod) -> Pod:
    """What a container limits and does not request, it requests up to its limit."""
    spec = pod.spec
    containers, init_containers = _requesting(spec.containers), _requesting(spec.init_containers or ())
    if containers == spec.containers and init_containers == (spec.init_containers or ()):
        return pod
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers or None))


def with_pod_level_requests(pod: Pod) -> Pod:
    """A pod that limits itself as a whole requests as much as its containers do, or else up to the limit."""
    resources = pod.spec.resources
    if resources is None or not resources.limits:
        return pod
    requests: ResourceList = dict(resources.requests or {})
    by_containers = effective_requests(replace(pod, spec=replace(pod.spec, overhead=None)), with_pod_level=False)
    for name, nanos in by_containers.items():
        if name in (CPU, MEMORY):
            requests.setdefault(name, str(Quantity(nanos)))
    for name, limit in resources.limits.items():
        if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX):
            requests.setdefault(name, limit)
    return replace(pod, spec=replace(pod.spec, resources=replace(resources, requests=requests)))


def with_default_tolerations(pod: Pod) -> Pod:
    """For five minutes, a pod puts up with a node that is not ready or cannot be reached."""
    known = pod.spec.tolerations or ()
    added = tuple(
        Toleration(key=key, operator="Exists", effect=NO_EXECUTE, toleration_seconds=EVICTION_AFTER_S)
        for key in (NOT_READY_TAINT, UNREACHABLE_TAINT)
        if not any(_speaks_of(toleration, key) for toleration in known)
    )
    return replace(pod, spec=replace(pod.spec, tolerations=(*known, *added))) if added else pod


def with_host_ports(pod: Pod) -> Pod:
    """On the host's network, every port of a container is a port of the host."""
    spec = pod.spec
    if not spec.host_network:
        return pod
    return replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(map(_on_host, spec.containers)),
            init_containers=None if spec.init_containers is None else tuple(map(_on_host, spec.init_containers)),
        ),
    )


def _requesting(containers: Sequence[Container]) -> tuple[Container, ...]:
    return tuple(map(_with_requests, containers))


def _with_requests(container: Container) -> Container:
    resources = container.resources
    if resources is None or not resources.limits:
        return container
    missing = {name: limit for name, limit in resources.limits.items() if name not in (resources.requests or {})}
    if not missing:
        return container
    requests = {**(resources.requests or {}), **missing}
    return replace(container, resources=replace(resources, requests=requests))


def _speaks_of(toleration: Toleration, taint_key: str) -> bool:
    return toleration.key in ("", taint_key) and toleration.effect in ("", NO_EXECUTE)


def _on_host(container: Container) -> Container:
    if not container.ports:
        return container
    return replace(container, ports=tuple(map(_as_host_port, container.ports)))


def _as_host_port(port: ContainerPort) -> ContainerPort:
    return port if port.host_port else replace(port, host_port=port.container_port)


Labels = Mapping[str, str]
Side = TypeVar("Side", PodAffinity, PodAntiAffinity)


def with_label_keys_merged(pod: Pod) -> Pod:
    spec = pod.spec
    affinity = None if spec.affinity is None else _merge_affinity(spec.affinity, pod.labels)
    constraints = spec.topology_spread_constraints
    if constraints:
        constraints = tuple(_merge_constraint(constraint, pod.labels) for constraint in constraints)
    if affinity == spec.affinity and constraints == spec.topology_spread_constraints:
        return pod
    return replace(pod, spec=replace(spec, affinity=affinity, topology_spread_constraints=constraints))


def _merge_affinity(affinity: Affinity, labels: Labels) -> Affinity:
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    if near is None and apart is None:
        return affinity
    return replace(
        affinity,
        pod_affinity=None if near is None else _merge_side(near, labels),
        pod_anti_affinity=None if apart is None else _merge_side(apart, labels),
    )


def _merge_side(side: Side, labels: Labels) -> Side:
    required = side.required_during_scheduling_ignored_during_execution
    preferred = side.preferred_during_scheduling_ignored_during_execution
    return replace(
        side,
        required_during_scheduling_ignored_during_execution=required
        and tuple(_merge_term(term, labels) for term in required),
        preferred_during_scheduling_ignored_during_execution=preferred
        and tuple(
            replace(weighted, pod_affinity_term=_merge_term(weighted.pod_affinity_term, labels))
            for weighted in preferred
        ),
    )


def _merge_term(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    if term.label_selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    selector = _merged(term.label_selector, term.match_label_keys or (), "In", labels)
    selector = _merged(selector, term.mismatch_label_keys or (), "NotIn", labels)
    return replace(term, label_selector=selector)


def _merge_constraint(constraint: TopologySpreadConstraint, labels: Labels) -> TopologySpreadConstraint:
    if constraint.label_selector is None or not constraint.match_label_keys:
        return constraint
    selector = _merged(constraint.label_selector, constraint.match_label_keys, "In", labels)
    return replace(constraint, label_selector=selector)


def _merged(selector: LabelSelector, keys: Iterable[str], operator: str, labels: Labels) -> LabelSelector:
    known = selector.match_expressions or ()
    wanted = (LabelSelectorRequirement(key, operator, (labels[key],)) for key in keys if key in labels)
    added = tuple(requirement for requirement in wanted if requirement not in known)
    return replace(selector, match_expressions=(*known, *added)) if added else selector


DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
DEFAULT_GRACE_S = 30

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"


class AdmissionError(KubeschedError, ValueError):
    """An API server would refuse to create the object."""


NO_RUNTIME_CLASSES: Mapping[str, RuntimeClass] = {}


def admit_pod(
    pod: Pod,
    priority_classes: Mapping[str, PriorityClass],
    runtime_classes: Mapping[str, RuntimeClass] = NO_RUNTIME_CLASSES,
) -> Pod:
    """The pod as an API server stores it. A priority that is written out is kept."""
    return with_defaults(with_runtime_class(with_priority(pod, priority_classes), runtime_classes))


def with_defaults(pod: Pod) -> Pod:
    """What does not depend on the cluster."""
    spec = replace(
        pod.spec,
        restart_policy=pod.spec.restart_policy or "Always",
        termination_grace_period_seconds=_default_grace(pod.spec.termination_grace_period_seconds),
    )
    pod = with_default_requests(replace(pod, spec=spec))
    pod = with_pod_level_requests(pod)
    pod = with_default_tolerations(pod)
    pod = with_host_ports(pod)
    return with_label_keys_merged(pod)


def admit_claim(claim: PersistentVolumeClaim, storage_classes: Iterable[StorageClass]) -> PersistentVolumeClaim:
    """A claim that names no storage class, not even an empty one, gets the default class, if there is one."""
    annotated = STORAGE_CLASS_ANNOTATION in (claim.metadata.annotations or {})
    if annotated or claim.spec.storage_class_name is not None:
        return claim
    defaults = [known for known in storage_classes if _is_default(known)]
    if not defaults:
        return claim
    newest = min(defaults, key=lambda known: (_newest_first(known), known.name))
    return replace(claim, spec=replace(claim.spec, storage_class_name=newest.name))


def with_priority(pod: Pod, classes: Mapping[str, PriorityClass]) -> Pod:
    """As the Priority admission plugin does: the class's value and preemption policy, where the pod has none."""
    spec = pod.spec
    name, value, policy = _priority(spec.priority_class_name, classes)
    if spec.priority is not None:
        value = spec.priority
    return replace(
        pod,
        spec=replace(
            spec,
            priority_class_name=name,
            priority=value,
            preemption_policy=spec.preemption_policy or policy or PREEMPT_LOWER_PRIORITY,
        ),
    )


def with_runtime_class(pod: Pod, classes: Mapping[str, RuntimeClass]) -> Pod:
    """As the RuntimeClass admission plugin does: the class's overhead, and where its pods may go. Where no class is
    known at all, nobody looked for them; a pod with a uid has been admitted, and has it."""
    name = pod.spec.runtime_class_name
    if not name or not classes or pod.metadata.uid:
        return pod
    if name not in classes:
        raise AdmissionError(f'RuntimeClass "{name}" not found')
    known, spec = classes[name], pod.spec
    if known.overhead is not None and known.overhead.pod_fixed:
        if spec.overhead not in (None, known.overhead.pod_fixed):
            raise AdmissionError(f"spec.overhead does not match that of RuntimeClass {name}")
        spec = replace(spec, overhead=known.overhead.pod_fixed)
    if known.scheduling is not None:
        spec = _where_it_runs(spec, known.scheduling, name)
    return pod if spec is pod.spec else replace(pod, spec=spec)


def _where_it_runs(spec: PodSpec, scheduling: RuntimeClassScheduling, name: str) -> PodSpec:
    wanted, selector = scheduling.node_selector or {}, spec.node_selector or {}
    for key, value in wanted.items():
        if selector.get(key, value) != value:
            raise AdmissionError(f"spec.nodeSelector[{key}]: {selector[key]}, while RuntimeClass {name} wants {value}")
    tolerations = spec.tolerations or ()
    added = tuple(one for one in scheduling.tolerations or () if one not in tolerations)
    if wanted.items() <= selector.items() and not added:
        return spec
    return replace(spec, node_selector={**selector, **wanted} or None, tolerations=(*tolerations, *added) or None)


def _priority(name: str, classes: Mapping[str, PriorityClass]) -> tuple[str, int, str | None]:
    """Name, value and preemption policy of the class that counts."""
    if not name:
        defaults = [known for known in classes.values() if known.global_default]
        if not defaults:
            return "", 0, None
        chosen = min(defaults, key=lambda known: (known.value, known.name))
        return chosen.name, chosen.value, chosen.preemption_policy
    if name in classes:
        return name, classes[name].value, classes[name].preemption_policy
    if name in SYSTEM_CLASSES:
        return name, SYSTEM_CLASSES[name], None
    raise AdmissionError(f"no PriorityClass with name {name} was found")


def _default_grace(seconds: int | None) -> int:
    return DEFAULT_GRACE_S if seconds is None else seconds


def _is_default(storage_class: StorageClass) -> bool:
    return (storage_class.metadata.annotations or {}).get(DEFAULT_CLASS_ANNOTATION) == "true"


def _newest_first(storage_class: StorageClass) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in storage_class.metadata.creation_timestamp or "")


# -- what a namespace allows -------------------------------------------------------------------------------------------


def within_limit_ranges(pod: Pod, ranges: Sequence[LimitRange]) -> Pod:
    """The pod with the defaults of its namespace's limit ranges. Raises AdmissionError where it is out of range."""
    if not ranges:
        return pod
    rules = [msgspec.to_builtins(one) for one in sorted(ranges, key=lambda one: one.name)]
    written = msgspec.to_builtins(pod)
    limits.apply_defaults(written, rules)
    if violation := limits.first_violation(written, rules):
        raise AdmissionError(violation)
    return msgspec.convert(written, Pod)


def refuse_claim_out_of_range(claim: PersistentVolumeClaim, ranges: Iterable[LimitRange]) -> None:
    """Raises AdmissionError."""
    rules = (msgspec.to_builtins(one) for one in sorted(ranges, key=lambda one: one.name))
    if violation := limits.first_claim_violation(msgspec.to_builtins(claim), rules):
        raise AdmissionError(violation)


_COUNTED: dict[type[KubeObject], str] = {Pod: limits.PODS, PersistentVolumeClaim: limits.CLAIMS}


@dataclass(slots=True)
class QuotaAccount:
    """A quota, and what the pods and volume claims of its namespace take of it."""

    quota: ResourceQuota
    used: Amounts = field(default_factory=dict)
    _hard: Amounts = field(init=False)
    _selectors: list[Object] = field(init=False)
    _charged: dict[str, Amounts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hard = self.quota.spec.hard or self.quota.status.hard or {}
        self._hard = {name: quantity.parse(amount) for name, amount in hard.items()}
        self._selectors = limits.scope_selectors(msgspec.to_builtins(self.quota.spec))

    def refuse(self, item: KubeObject) -> None:
        """Raises AdmissionError if the quota has no room for one more object like this, or cannot tell."""
        resource, written = _COUNTED[type(item)], msgspec.to_builtins(item)
        names = limits.counted_names(resource, self._hard)
        if not names or not limits.is_in_scope(resource, self._selectors, written):
            return
        refusal = limits.uncountable(resource, self.quota.name, names, written)
        refusal = refusal or limits.exceeded(
            self.quota.name, self._taken(resource, written), dict.fromkeys(names, _NOTHING) | self.used, self._hard
        )
        if refusal:
            raise AdmissionError(refusal)

    def charge(self, item: KubeObject) -> None:
        """The object is there; what it takes is counted once."""
        resource, uid = _COUNTED[type(item)], item.metadata.uid
        if uid in self._charged:
            return
        written = msgspec.to_builtins(item)
        if limits.is_in_scope(resource, self._selectors, written):
            taken = self._charged[uid] = self._taken(resource, written)
            self.used |= {name: self.used.get(name, _NOTHING) + amount for name, amount in taken.items()}

    def give_back(self, item: KubeObject) -> bool:
        """The object is gone or has ended; False if it took nothing."""
        taken = self._charged.pop(item.metadata.uid, {})
        self.used |= {name: self.used[name] - amount for name, amount in taken.items()}
        return bool(taken)

    def _taken(self, resource: str, written: Object) -> Amounts:
        taken = limits.usage(resource, written, _LONG_AGO)
        return {name: amount for name, amount in taken.items() if name in self._hard and amount.nanos > 0}


_NOTHING = quantity.from_int(0)
_LONG_AGO = datetime.fromtimestamp(0, UTC)
"""What is being deleted counts until it is gone."""
