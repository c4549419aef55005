"""The pods that workloads ask for and that are not there yet, for questions about a cluster at rest: all, or one.

A run (`run`) lets controllers act as time passes. Here nothing starts or ends: controllers look until none of them
wants to make anything more, and a set makes its replicas without waiting for one another (`expand`).

For `kubesched explain`, one pod of a workload is made as its controller would create it now, with the claims it needs
(`with_one_pod`). However many replicas a workload asks for, they ask for the same, so that one of them stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from kubesched.explanation.cause import Cause
from kubesched.explanation.findings.finding import CauseKind
from kubesched.explanation.layout import all_of
from kubesched.explanation.overview import OwnedPods
from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet, StatefulSetOrdinals
from kubesched.k8s.model.core import Node, Pod, PodSpec, PriorityClass, ReplicationController, RuntimeClass
from kubesched.k8s.model.limits import (
    PODS,
    LimitRange,
    ResourceQuota,
    is_in_scope,
    missing_amounts,
    scope_selectors,
    usage,
)
from kubesched.k8s.model.manifests import KINDS, ManifestError, Manifests, collector_paused
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.quantity import Quantity, parse
from kubesched.k8s.model.resource import ResourceClaimTemplate
from kubesched.k8s.model.storage import PersistentVolumeClaim, StorageClass
from kubesched.k8s.workloads.actions import Bursts, CreateObject, DeleteObject, Plan, SeededNames, UpdateObject
from kubesched.k8s.workloads.admission import AdmissionError, with_object_defaults
from kubesched.k8s.workloads.daemon_sets import DaemonRules, with_daemon_tolerations
from kubesched.k8s.workloads.deployments import find_current
from kubesched.k8s.workloads.pod_states import is_active
from kubesched.simulator.loading import SimulationInput, check
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.run import bursts_for
from kubesched.simulator.virtual.admission import ObjectAdmission
from kubesched.simulator.virtual.controllers import MAKES_PODS, ControllerRules
from kubesched.simulator.virtual.kubelets import BudgetCoverage
from kubesched.simulator.virtual.store import ClusterStore, VirtualClock

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

    def give_claims(pod: Pod) -> None:
        """Makes the claims that the pod needs, and notes in its status which ones are for it."""
        for needed in rules.plan(pod).actions:
            if isinstance(needed, CreateObject):
                admit(needed.item, is_new=True)
            else:
                store.update(needed.item)

    with collector_paused():
        put_in = [admit(item, is_new=False) for item in given.objects]
        makers = {(type(item), item.key): item for item in put_in if isinstance(item, _MAKERS)}
        for pod in put_in:
            if isinstance(pod, Pod) and pod.spec.resource_claims and not pod.spec.node_name:
                give_claims(pod)
        unseen = list(makers.values())  # of one that was given twice, as it became
        while unseen:
            item = unseen.pop(0)
            item = store.find(type(item), item.key) or item
            if isinstance(item, Deployment):
                unseen += _resized(store, rules, item)
            if isinstance(item, StatefulSet):
                item = replace(item, spec=replace(item.spec, pod_management_policy="Parallel"))
            planned = rules.plan(item)
            _end_surplus(store, item, planned)
            wanted = [action.item for action in planned.actions if isinstance(action, CreateObject)]
            if planned.n_held_back and not wanted:
                text = f"{planned.n_held_back:,} of its pods are not made: they are more than the nodes could ever hold"
                refused[f"{type(item).__name__} {item.key}: {text}"] = None
            made = [admitted for new in wanted if (admitted := admit(new, is_new=True)) is not None]
            unseen += [new for new in made if isinstance(new, _MAKERS)]
            for pod in made:
                if isinstance(pod, Pod):
                    give_claims(pod)
            if any(isinstance(new, Pod) for new in made):
                unseen.append(item)
    kinds = dict.fromkeys(KINDS.values())
    return ExpandedObjects(
        tuple(item for kind in kinds for item in store.of(kind).values()),
        tuple(refused),
        tuple(item for kind in MAKES_PODS for item in store.of(kind).values()),
        (*store.of(ResourceQuota).values(), *store.of(LimitRange).values()),
    )


def _resized(store: ClusterStore, rules: ControllerRules, owner: Deployment) -> list[ReplicaSet]:
    """The set of a Deployment that was scaled, and that is not being rolled out, has its size."""
    sets = store.owned(owner.metadata.uid, ReplicaSet)
    current = find_current(owner, sets)
    if current is None or any(known.spec.replicas != 0 for known in sets if known is not current):
        return []
    planned = [action.item for action in rules.plan(owner).actions if isinstance(action, UpdateObject)]
    return [store.update(item) for item in planned if isinstance(item, ReplicaSet)]


def _end_surplus(store: ClusterStore, owner: KubeObject, planned: Plan) -> None:
    """The pods beyond the number that a set wants are gone; which ones, its controller says."""
    if not isinstance(owner, ReplicaSet | ReplicationController | StatefulSet):
        return
    n_surplus = sum(map(is_active, store.owned(owner.metadata.uid, Pod))) - (n_wanted(owner) or 0)
    gone = [action.item for action in planned.actions if isinstance(action, DeleteObject)]
    for pod in gone[: max(0, n_surplus)]:
        store.remove(pod)


Workload = Deployment | ReplicaSet | ReplicationController | StatefulSet | Job | CronJob

WORKLOADS: dict[str, type[Workload]] = {
    kind.__name__: kind for kind in (Deployment, ReplicaSet, ReplicationController, StatefulSet, Job, CronJob)
}

_MANY = 2**31
_NEEDED = (LimitRange, PriorityClass, RuntimeClass, StorageClass, PersistentVolumeClaim, ResourceClaimTemplate)
"""What a pod's way in looks at."""


