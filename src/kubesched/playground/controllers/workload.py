"""A controller of one kind of workload: gathers what the rules ask for, has their plan carried out, tells the status.

Everything that makes pods directly is served by this: replica sets, replication controllers, stateful sets, daemon sets
and jobs differ in their rules and in their status. Deployments and cron jobs, which make other workloads, are beside
it.

Objects without an owner that a selector finds are adopted; owned ones that it misses are let go. So a pod whose labels
are changed leaves its replica set (which makes another), and a deployment that is made again takes over the replica
sets that were left behind.

Events about plans that are carried out are in the words of Kubernetes' own controllers: people read them with `kubectl
describe` and `kubectl get events`.

Next: `workload_kinds` for the rules of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.event_forms import NORMAL, WARNING
from kubesched.k8s.client.requester import STRATEGIC_PATCH
from kubesched.k8s.model import selectors
from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController
from kubesched.k8s.model.merge_patch import merge_patch
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.selectors import Selector
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.actions import Action, CreateObject, DeleteObject, Plan, UpdateObject
from kubesched.k8s.workloads.job_pods import JOB_FINALIZER
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.k8s.workloads.templates import owner_reference
from kubesched.playground.controllers.controller import ControllerContext, PlanListener
from kubesched.playground.controllers.status import condition, find_condition, with_condition_set
from kubesched.playground.controllers.whole_objects import Body, plain

K = TypeVar("K", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Claims(Generic[K]):
    """What is to change hands."""

    adopted: list[K]
    released: list[K]


def claims_of(owner: KubeObject, selector: Selector, candidates: Iterable[K]) -> Claims[K]:
    """`candidates` are all objects of the kind in the owner's namespace."""
    adopted: list[K] = []
    released: list[K] = []
    for item in candidates:
        if item.metadata.deletion_timestamp is not None:
            continue
        controller = controller_of(item.metadata)
        matches = selector.matches(item.metadata.labels or {})
        if controller is None and matches:
            adopted.append(item)
        elif controller is not None and controller.uid == owner.metadata.uid and not matches:
            released.append(item)
    return Claims(adopted, released)


def finalizers(owner: KubeObject, entry: Body) -> Body:
    """A job holds its pods until they are counted."""
    if not isinstance(owner, Job):
        return {}
    key = "$deleteFromPrimitiveList/finalizers" if "$patch" in entry else "finalizers"
    return {key: [JOB_FINALIZER]}


async def settle_claims(context: ControllerContext, owner: KubeObject, claims: Claims[K]) -> None:
    """An object that went or changed meanwhile is passed over: there will be another look."""
    reference = {**plain(owner_reference(owner)), "blockOwnerDeletion": True}
    gone = {"$patch": "delete", "uid": owner.metadata.uid}
    for items, entry in ((claims.adopted, reference), (claims.released, gone)):
        for item in items:
            patch = {"metadata": {"uid": item.metadata.uid, "ownerReferences": [entry], **finalizers(owner, entry)}}
            try:
                await context.writer.patch(item, patch, content_type=STRATEGIC_PATCH)
            except ApiError as error:
                if not (error.is_not_found or error.is_conflict):
                    raise


_TELL_FAILURES = (ReplicaSet, ReplicationController)

W = TypeVar("W", bound=KubeObject)
R = TypeVar("R", bound=KubeObject, contravariant=True)


class WorkloadRules(Protocol[R]):
    """What is special about a kind. Pure, but for what it remembers."""

    def plan(self, owner: R) -> Plan: ...

    async def keep_history(self, owner: R) -> None:
        """Of templates, where that is the controller's task."""
        ...

    async def prepare(self, owner: R, plan: Plan) -> None:
        """What must be written before the plan is carried out."""
        ...

    def status(self, owner: R, plan: Plan) -> Body:
        """As it is after the plan; fields that are None are not to be there."""
        ...

    def body_of(self, owner: R, item: KubeObject) -> Body | None:
        """What to send for an object that the plan creates."""
        ...

    def also_concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        """Keys of owners that a change of another kind concerns."""
        ...


