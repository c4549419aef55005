"""The rules of each kind of workload that makes pods, as `workload` asks for them.

What they decide is in `kubesched.k8s.workloads`, the same as in a simulation. Next: `job_rules` for jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from kubesched.k8s.model.apps import DaemonSet, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, PodTemplateSpec, ReplicationController
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.actions import PACED, Plan
from kubesched.k8s.workloads.daemon_sets import sync_daemon_set
from kubesched.k8s.workloads.replicas import sync_replicas
from kubesched.k8s.workloads.stateful_sets import OlderTemplate, partition_of, sync_stateful_set
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, REVISION_HASH_LABEL, Revisions
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.revision_history import keep_revision, older_template
from kubesched.playground.controllers.status.pod_counts import (
    daemon_set_status,
    replica_set_status,
    stateful_set_status,
)
from kubesched.playground.controllers.whole_bodies import claim_body, pod_body

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
