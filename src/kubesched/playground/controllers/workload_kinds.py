"""The rules of each kind of workload that makes pods, as `workload` asks for them.

What they decide is in `kubesched.k8s.workloads`, the same as in a simulation.

The templates that a stateful set or daemon set has had are kept as ControllerRevisions, numbered in the order of use,
for `kubectl rollout history` and `undo`. A template that comes back gets the highest number again. Old ones go when
there are more than `revisionHistoryLimit`; those that pods were made from stay.

What has ended of a job is noted in the status before its pods are let go, and counted afterwards: whatever happens in
between, each pod is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import STRATEGIC_PATCH
from kubesched.k8s.model.apps import DaemonSet, Job, JobStatus, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, PodTemplateSpec, ReplicationController
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.scheduling import PodGroup, Workload
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.actions import PACED, Plan, UpdateObject
from kubesched.k8s.workloads.daemon_sets import sync_daemon_set
from kubesched.k8s.workloads.job_pods import INDEX_KEY, JOB_FINALIZER, JobFailures, completion_index, count
from kubesched.k8s.workloads.jobs import OWN_MANAGER, sync_job
from kubesched.k8s.workloads.replicas import sync_replicas
from kubesched.k8s.workloads.stateful_sets import OlderTemplate, partition_of, sync_stateful_set
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, REVISION_HASH_LABEL, Revisions, owner_reference
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.group_controllers import JobGroups
from kubesched.playground.controllers.kinds import ControllerRevision, home_of, kind_name
from kubesched.playground.controllers.status import (
    daemon_set_status,
    job_status,
    noted_status,
    replica_set_status,
    stateful_set_status,
)
from kubesched.playground.controllers.whole_objects import Body, claim_body, plain, pod_body
from kubesched.playground.controllers.workload import selector_of, write_status

DEFAULT_HISTORY = 10
_encode_in_order = msgspec.json.Encoder(order="sorted").encode
_HASH_LABEL = "controller.kubernetes.io/hash"


async def keep_revision(context: ControllerContext, owner: KubeObject, hash_: str) -> None:
    """The template that it has now, as the newest."""
    known = sorted(context.view.owned(owner.metadata.uid, ControllerRevision), key=lambda one: one.revision)
    name = f"{owner.name}-{hash_}"
    current = next((one for one in known if one.name == name), None)
    highest = known[-1].revision if known else 0
    if current is None:
        await _create(context, owner, name, hash_, highest + 1)
    elif current is not known[-1]:
        await context.writer.patch(current, {"revision": highest + 1})
    await _tidy_up(context, owner, [one for one in known if one.name != name])


@dataclass(frozen=True, slots=True)
class KeptTemplate:
    """A template that a set had before: whole and as the model has it, and its hash."""

    whole: Body
    typed: PodTemplateSpec
    revision: str


def older_template(context: ControllerContext, owner: StatefulSet) -> KeptTemplate | None:
    """What the set's `currentRevision` names; None if that is not kept."""
    known = context.view.find(ControllerRevision, f"{owner.namespace}/{owner.status.current_revision}")
    if known is None:
        return None
    spec = msgspec.json.decode(known.data).get("spec") or {}
    whole = {key: value for key, value in (spec.get("template") or {}).items() if key != "$patch"}
    return KeptTemplate(whole, msgspec.convert(whole, PodTemplateSpec), known.name.rpartition("-")[2])


async def _create(context: ControllerContext, owner: KubeObject, name: str, hash_: str, revision: int) -> None:
    template = deepcopy(context.view.whole(owner).spec.get("template") or {})
    labels = (template.get("metadata") or {}).get("labels") or {}
    reference = {**plain(owner_reference(owner)), "blockOwnerDeletion": True}
    metadata = {
        "name": name,
        "namespace": owner.namespace,
        "labels": {**labels, _HASH_LABEL: hash_, REVISION_HASH_LABEL: hash_},
        "ownerReferences": [reference],
    }
    body: Body = {
        "apiVersion": home_of(ControllerRevision).api_version,
        "kind": kind_name(ControllerRevision),
        "metadata": metadata,
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": revision,
    }
    body["data"] = msgspec.json.decode(_encode_in_order(body["data"]))  # clients compare it letter by letter
    made = ControllerRevision(metadata=owner.metadata, revision=revision)
    try:
        await context.writer.create(made, body)
    except ApiError as error:
        if not error.is_already_exists:  # of ours, and not seen yet: the next look finds it
            raise