class WorkloadController(Generic[W]):
    def __init__(self, context: ControllerContext, name: str, kind: type[W], rules: WorkloadRules[W]) -> None:
        self.name = name
        self._context = context
        self._kind = kind
        self._rules = rules

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, self._kind):
            return () if after is None else (item.key,)
        if isinstance(item, Pod):
            owner = controller_of(item.metadata)
            if owner is None:
                return () if after is None else self._might_adopt(item)
            known = self._context.view.by_uid(owner.uid)
            return (known.key,) if isinstance(known, self._kind) else ()
        return self._rules.also_concerned(before, after)

    def _might_adopt(self, pod: Pod) -> list[str]:
        owners = self._context.view.in_namespace(self._kind, pod.namespace)
        selected = ((owner, selector_of(owner)) for owner in owners)
        return [owner.key for owner, found in selected if found is not None and found.matches(pod.labels)]

    def _claims(self, owner: W, selector: Selector) -> Claims[Pod]:
        """Of a set with many pods, those without an owner are few: all others are looked at by owner."""
        view = self._context.view
        candidates = [*view.owned(owner.metadata.uid, Pod), *view.pods_without_owner(owner.namespace)]
        return claims_of(owner, selector, candidates)

    async def reconcile(self, key: str) -> float | None:
        view = self._context.view
        owner = view.find(self._kind, key)
        if owner is None or owner.metadata.deletion_timestamp is not None:
            return None
        selector = selector_of(owner)
        if selector is not None:
            await settle_claims(self._context, owner, self._claims(owner, selector))
        await self._rules.keep_history(owner)
        plan = self._rules.plan(owner)
        body_of = partial(self._rules.body_of, owner)
        notes = PodNotes(self._context, f"{self.name}-controller", owner)
        await self._rules.prepare(owner, plan)
        if plan.held_back:
            notes.held_back(plan.held_back)
        refusal: ApiError | None = None
        try:
            await self._context.writer.carry_out(_without(plan, owner), body_of, notes)
        except ApiError as error:
            refusal = error
        now = view.find(self._kind, key)
        if now is not None:
            status = self._rules.status(now, plan)
            if self._kind in _TELL_FAILURES:
                known = view.whole(now).status.get("conditions") or ()
                status["conditions"] = with_failure(known, refusal, plan.held_back, self._context.now_s())
            notes.tell_end(view.whole(now).status, status)
            if refusal is None or self._kind in _TELL_FAILURES:
                await write_status(self._context, now, status)
        if refusal is not None:
            raise refusal
        if plan.is_cut:
            return 0.0
        return None if plan.again_at_s is None else max(0.0, plan.again_at_s - self._context.now_s())


def selector_of(owner: KubeObject) -> Selector | None:
    """Of the objects that belong to it; None where nothing is adopted."""
    if isinstance(owner, ReplicationController):
        return selectors.from_labels(owner.spec.selector) if owner.spec.selector else None
    if isinstance(owner, ReplicaSet | StatefulSet | DaemonSet | Deployment | Job) and owner.spec.selector is not None:
        return selectors.from_label_selector(owner.spec.selector)
    return None


def with_failure(known: Iterable[Body], refusal: ApiError | None, held_back: str, now_s: float) -> list[Body] | None:
    """The conditions with the one that says why pods cannot be made, or without it; None for none at all."""
    if refusal is not None and refusal.is_conflict:
        return list(known) or None  # somebody else was faster: nothing is known of what would have been
    message = held_back if refusal is None else refusal.message
    if not message:
        return [one for one in known if one["type"] != "ReplicaFailure"] or None
    before = find_condition(known, "ReplicaFailure")
    if before is not None:
        return list(known)
    return with_condition_set(known, condition("ReplicaFailure", True, "FailedCreate", message), now_s)


def _without(plan: Plan, owner: KubeObject) -> Plan:
    """The owner's own status is written apart, with what the rules do not know of."""
    kept = (a for a in plan.actions if not (isinstance(a, UpdateObject) and type(a.item) is type(owner)))
    return Plan(list(kept), plan.again_at_s)


async def write_status(context: ControllerContext, owner: KubeObject, status: Body) -> None:
    """Where it differs from what is known. None takes a field away."""
    before = context.view.whole(owner).status
    patch = merge_patch({key: before.get(key) for key in status}, status)
    if patch:
        await context.writer.patch(owner, {"status": patch}, subresource="status")