def find_workload(found: Manifests, kind: str, key: str) -> Workload | None:
    struct = WORKLOADS.get(kind)
    if struct is None:
        return None
    return next((item for item in reversed(found.objects) if isinstance(item, struct) and item.key == key), None)


def n_wanted(workload: Workload) -> int | None:
    """How many pods there should be now; None if only the workload decides that."""
    match workload:
        case Deployment() | ReplicaSet() | ReplicationController() | StatefulSet():
            return 1 if workload.spec.replicas is None else workload.spec.replicas
        case Job():
            most = workload.spec.parallelism
            return 1 if most is None else most
        case _:
            return None


def with_one_pod(found: Manifests, kind: str, key: str) -> tuple[Manifests, Pod] | None:
    """The objects that scheduling looks at, with one more pod of the workload, and that pod; None if there is no such
    workload. Raises ManifestError."""
    workload = find_workload(found, kind, key)
    if workload is None:
        return None
    source = found.source_of(workload)
    made = _one_made(found, workload)
    pods = [item for item in made if isinstance(item, Pod)]
    if not pods:
        raise ManifestError(source, f"{kind} {key}", "its controller would create no pod now")
    looked_at = set(KINDS.values())
    kept = [item for item in (*found.objects, *made) if type(item) in looked_at]
    return Manifests(kept, {**found.sources, **{id(item): source for item in made}}, found.ignored), pods[0]


def why_unmade(found: Manifests, kind: str, key: str, n_missing: int | None = None) -> Cause | None:
    """Why pods that should be there are not, as many as the workload says or the caller: what an API server says to
    them. None if it admits them. Raises ManifestError."""
    workload = find_workload(found, kind, key)
    if workload is None:
        return None
    check(workload, None, found.source_of(workload))
    n_there = len(OwnedPods(found.objects).keys(kind, key))
    held = _held_back(workload, n_there)
    if held is not None:
        return held
    try:
        made = _made(found, _of_one(workload, found))
    except AdmissionError as refusal:
        is_class = "PriorityClass" in str(refusal)
        remedy = "Create the class, or correct priorityClassName." if is_class else "Correct the pod template."
        if str(refusal).startswith("RuntimeClass"):
            remedy = "Create the class, or correct runtimeClassName."
        return Cause(
            CauseKind.MISSING_PRIORITY_CLASS if is_class else CauseKind.NO_PODS,
            f"an API server refuses its pods: {refusal}",
            remedy,
        )
    pod = next((item for item in made if isinstance(item, Pod)), None)
    n_missing = n_missing or max(1, (n_wanted(workload) or 1) - n_there)
    return None if pod is None else next(quotas_without_room(found, pod, n_missing), None)


