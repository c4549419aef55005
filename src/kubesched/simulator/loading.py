"""From manifests to what a run needs: objects in the order they are put in, checked; and the scenario's steps.

Whatever would break a run later is found here, as an error that names source, object and field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubesched.cluster import Cluster
from kubesched.model.apps import ReplicaSet, StatefulSet
from kubesched.model.core import Namespace, Node, Pod, PodTemplateSpec, ReplicationController
from kubesched.model.manifests import KINDS_WITH_WORKLOADS, Kinds, ManifestError, Manifests
from kubesched.model.meta import KubeObject, ObjectMeta
from kubesched.model.policy import PodDisruptionBudget, PriorityClass
from kubesched.model.quantity import QuantityError
from kubesched.model.requests import AmountError, node_units
from kubesched.model.selectors import SelectorError, from_label_selector
from kubesched.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.model.times import InstantError
from kubesched.model.workloads import CronJob, DaemonSet, Deployment, DeploymentStrategy, Job
from kubesched.plugins.volume_binding.offers import Offer, requested_storage
from kubesched.simulator.expansion.admission import AdmissionError, admit_pod
from kubesched.simulator.expansion.cron_schedule import CronError, CronSchedule
from kubesched.simulator.expansion.percentages import ShareError, share_of
from kubesched.simulator.expansion.rollout import rolling_limits
from kubesched.simulator.scenario.document import SCENARIO_GROUP, Scenario
from kubesched.simulator.scenario.reading import ScenarioStep, read_scenarios
from kubesched.simulator.virtual.kubelets import AnnotationError, duration_s, fails

SIMULATED_KINDS: Kinds = {**KINDS_WITH_WORKLOADS, (SCENARIO_GROUP, "Scenario"): Scenario}

_FIRST: tuple[type[KubeObject], ...] = (Namespace, PriorityClass, StorageClass, Node, PersistentVolume)
_MISTAKES = (AmountError, QuantityError, SelectorError, CronError, ShareError, AnnotationError, InstantError)


@dataclass(frozen=True, slots=True)
class SimulationInput:
    objects: tuple[KubeObject, ...]
    """In the order in which they are to be created: what others refer to first, what makes pods last."""
    steps: tuple[ScenarioStep, ...]
    sources: dict[int, str]

    @property
    def ends_by_itself(self) -> bool:
        """Whether the workload is finite: nothing comes again and again for ever."""
        later = (item for step in self.steps for item in step.objects)
        return not any(_recurs(item) for item in (*self.objects, *later))


def load(found: Manifests) -> SimulationInput:
    """Raises ManifestError."""
    objects = [item for item in found.objects if not isinstance(item, Scenario)]
    scenarios = [(item, found.source_of(item)) for item in found.objects if isinstance(item, Scenario)]
    classes = {item.name: item for item in objects if isinstance(item, PriorityClass)}
    for item in objects:
        check(item, classes, found.source_of(item))
    steps = read_scenarios(scenarios, (item.name for item in objects if isinstance(item, Node)))
    for step in steps:
        for item in step.objects:
            check(item, None, scenarios[0][1])
    ordered = tuple(sorted(objects, key=_place_in_order))
    return SimulationInput(ordered, tuple(steps), found.sources)


def check(item: KubeObject, classes: dict[str, PriorityClass] | None, source: str) -> None:
    """Looks at everything in the object that a run will read. Without `classes`, priorities are not looked at."""
    where = f"{type(item).__name__} {item.key}"
    try:
        _check_kind(item)
        for path, template in _templates(item):
            _check_pod(Pod(ObjectMeta("probe", "default"), template.spec), template.metadata, path, where, source)
        if isinstance(item, Pod):
            _check_pod(item, item.metadata, "", where, source)
            if classes is not None and not item.spec.node_name and not item.is_terminal:
                admit_pod(item, classes)
    except AdmissionError as refusal:
        raise ManifestError(source, where, f"spec.priorityClassName: {refusal}") from None
    except _MISTAKES as mistake:
        raise ManifestError(source, where, str(mistake)) from None


def _check_kind(item: KubeObject) -> None:
    match item:
        case Node():
            node_units(item.status.allocatable, "status.allocatable")
            node_units(item.status.capacity, "status.capacity")
        case CronJob():
            CronSchedule.parse(item.spec.schedule, item.spec.time_zone or "UTC")
        case Deployment():
            rolling_limits(item.spec.strategy or DeploymentStrategy(), 1)
        case PodDisruptionBudget():
            from_label_selector(item.spec.selector)
            for value in (item.spec.min_available, item.spec.max_unavailable):
                share_of(value or 0, 1, rounding_up=True)
        case PersistentVolumeClaim():
            requested_storage(item)
        case PersistentVolume():
            Offer.of(item)


def _check_pod(pod: Pod, metadata: ObjectMeta, path: str, where: str, source: str) -> None:
    """`path` is where the pod's spec hangs in the object."""
    try:
        duration_s(metadata)
        fails(metadata)
        spec_only = Pod(ObjectMeta("probe", "default"), pod.spec)
        probe = Cluster()
        probe.put(spec_only)
        if not pod.spec.node_name and not pod.spec.priority_class_name:
            probe.put(admit_pod(spec_only, {}))
    except AmountError as mistake:
        raise ManifestError(source, where, f"{path}{mistake}") from None
    except SelectorError as mistake:
        raise ManifestError(source, where, f"{path}spec.affinity: {mistake}") from None
    except AnnotationError as mistake:
        raise ManifestError(source, where, f"{path}metadata.annotations: {mistake}") from None


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