async def _tidy_up(context: ControllerContext, owner: KubeObject, old: list[ControllerRevision]) -> None:
    limit = context.view.whole(owner).spec.get("revisionHistoryLimit", DEFAULT_HISTORY)
    hashes = {
        pod.labels.get(REVISION_HASH_LABEL, "").rpartition("-")[2]
        for pod in context.view.owned(owner.metadata.uid, Pod)
    }
    unused = [one for one in old if one.name.rpartition("-")[2] not in hashes]
    for one in unused[: max(0, len(unused) - limit)]:
        await context.writer.delete(one)


W = TypeVar("W", bound=KubeObject)
PodMaker = ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job


class PodMaking(Generic[W]):
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def _pods(self, owner: KubeObject) -> list[Pod]:
        return self._view.owned(owner.metadata.uid, Pod)

    def _pod_body(self, owner: PodMaker, pod: Pod) -> Body:
        whole = self._view.whole(owner).spec.get("template") or {}
        return pod_body(pod, whole, owner.spec.template or EMPTY_TEMPLATE)

    def also_concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        return ()

    async def keep_history(self, owner: W) -> None:
        """Those that have one say so."""

    async def prepare(self, owner: W, plan: Plan) -> None:
        """Nothing, but for jobs."""


class ReplicaRules(PodMaking[ReplicaSet | ReplicationController]):
    """Of replica sets and replication controllers."""

    def plan(self, owner: ReplicaSet | ReplicationController) -> Plan:
        return sync_replicas(owner, self._pods(owner), self._context.names, PACED, self._context.now_s())

    def status(self, owner: ReplicaSet | ReplicationController, plan: Plan) -> Body:
        return replica_set_status(owner, self._pods(owner), self._context.now_s())

    def body_of(self, owner: ReplicaSet | ReplicationController, item: KubeObject) -> Body | None:
        return self._pod_body(owner, item) if isinstance(item, Pod) else None


class LiveRevisions(Revisions):
    """Here every pod was made by us: one with another hash has another template."""

    def is_current(self, owner: KubeObject, template: PodTemplateSpec | None, pod: Pod) -> bool:
        own = pod.labels.get(REVISION_HASH_LABEL, "").rpartition("-")[2]
        return own == self.current(owner, template)


class StatefulSetRules(PodMaking[StatefulSet]):
    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._revisions = LiveRevisions()

    async def keep_history(self, owner: StatefulSet) -> None:
        await keep_revision(self._context, owner, self._revisions.current(owner, owner.spec.template))

    def plan(self, owner: StatefulSet) -> Plan:
        claims = self._view.of(PersistentVolumeClaim)
        now_s = self._context.now_s()
        found = older_template(self._context, owner) if partition_of(owner) else None
        older = None if found is None else OlderTemplate(found.typed, found.revision)
        return sync_stateful_set(owner, self._pods(owner), claims, self._revisions, PACED, now_s, older)

    def status(self, owner: StatefulSet, plan: Plan) -> Body:
        now_s = self._context.now_s()
        revision = f"{owner.name}-{self._revisions.current(owner, owner.spec.template)}"
        return stateful_set_status(owner, self._pods(owner), revision, self._view.whole(owner).status, now_s)

    def body_of(self, owner: StatefulSet, item: KubeObject) -> Body | None:
        if isinstance(item, PersistentVolumeClaim):
            return claim_body(item, self._view.whole(owner).spec, owner.name)
        if not isinstance(item, Pod):
            return None
        older = older_template(self._context, owner)
        if older is not None and item.labels.get(REVISION_HASH_LABEL) == f"{owner.name}-{older.revision}":
            body = pod_body(item, older.whole, older.typed)
        else:
            body = self._pod_body(owner, item)
        body["spec"] |= {"hostname": item.name}
        service = self._view.whole(owner).spec.get("serviceName")
        if service:
            body["spec"]["subdomain"] = service
        return body


class DaemonSetRules(PodMaking[DaemonSet]):
    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._revisions = LiveRevisions()

    async def keep_history(self, owner: DaemonSet) -> None:
        await keep_revision(self._context, owner, self._revisions.current(owner, owner.spec.template))

    def plan(self, owner: DaemonSet) -> Plan:
        nodes = list(self._view.of(Node).values())
        now_s = self._context.now_s()
        return sync_daemon_set(owner, self._pods(owner), nodes, self._context.names, self._revisions, now_s)

    def status(self, owner: DaemonSet, plan: Plan) -> Body:
        revision = self._revisions.current(owner, owner.spec.template)
        nodes = self._view.of(Node).values()
        return daemon_set_status(owner, self._pods(owner), nodes, revision, self._context.now_s())

    def body_of(self, owner: DaemonSet, item: KubeObject) -> Body | None:
        return self._pod_body(owner, item) if isinstance(item, Pod) else None

    def also_concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if not isinstance(before or after, Node):
            return ()
        if isinstance(before, Node) and isinstance(after, Node) and _looks_alike(before, after):
            return ()
        return list(self._view.of(DaemonSet))


