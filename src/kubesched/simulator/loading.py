"""From manifests to what a run needs: objects in the order they are put in, checked; and the scenario's steps.

Whatever would break a run later is found here, as an error that names source, object and field.

Owners of which only the references are known: a dump of pods names them by uid, while a manifest of the owner, as
written by hand, has none. Both given together are meant to belong together: the owner gets the uid that the
references to it have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as changed

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, DeploymentStrategy, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.autoscaling import AUTOSCALING_KINDS, NODE_POOL_KINDS, NodeClaim
from kubesched.k8s.model.core import (
    Namespace,
    Node,
    Pod,
    PodDisruptionBudget,
    PodSpec,
    PodTemplateSpec,
    PriorityClass,
    ReplicationController,
    RuntimeClass,
)
from kubesched.k8s.model.cron_schedule import CronError, CronSchedule
from kubesched.k8s.model.limits import HorizontalPodAutoscaler, LimitRange, ResourceQuota
from kubesched.k8s.model.manifests import Kinds, ManifestError, Manifests
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.quantity import QuantityError
from kubesched.k8s.model.requests import AmountError, node_units, pod_resources, to_nanos
from kubesched.k8s.model.selectors import SelectorError, from_label_selector
from kubesched.k8s.model.storage import Offer, PersistentVolume, PersistentVolumeClaim, StorageClass, requested_storage
from kubesched.k8s.workloads.admission import NO_RUNTIME_CLASSES, AdmissionError, admit_pod, with_runtime_class
from kubesched.k8s.workloads.deployments import rolling_limits
from kubesched.k8s.workloads.pod_states import AnnotationError, duration_s, fails
from kubesched.k8s.workloads.replicas import ShareError, share_of
from kubesched.simulator.claimed_nodes import is_unknown, nodes_with_claims
from kubesched.simulator.guesses import Guess, guesses_about
from kubesched.simulator.premises import supposing
from kubesched.simulator.requested_pods import requested_jobs
from kubesched.simulator.scenario import SCENARIO_GROUP, SIMULATED_OBJECTS, Scenario, ScenarioStep, read_scenarios
from kubesched.simulator.virtual.admission import MOST_PODS


def with_uids_of_references(objects: Sequence[KubeObject]) -> list[KubeObject]:
    known = {
        (owner.kind, item.namespace, owner.name): owner.uid
        for item in objects
        for owner in item.metadata.owner_references or ()
        if owner.uid
    }
    return [_with_uid(item, known) for item in objects]


def _with_uid(item: KubeObject, known: dict[tuple[str, str, str], str]) -> KubeObject:
    uid = known.get((type(item).__name__, item.namespace, item.name), "")
    if item.metadata.uid or not uid:
        return item
    return replace(item, metadata=replace(item.metadata, uid=uid))


SIMULATED_KINDS: Kinds = {
    **SIMULATED_OBJECTS,
    (SCENARIO_GROUP, "Scenario"): Scenario,
    ("autoscaling", "HorizontalPodAutoscaler"): HorizontalPodAutoscaler,
}
"""What is read: autoscalers are for those who suppose workloads to be at their least or most (`premises`)."""

_MAKERS = tuple(NODE_POOL_KINDS.values())
_AUTOSCALING = tuple(AUTOSCALING_KINDS.values())

LOADED_KINDS: Kinds = {**SIMULATED_KINDS, **AUTOSCALING_KINDS}
"""And what says which nodes and pods there will be."""

_FIRST: tuple[type[KubeObject], ...] = (Namespace, PriorityClass, RuntimeClass, StorageClass, Node, PersistentVolume)
_ERRORS = (QuantityError, SelectorError, CronError, ShareError, AnnotationError, AdmissionError)


_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class SourcedObject:
    item: KubeObject
    source: str
    """The file it stands in."""


@dataclass(frozen=True, slots=True)
class SimulationInput:
    objects: tuple[KubeObject, ...]
    """In the order in which they are to be created: what others refer to first, what makes pods last."""
    steps: tuple[ScenarioStep, ...]
    guesses: tuple[str, ...] = ()
    """What has to be supposed about it: `guesses`, and what was supposed on purpose (`premises`)."""
    node_makers: tuple[SourcedObject, ...] = ()
    """NodePools and the like, which say how nodes come and go: for those who plan; nothing of it is played."""

    @property
    def ends_by_itself(self) -> bool:
        """Whether the workload is finite: nothing comes again and again forever."""
        later = (item for step in self.steps for item in step.objects)
        return not any(_recurs(item) for item in (*self.objects, *later))


def load(found: Manifests, replicas: str = "current", ignore: Sequence[str] = ()) -> SimulationInput:
    """As it is, or as a question supposes it to be (`premises.supposing`). Raises ManifestError and PremiseError."""
    makers = tuple(SourcedObject(item, found.source_of(item)) for item in found.objects if isinstance(item, _MAKERS))
    found, supposed = supposing(_as_objects(found), replicas, ignore)
    guesses = (*guesses_about(found), *_guesses_about_nodes(makers))
    objects = [item for item in found.objects if not isinstance(item, Scenario | HorizontalPodAutoscaler)]
    scenarios = [(item, found.source_of(item)) for item in found.objects if isinstance(item, Scenario)]
    classes = {item.name: item for item in objects if isinstance(item, PriorityClass)}
    runtimes = {item.name: item for item in objects if isinstance(item, RuntimeClass)}
    first: dict[bytes, KubeObject] = {}
    for item in objects:
        shape = _shape(item)
        if shape is None or shape not in first:
            check(item, classes, found.source_of(item), runtimes)
        if shape is not None:
            first.setdefault(shape, item)
    _check_number_of_pods(objects, found)
    _check_uids(objects, found)
    steps = read_scenarios(scenarios, (item.name for item in objects if isinstance(item, Node)))
    for step in steps:
        for item in step.objects:
            check(item, None, step.source)
    shared = [_sharing_spec(item, first) for item in with_uids_of_references(objects)]
    return SimulationInput(tuple(sorted(shared, key=_place_in_order)), tuple(steps), (*supposed, *guesses), makers)


def _guesses_about_nodes(makers: Iterable[SourcedObject]) -> Iterator[Guess]:
    for one in makers:
        if isinstance(one.item, NodeClaim) and is_unknown(one.item):
            yield Guess(f"NodeClaim {one.item.name} is not launched: the size of its node is not known yet.")


def _as_objects(found: Manifests) -> Manifests:
    """What autoscalers read, as the nodes and pods that it tells of."""
    if not any(isinstance(item, _AUTOSCALING) for item in found.objects):
        return found
    sources = dict(found.sources)
    others = [item for item in found.objects if not isinstance(item, _AUTOSCALING)]
    for job, source in requested_jobs(found):
        others.append(job)
        sources[id(job)] = source
    claims = [item for item in found.objects if isinstance(item, NodeClaim)]
    given = [item for item in others if isinstance(item, Node)]
    nodes = nodes_with_claims(given, claims)
    of_claims = {claim.status.node_name or claim.name: found.source_of(claim) for claim in claims}
    for place, node in enumerate(nodes):
        sources[id(node)] = found.source_of(given[place]) if place < len(given) else of_claims.get(node.name, "")
    return changed(found, objects=[*(item for item in others if not isinstance(item, Node)), *nodes], sources=sources)


def _shape(item: KubeObject) -> bytes | None:
    """What `check` looks at in a pod or a node: those that are alike in it need one look. None for other kinds."""
    if isinstance(item, Pod):
        spec = item.spec
        is_placed = bool(spec.node_name) or item.is_terminal
        return _encode((is_placed, item.metadata.annotations, replace(spec, node_name="") if spec.node_name else spec))
    if isinstance(item, Node):
        return _encode((item.status.allocatable, item.status.capacity))
    return None


def _sharing_spec(item: KubeObject, first: dict[bytes, KubeObject]) -> KubeObject:
    """Pods that ask for the same have one spec, as those have that a controller makes of a template: it is completed
    once, and kept once."""
    if not isinstance(item, Pod) or item.spec.node_name:
        return item
    like = first.get(_shape(item) or b"")
    return item if not isinstance(like, Pod) or like.spec is item.spec else replace(item, spec=like.spec)


def _check_number_of_pods(objects: Sequence[KubeObject], found: Manifests) -> None:
    """All pods are kept in memory. Those of workloads are made as they are needed, and counted then."""
    for n_pods, pod in enumerate((item for item in objects if isinstance(item, Pod)), 1):
        if n_pods > MOST_PODS:
            raise ManifestError(found.source_of(pod), f"Pod {pod.key}", f"a simulation has at most {MOST_PODS:,} pods")


def _check_uids(objects: Sequence[KubeObject], found: Manifests) -> None:
    """Objects are told apart by their uids, if they have any."""
    known: dict[str, KubeObject] = {}
    for item in objects:
        other = known.setdefault(item.metadata.uid or f"none {id(item)}", item)
        if (type(other), other.key) != (type(item), item.key):
            problem = f"metadata.uid: {item.metadata.uid} is also the uid of {type(other).__name__} {other.key}"
            raise ManifestError(found.source_of(item), f"{type(item).__name__} {item.key}", problem)


def check(
    item: KubeObject,
    classes: dict[str, PriorityClass] | None,
    source: str,
    runtimes: Mapping[str, RuntimeClass] = NO_RUNTIME_CLASSES,
) -> None:
    """Looks at everything in the object that a run will read. Without `classes`, priorities are not looked at."""
    try:
        _check_kind(item)
        for path, template in _templates(item):
            _check_pod(template.metadata, template.spec, path)
        if isinstance(item, Pod):
            _check_pod(item.metadata, item.spec, "")
            if classes is not None and not item.spec.node_name and not item.is_terminal:
                with _in_field("spec.priorityClassName"):
                    admit_pod(item, classes)
                with _in_field("spec.runtimeClassName"):
                    with_runtime_class(item, runtimes)
    except _FieldError as error:
        raise ManifestError(source, f"{type(item).__name__} {item.key}", str(error)) from None


class _FieldError(ValueError):
    """A field cannot be understood; says which and why."""


@contextmanager
def _in_field(path: str) -> Iterator[None]:
    """Validation errors raised in here get the field; amounts know their own, below the path."""
    try:
        yield
    except AmountError as error:
        raise _FieldError(f"{path}{error}") from None
    except _ERRORS as error:
        raise _FieldError(f"{path}: {error}") from None


def _check_kind(item: KubeObject) -> None:
    match item:
        case Node():
            with _in_field(""):
                node_units(item.status.allocatable, "status.allocatable")
                node_units(item.status.capacity, "status.capacity")
        case RuntimeClass() if item.overhead is not None:
            with _in_field(""):
                node_units(item.overhead.pod_fixed, "overhead.podFixed")
        case CronJob():
            with _in_field("spec"):
                CronSchedule.parse(item.spec.schedule, item.spec.time_zone or "UTC")
        case Deployment():
            with _in_field("spec.strategy.rollingUpdate"):
                rolling_limits(item.spec.strategy or DeploymentStrategy(), 1)
        case DaemonSet():
            rolling = item.spec.update_strategy.rolling_update if item.spec.update_strategy else None
            with _in_field("spec.updateStrategy.rollingUpdate"):
                for value in (rolling.max_surge, rolling.max_unavailable) if rolling else ():
                    share_of(value or 0, 1, rounding_up=True)
        case PodDisruptionBudget():
            with _in_field("spec.selector"):
                from_label_selector(item.spec.selector)
            with _in_field("spec.minAvailable"):
                share_of(item.spec.min_available or 0, 1, rounding_up=True)
            with _in_field("spec.maxUnavailable"):
                share_of(item.spec.max_unavailable or 0, 1, rounding_up=True)
        case PersistentVolumeClaim():
            with _in_field("spec.resources.requests.storage"):
                requested_storage(item)
        case PersistentVolume():
            with _in_field("spec.capacity.storage"):
                Offer.of(item)
        case ResourceQuota():
            with _in_field(""):
                to_nanos(item.spec.hard, "spec.hard")
        case LimitRange():
            for position, bounds in enumerate(item.spec.limits or ()):
                at = f"spec.limits[{position}]"
                with _in_field(""):
                    to_nanos(bounds.min, f"{at}.min")
                    to_nanos(bounds.max, f"{at}.max")
                    to_nanos(bounds.default, f"{at}.default")
                    to_nanos(bounds.default_request, f"{at}.defaultRequest")
                    to_nanos(bounds.max_limit_request_ratio, f"{at}.maxLimitRequestRatio")


def _check_pod(metadata: ObjectMeta, spec: PodSpec, path: str) -> None:
    """`path` is where the two hang in the object."""
    with _in_field(f"{path}metadata.annotations"):
        duration_s(metadata)
        fails(metadata)
    with _in_field(path):
        pod_resources(Pod(ObjectMeta("probe", "default"), spec))
        pod_resources(admit_pod(Pod(spec=replace(spec, priority_class_name="")), {}))


def _templates(item: KubeObject) -> Iterator[tuple[str, PodTemplateSpec]]:
    """Pod templates of an object, with the path to each."""
    if isinstance(item, Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job):
        if item.spec.template is not None:
            yield "spec.template.", item.spec.template
    elif isinstance(item, CronJob) and item.spec.job_template.spec.template is not None:
        yield "spec.jobTemplate.spec.template.", item.spec.job_template.spec.template


def _recurs(item: KubeObject) -> bool:
    if isinstance(item, CronJob):
        return not item.spec.suspend
    if isinstance(item, Job):
        return False
    return any(duration_s(template.metadata) is not None for _, template in _templates(item))


def _place_in_order(item: KubeObject) -> int:
    if type(item) in _FIRST:
        return _FIRST.index(type(item))
    if isinstance(item, Pod):
        return len(_FIRST) + 1
    return len(_FIRST) + 2 if any(_templates(item)) else len(_FIRST)