def _held_back(workload: Workload, n_there: int) -> Cause | None:
    """A workload that was told to make no pods: suspended, or scaled to zero."""
    if isinstance(workload, Job) and workload.spec.suspend:
        return Cause(CauseKind.NO_PODS, "it is suspended (spec.suspend)", "Its pods come when that is taken back.")
    if isinstance(workload, Deployment) and workload.spec.paused and not n_there:
        text = "it is paused (spec.paused), and has rolled nothing out yet"
        return Cause(CauseKind.NO_PODS, text, "Its pods come when it is resumed: kubectl rollout resume.")
    return None


def daemons_unmade(found: Manifests, key: str) -> Cause | None:
    """Why a DaemonSet that is there has no pods; None if there is no such set."""
    owner = next((item for item in found.objects if isinstance(item, DaemonSet) and item.key == key), None)
    if owner is None:
        return None
    nodes = [item for item in found.objects if isinstance(item, Node)]
    template = owner.spec.template
    rules = DaemonRules.of(with_daemon_tolerations(PodSpec() if template is None else template.spec))
    n_eligible = sum(rules.should_run_on(node) for node in nodes)
    if not n_eligible:
        text = f"none of {len(nodes)} nodes is for it: its node selector, affinity or tolerations leave all out"
        return Cause(CauseKind.NO_PODS, text, "Correct these in its template, or label the nodes.")
    text = f"{n_eligible} of {len(nodes)} nodes should have one, and its controller has not made any"
    return Cause(CauseKind.NO_PODS, text, "See its events and the log of kube-controller-manager.")


def quotas_without_room(found: Manifests, pod: Pod, n_missing: int) -> Iterator[Cause]:
    """The quotas of the namespace that have no room for so many more such pods."""
    manifest = msgspec.to_builtins(pod)
    taken = usage(PODS, manifest, datetime.fromtimestamp(0, UTC))
    for quota in found.objects:
        if not isinstance(quota, ResourceQuota) or quota.namespace != pod.namespace:
            continue
        if not is_in_scope(PODS, scope_selectors(msgspec.to_builtins(quota.spec)), manifest):
            continue
        hard = quota.status.hard or quota.spec.hard or {}
        unsaid = missing_amounts(PODS, hard, manifest)
        if unsaid:
            text = f"quota {quota.name} refuses its pods: {unsaid}"
            said = {"quota": quota.key, "unsaid": unsaid}
            yield Cause(CauseKind.QUOTA, text, "Say so in the pod template.", fields=said)
            continue
        room = {name: _room_for(quota, name, limit, taken[name]) for name, limit in hard.items() if name in taken}
        n_more = min(room.values(), default=n_missing)
        short = [
            _Exceeded(name, str(taken[name]), str((quota.status.used or {}).get(name, 0)), str(hard[name]))
            for name, n in room.items()
            if n < n_missing
        ]
        if short:
            fields = {"quota": quota.key, "exceeded": [asdict(one) for one in short]}
            told = all_of(
                [f"{one.used} of {one.hard} {one.resource} used, a pod needs {one.requested}" for one in short]
            )
            remedy = "Have the quota raised, run less in the namespace, or ask for less."
            yield Cause(
                CauseKind.QUOTA, f"quota {quota.name} {_state(n_more, n_missing)}: {told}", remedy, fields=fields
            )


def _state(n_more: int, n_missing: int) -> str:
    return f"has room for {n_more} of the {n_missing} that are missing" if n_more else "is used up"


