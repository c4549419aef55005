"""Events about plans that are carried out, in the words of Kubernetes' own controllers.

Read by people with `kubectl describe` and `kubectl get events`. Next: `plan_writer`, which tells what became of a plan.
"""

from __future__ import annotations

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.event_recorder import NORMAL, WARNING
from kubesched.k8s.model.apps import CronJob, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.actions import Action, CreateObject, DeleteObject, UpdateObject
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.plan_writer import PlanListener
from kubesched.playground.controllers.whole_objects import Body


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
        for kind, condition in _true_conditions(after).items():
            if kind in known:
                continue
            if kind == "Complete":
                self._tell("Completed", "Job completed")
            elif kind == "Failed":
                self._tell(condition.get("reason", "Failed"), condition.get("message", ""), WARNING)
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