def _looks_alike(before: Node, after: Node) -> bool:
    return before.metadata.labels == after.metadata.labels and before.spec == after.spec


_INDEX_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX_KEY}']"}},
}


class JobRules(PodMaking[Job]):
    def __init__(self, context: ControllerContext, jobs_have_groups: bool = False) -> None:
        super().__init__(context)
        self._failures = JobFailures()
        self._groups = JobGroups(context) if jobs_have_groups else None

    def plan(self, owner: Job) -> Plan:
        return sync_job(owner, self._pods(owner), self._context.names, self._failures, self._context.now_s(), PACED)

    async def prepare(self, owner: Job, plan: Plan) -> None:
        if self._groups is not None and not owner.is_finished and owner.spec.managed_by in (None, OWN_MANAGER):
            await self._groups.ensure(owner, self._pods(owner))
        lets_go = any(isinstance(action, UpdateObject) and isinstance(action.item, Pod) for action in plan.actions)
        if not lets_go or owner.is_finished:
            return
        counted = count(owner, self._pods(owner), JobFailures(), self._context.now_s())
        now = self._view.find(Job, owner.key)
        if now is not None:
            await write_status(self._context, now, noted_status(counted.status, plain(counted.newly)))

    def status(self, owner: Job, plan: Plan) -> Body:
        if owner.is_finished or owner.spec.managed_by not in (None, OWN_MANAGER):
            return {}
        return job_status(
            _planned_status(owner, plan), self._pods(owner), self._view.whole(owner).status, self._context.now_s()
        )

    def body_of(self, owner: Job, item: KubeObject) -> Body | None:
        if not isinstance(item, Pod):
            return None
        body = self._pod_body(owner, item)
        group = self._groups.group_of(owner) if self._groups is not None else None
        if group is not None:
            body["spec"]["schedulingGroup"] = {"podGroupName": group.name}
        index = completion_index(item)
        if index is not None:
            body["spec"]["hostname"] = f"{owner.name}-{index}"
            for container in (*body["spec"].get("initContainers", ()), *body["spec"].get("containers", ())):
                known = container.setdefault("env", [])
                if not any(one["name"] == _INDEX_VARIABLE["name"] for one in known):
                    known.append(_INDEX_VARIABLE)
        return body

    def also_concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        """The job whose workload or group went."""
        if self._groups is None or after is not None or not isinstance(before, Workload | PodGroup):
            return ()
        owner = controller_of(before.metadata)
        job = self._view.by_uid(owner.uid) if owner is not None else None
        return (job.key,) if isinstance(job, Job) else ()


def _planned_status(owner: Job, plan: Plan) -> JobStatus:
    updates = [action.item for action in plan.actions if isinstance(action, UpdateObject)]
    return next((item.status for item in updates if isinstance(item, Job)), owner.status)


class JobPodRelease:
    """Pods that keep a job's finalizer although there is no job that counts them."""

    name = "job-pod-release"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, Pod):
            return (item.key,) if after is not None and JOB_FINALIZER in (item.metadata.finalizers or ()) else ()
        if isinstance(item, Job) and (after is None or item.metadata.deletion_timestamp is not None):
            return [pod.key for pod in self._view.owned(item.metadata.uid, Pod)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        pod = self._view.find(Pod, key)
        if pod is None or JOB_FINALIZER not in (pod.metadata.finalizers or ()) or self._is_counted(pod):
            return None
        patch = {"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [JOB_FINALIZER]}}
        try:
            await self._context.writer.patch(pod, patch, content_type=STRATEGIC_PATCH)
        except ApiError as error:
            if not (error.is_not_found or error.is_conflict):
                raise
        return None

    def _is_counted(self, pod: Pod) -> bool:
        owner = controller_of(pod.metadata)
        if owner is None:
            jobs = self._view.in_namespace(Job, pod.namespace)
            found = (selector_of(job) for job in jobs if not job.is_finished)
            return any(selector is not None and selector.matches(pod.labels) for selector in found)
        job = self._view.by_uid(owner.uid)
        return isinstance(job, Job) and job.metadata.deletion_timestamp is None