class PodNotes(PlanListener):
    """Of workloads that make pods."""

    def __init__(self, context: ControllerContext, component: str, owner: KubeObject) -> None:
        self._context = context
        self._component = component
        self._owner = owner

    def done(self, action: Action, before: KubeObject | None) -> None:
        verb = _verb(action)
        if verb and isinstance(action.item, Pod | PersistentVolumeClaim):
            self._tell(f"Successful{verb}", self._note(verb, action.item))

    def failed(self, action: Action, error: ApiError) -> None:
        verb = _verb(action)
        if not verb or not isinstance(action.item, Pod) or _is_namespace_ending(error) or error.is_already_exists:
            return
        doing = {"Create": "creating", "Delete": "deleting"}[verb]
        note = f"Error {doing}: {error.message}"
        if isinstance(self._owner, StatefulSet):
            note = f"{verb} Pod {action.item.name} in StatefulSet {self._owner.name} failed error: {error.message}"
        self._tell(f"Failed{verb}", note, WARNING)

    def held_back(self, why: str) -> None:
        self._tell("FailedCreate", f"Error creating: {why}", WARNING)

    def tell_end(self, before: Body, after: Body) -> None:
        """Of a job, when its status is about to say so."""
        if not isinstance(self._owner, Job):
            return
        known = _true_conditions(before)
        for kind, now in _true_conditions(after).items():
            if kind in known:
                continue
            if kind == "Complete":
                self._tell("Completed", "Job completed")
            elif kind == "Failed":
                self._tell(now.get("reason", "Failed"), now.get("message", ""), WARNING)
            elif kind == "Suspended":
                self._tell("Suspended", "Job suspended")
        is_told = any(one["type"] == "Suspended" for one in after.get("conditions") or ())
        if is_told and "Suspended" in known and "Suspended" not in _true_conditions(after):
            self._tell("Resumed", "Job resumed")

    def _note(self, verb: str, item: Pod | PersistentVolumeClaim) -> str:
        if not isinstance(self._owner, StatefulSet):
            return f"{verb}d pod: {item.name}"
        if isinstance(item, Pod):
            return f"{verb} Pod {item.name} in StatefulSet {self._owner.name} successful"
        pod_name = item.name[item.name.find(f"-{self._owner.name}-") + 1 :]
        return f"{verb} Claim {item.name} Pod {pod_name} in StatefulSet {self._owner.name} success"

    def _tell(self, reason: str, note: str, type_: str = NORMAL) -> None:
        self._context.event(self._component, self._owner, reason, note, type_)


class ScalingNotes(PlanListener):
    """Of deployments: how their replica sets grow and shrink."""

    def __init__(self, context: ControllerContext, deployment: Deployment) -> None:
        self._context = context
        self._deployment = deployment

    def done(self, action: Action, before: KubeObject | None) -> None:
        if not isinstance(action.item, ReplicaSet) or isinstance(action, DeleteObject):
            return
        old = n_wanted(before) if isinstance(before, ReplicaSet) else 0
        new = n_wanted(action.item)
        if new != old:
            way = "up" if new > old else "down"
            note = f"Scaled {way} replica set {action.item.name} from {old} to {new}"
            self._context.event("deployment-controller", self._deployment, "ScalingReplicaSet", note)

    def failed(self, action: Action, error: ApiError) -> None:
        if isinstance(action, CreateObject) and not _is_namespace_ending(error) and not error.is_already_exists:
            note = f'Failed to create new replica set "{action.item.name}": {error.message}'
            self._context.event("deployment-controller", self._deployment, "ReplicaSetCreateError", note, WARNING)


class JobNotes(PlanListener):
    """Of cron jobs."""

    def __init__(self, context: ControllerContext, owner: CronJob) -> None:
        self._context = context
        self._owner = owner

    def done(self, action: Action, before: KubeObject | None) -> None:
        verb = _verb(action)
        if verb and isinstance(action.item, Job):
            note = f"{verb}d job {action.item.name}"
            self._context.event("cronjob-controller", self._owner, f"Successful{verb}", note)


def _verb(action: Action) -> str:
    if isinstance(action, UpdateObject):
        return ""
    return "Create" if isinstance(action, CreateObject) else "Delete"


def _true_conditions(status: Body) -> dict[str, Body]:
    return {known["type"]: known for known in status.get("conditions") or () if known.get("status") == "True"}


def _is_namespace_ending(error: ApiError) -> bool:
    return error.is_forbidden and "because it is being terminated" in error.message
