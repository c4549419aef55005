"""Whose is it? Objects without an owner that a selector finds are adopted; owned ones that it misses are let go.

So a pod whose labels are changed leaves its replica set (which makes another), and a deployment that is made anew takes
over the replica sets that were left behind. Pure rules, and the two patches that carry them out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import STRATEGIC_PATCH
from kubesched.k8s.model.apps import Job
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.selectors import Selector
from kubesched.k8s.workloads.job_pods import JOB_FINALIZER
from kubesched.k8s.workloads.templates import owner_reference
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.whole_bodies import plain

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