def _room_for(quota: ResourceQuota, resource: str, limit: str | int | float, needed: Quantity) -> int:
    """For how many more pods that need so much."""
    left = parse(limit).nanos - parse((quota.status.used or {}).get(resource, 0)).nanos
    return _MANY if needed.nanos <= 0 else max(0, left // needed.nanos)


@dataclass(frozen=True, slots=True)
class _Exceeded:
    """What a quota does not let one more pod have; amounts as they are written."""

    resource: str
    requested: str
    used: str
    hard: str


@dataclass(frozen=True, slots=True)
class UnmadePods:
    """A workload some of whose pods do not exist, and why."""

    workload: str
    n_there: int
    n_wanted: int
    cause: Cause

    @property
    def note(self) -> str:
        return f"{self.workload} has {self.n_there} of {self.n_wanted} pods: {self.cause.sentence}"


def unmade_pods(found: Manifests, namespace: str | None) -> Iterator[UnmadePods]:
    """The workloads of a namespace, or of all (None), some of whose pods an API server does not admit. Those that
    another one makes are told with that."""
    owned = OwnedPods(found.objects)
    for kind in (Deployment, StatefulSet, Job, ReplicaSet, ReplicationController):
        for item in found.objects:
            if not isinstance(item, kind) or item.metadata.owner_references:
                continue
            if namespace not in (None, item.namespace):
                continue
            wanted, there = n_wanted(item), len(owned.keys(kind.__name__, item.key))
            cause = why_unmade(found, kind.__name__, item.key) if wanted is not None and there < wanted else None
            if cause is not None and wanted is not None:
                yield UnmadePods(f"{kind.__name__} {item.key}", there, wanted, cause)


def _one_made(found: Manifests, workload: Workload) -> list[KubeObject]:
    """What its controllers would create for one pod. Raises ManifestError."""
    source = found.source_of(workload)
    check(workload, None, source)
    try:
        return _made(found, _of_one(workload, found))
    except AdmissionError as refusal:
        where = f"{type(workload).__name__} {workload.key}"
        raise ManifestError(source, where, f"an API server would refuse its pods: {refusal}") from None


def _of_one(workload: Workload, found: Manifests) -> KubeObject:
    """The workload as if it wanted one pod, beside those that are there."""
    match workload:
        case CronJob():
            metadata = ObjectMeta(name=workload.name, namespace=workload.namespace)
            return replace(Job(metadata=metadata), spec=replace(workload.spec.job_template.spec, suspend=False))
        case Job():
            return replace(workload, spec=replace(workload.spec, suspend=False), status=Job().status)
        case StatefulSet():
            taken = {
                item.name for item in found.objects if isinstance(item, Pod) and item.namespace == workload.namespace
            }
            start = 0 if workload.spec.ordinals is None else workload.spec.ordinals.start
            while f"{workload.name}-{start}" in taken:
                start += 1
            return replace(workload, spec=replace(workload.spec, replicas=1, ordinals=StatefulSetOrdinals(start)))
        case Deployment():
            return replace(workload, spec=replace(workload.spec, replicas=1, paused=False))
        case _:
            return replace(workload, spec=replace(workload.spec, replicas=1))


def _made(found: Manifests, workload: KubeObject) -> list[KubeObject]:
    """What controllers create for it, one after another."""
    clock, names = VirtualClock(SimulationOptions().start_s), SeededNames(0)
    store = ClusterStore(clock, names)
    admission = ObjectAdmission(store)
    rules = ControllerRules(clock, store, names, Bursts(most=1), BudgetCoverage(store))
    for item in found.objects:
        if isinstance(item, _NEEDED):
            store.create(with_object_defaults(item))
    made: list[KubeObject] = []
    unseen = [admission.create(workload)]
    while unseen:
        for action in rules.plan(unseen.pop(0)).actions:
            if isinstance(action, CreateObject):
                item = admission.create(action.item)
                made.append(item)
                if isinstance(item, ReplicaSet | Pod):
                    unseen.append(item)
    return made
