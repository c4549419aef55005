"""The pods that workloads ask for and that are not there yet, made at once: for questions about a cluster at rest.

A run (`run`) lets controllers act as time passes. Here nothing starts or ends: controllers look until none of them
wants to make anything more, and a set makes its replicas without waiting for one another.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.model.apps import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController
from kubesched.k8s.model.limits import LimitRange, ResourceQuota
from kubesched.k8s.model.manifests import KINDS, collector_paused
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.actions import CreateObject
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.k8s.workloads.names import SeededNames
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.run import bursts_for
from kubesched.simulator.virtual.admission import ObjectAdmission
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.controllers import MAKES_PODS, ControllerRules
from kubesched.simulator.virtual.coverage import BudgetCoverage
from kubesched.simulator.virtual.store import ClusterStore

_MAKERS = (Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job)


@dataclass(frozen=True, slots=True)
class ExpandedObjects:
    objects: tuple[KubeObject, ...]
    """Those that scheduling looks at, the pods of workloads among them."""
    refused: tuple[str, ...]
    """Objects that an API server would not have let in, each with its answer; and pods that are too many to make."""
    workloads: tuple[KubeObject, ...]
    """All that make pods."""
    bounds: tuple[ResourceQuota | LimitRange, ...] = ()
    """What an API server holds new pods against."""


def expand(given: SimulationInput, seed: int = 0) -> ExpandedObjects:
    clock, names = VirtualClock(SimulationOptions().start_s), SeededNames(seed)
    store = ClusterStore(clock, names)
    admission = ObjectAdmission(store)
    rules = ControllerRules(clock, store, names, bursts_for(given), BudgetCoverage(store))
    refused: dict[str, None] = {}

    def admit(item: KubeObject, *, is_new: bool) -> KubeObject | None:
        try:
            return admission.create(item) if is_new else admission.apply(item)
        except AdmissionError as refusal:
            refused[f"{type(item).__name__} {item.key}: {refusal}"] = None
            return None

    with collector_paused():
        put_in = [admit(item, is_new=False) for item in given.objects]
        makers = {(type(item), item.key): item for item in put_in if isinstance(item, _MAKERS)}
        unseen = list(makers.values())  # of one that was given twice, as it became
        while unseen:
            item = unseen.pop(0)
            if isinstance(item, StatefulSet):
                item = replace(item, spec=replace(item.spec, pod_management_policy="Parallel"))
            planned = rules.plan(item)
            wanted = [action.item for action in planned.actions if isinstance(action, CreateObject)]
            if planned.n_held_back and not wanted:
                text = f"{planned.n_held_back:,} of its pods are not made: they are more than the nodes could ever hold"
                refused[f"{type(item).__name__} {item.key}: {text}"] = None
            made = [admitted for new in wanted if (admitted := admit(new, is_new=True)) is not None]
            unseen += [new for new in made if isinstance(new, _MAKERS)]
            for pod in made:
                if isinstance(pod, Pod):
                    for needed in rules.plan(pod).actions:
                        admit(needed.item, is_new=isinstance(needed, CreateObject))
            if any(isinstance(new, Pod) for new in made):
                unseen.append(item)
    kinds = dict.fromkeys(KINDS.values())
    return ExpandedObjects(
        tuple(item for kind in kinds for item in store.of(kind).values()),
        tuple(refused),
        tuple(item for kind in MAKES_PODS for item in store.of(kind).values()),
        (*store.of(ResourceQuota).values(), *store.of(LimitRange).values()),
    )
