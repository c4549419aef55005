"""Deployments: replica sets made, scaled, numbered and tidied up, and the status of the rollout.

Every template that is rolled out gets a number (`deployment.kubernetes.io/revision`), a template that comes back gets a
new one: that is what `kubectl rollout history` and `undo` go by.

Next: `status` for conditions, `kubesched.k8s.workloads.deployments` for how far sets are scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.model.apps import Deployment, ReplicaSet
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.deployments import REVISION_ANNOTATION, find_current, size_annotations, sync_deployment
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.status import (
    condition,
    deployment_status,
    stalls_in_s,
    with_condition_set,
    with_replica_failure,
)
from kubesched.playground.controllers.whole_objects import Body, replica_set_body
from kubesched.playground.controllers.workload import ScalingNotes, claims_of, selector_of, settle_claims, write_status

DEFAULT_HISTORY = 10

_NOT_HANDED_DOWN = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION_ANNOTATION})


class DeploymentController:
    name = "deployment"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, Deployment):
            return () if after is None else (item.key,)
        if isinstance(item, ReplicaSet | Pod):
            return [owner.key for owner in self._view.owners_of(item) if isinstance(owner, Deployment)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        deployment = self._view.find(Deployment, key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return None
        selector = selector_of(deployment)
        if selector is not None:
            candidates = self._view.in_namespace(ReplicaSet, deployment.namespace)
            await settle_claims(self._context, deployment, claims_of(deployment, selector, candidates))
        sets = self._sets(deployment)
        plan = sync_deployment(deployment, sets, self._pods(sets), self._context.now_s())
        notes = ScalingNotes(self._context, deployment)
        try:
            await self._context.writer.carry_out(plan, partial(self._body, deployment), notes)
        except ApiError as error:
            await self._tell_refusal(deployment, error)
            raise
        await self._number(deployment)
        await self._tidy_up(deployment)
        return _soonest(await self._tell_status(key), plan.again_at_s, self._context.now_s())

    async def _tell_refusal(self, deployment: Deployment, error: ApiError) -> None:
        """A name that is taken is counted, so that the next one is another; other refusals are told."""
        status = self._view.whole(deployment).status
        if error.is_already_exists:
            count = status.get("collisionCount", 0) + 1
            await write_status(self._context, deployment, {"collisionCount": count})
        elif not error.is_conflict:
            told = condition("Progressing", False, "ReplicaSetCreateError", error.message)
            now_s = self._context.now_s()
            told["lastUpdateTime"] = print_instant(now_s)
            conditions = with_condition_set(status.get("conditions") or (), told, now_s)
            await write_status(self._context, deployment, {"conditions": conditions})

    def _sets(self, deployment: Deployment) -> list[ReplicaSet]:
        """The oldest first: they shrink first."""
        owned = self._view.owned(deployment.metadata.uid, ReplicaSet)
        return sorted(owned, key=lambda known: (known.metadata.creation_timestamp or "", known.name))

    def _pods(self, sets: Sequence[ReplicaSet]) -> dict[str, list[Pod]]:
        return {known.metadata.uid: self._view.owned(known.metadata.uid, Pod) for known in sets}

    def _body(self, deployment: Deployment, item: KubeObject) -> Body | None:
        if not isinstance(item, ReplicaSet):
            return None
        body = replica_set_body(item, self._view.whole(deployment).spec)
        body["metadata"]["annotations"] = {
            **handed_down(deployment),
            **body["metadata"].get("annotations", {}),
        }
        return body

    async def _number(self, deployment: Deployment) -> None:
        """The current set has the highest number, and the deployment the same."""
        sets = self._sets(deployment)
        current = find_current(deployment, sets)
        if current is None:
            return
        highest = max((revision_of(known) for known in sets if known is not current), default=0)
        revision = revision_of(current)
        if revision <= highest:
            revision = highest + 1
        wanted = {**handed_down(deployment), **size_annotations(deployment), REVISION_ANNOTATION: str(revision)}
        known_annotations = current.metadata.annotations or {}
        if any(known_annotations.get(key) != value for key, value in wanted.items()):
            await self._context.writer.patch(current, {"metadata": {"annotations": wanted}})
        if (deployment.metadata.annotations or {}).get(REVISION_ANNOTATION) != str(revision):
            # through the status, as the number is no wish of the user's: the generation stays
            numbered = {"metadata": {"annotations": {REVISION_ANNOTATION: str(revision)}}}
            await self._context.writer.patch(deployment, numbered, subresource="status")

    async def _tidy_up(self, deployment: Deployment) -> None:
        """Old sets without pods go when there are more than history keeps."""
        limit = self._view.whole(deployment).spec.get("revisionHistoryLimit", DEFAULT_HISTORY)
        sets = self._sets(deployment)
        current = find_current(deployment, sets)
        old = sorted((known for known in sets if known is not current), key=revision_of)
        for known in old[: max(0, len(old) - limit)]:
            if known.spec.replicas == 0 and not self._view.owned(known.metadata.uid, Pod):
                await self._context.writer.delete(known)

    async def _tell_status(self, key: str) -> float | None:
        deployment = self._view.find(Deployment, key)
        if deployment is None:
            return None
        whole, now_s = self._view.whole(deployment), self._context.now_s()
        sets = self._sets(deployment)
        failures = [self._view.whole(known).status.get("conditions") or () for known in sets]
        status = deployment_status(deployment, whole.spec, whole.status, sets, self._pods(sets), now_s)
        status["conditions"] = with_replica_failure(status["conditions"], failures, now_s)
        await write_status(self._context, deployment, status)
        return stalls_in_s(status, whole.spec, now_s)


def revision_of(known: ReplicaSet) -> int:
    text = (known.metadata.annotations or {}).get(REVISION_ANNOTATION, "0")
    return int(text) if text.isdecimal() else 0


def handed_down(deployment: Deployment) -> dict[str, str]:
    """Annotations that a replica set takes over, the cause of the change among them."""
    given = deployment.metadata.annotations or {}
    return {key: value for key, value in given.items() if key not in _NOT_HANDED_DOWN}


def _soonest(in_s: float | None, at_s: float | None, now_s: float) -> float | None:
    times = [for_s for for_s in (in_s, None if at_s is None else max(0.0, at_s - now_s)) if for_s is not None]
    return min(times, default=None)
