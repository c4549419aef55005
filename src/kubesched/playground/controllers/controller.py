"""What a controller is: it says whom a change concerns, and looks at one object at a time.

What it plans, `PlanWriter` carries out: it creates, patches and deletes at the server, and tells the view of the
answers. Updates are merge patches of what changed, the status apart from the rest; they are refused by the server when
the object has changed since (409), and the controller looks again. Something to delete that is gone already is fine.

Next: `runner`, which calls controllers; `workload` for the commonest; `whole_objects` for what is sent.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.event_forms import NORMAL
from kubesched.k8s.client.event_recorder import EventSource, RecordEvent
from kubesched.k8s.client.requester import MERGE_PATCH, Requester
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.merge_patch import merge_patch
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import ObjectReference
from kubesched.k8s.workloads.actions import SAFE_LETTERS, Action, CreateObject, DeleteObject, Plan, UpdateObject
from kubesched.playground.controllers.cluster_view import ClusterView
from kubesched.playground.controllers.kinds import DiscoveredKinds, Homes, home_of, kind_name
from kubesched.playground.controllers.whole_objects import TYPED, Body, other_body, plain

AT_ONCE = 24
"""How many objects of one plan are created or deleted side by side."""

_WHOLE_KINDS = frozenset(TYPED.values())
BodyOf = Callable[[KubeObject], Body | None]
"""What is sent for a planned object; None: what the model has."""


class PlanListener:
    """Told what became of each action of a plan. This one does not care."""

    def done(self, action: Action, before: KubeObject | None) -> None:
        """`before` is what was known of an object that is changed."""

    def failed(self, action: Action, error: ApiError) -> None:
        """It is raised, too."""


NOBODY = PlanListener()


class PlanWriter:
    def __init__(self, api: Requester, view: ClusterView, home_of: Homes = home_of) -> None:
        self.api = api
        self._view = view
        self._home_of = home_of

    async def carry_out(self, plan: Plan, body_of: BodyOf = lambda item: None, listener: PlanListener = NOBODY) -> None:
        """In order: what is made, what is changed, what is deleted. The first failure of each is raised at its end."""
        creates = [action for action in plan.actions if isinstance(action, CreateObject)]
        pods = [action for action in creates if isinstance(action.item, Pod)]
        others = [action for action in creates if not isinstance(action.item, Pod)]
        updates = [action for action in plan.actions if isinstance(action, UpdateObject)]
        deletes = [action for action in plan.actions if isinstance(action, DeleteObject)]
        await _side_by_side([partial(self._carry_out, action, body_of, listener) for action in others])
        # nobody is to see a pod whose claims do not exist; and when the first is refused, so are the others
        await _side_by_side([partial(self._carry_out, action, body_of, listener) for action in pods], first=1)
        for action in updates:
            await self._carry_out(action, body_of, listener)
        await _side_by_side([partial(self._carry_out, action, body_of, listener) for action in deletes])

    async def _carry_out(self, action: Action, body_of: BodyOf, listener: PlanListener) -> None:
        item = action.item
        before = self._view.by_uid(item.metadata.uid)
        try:
            if isinstance(action, CreateObject):
                await self.create(item, body_of(item))
            elif isinstance(action, UpdateObject):
                await self.update(item)
            else:
                await self.delete(item)
        except ApiError as error:
            listener.failed(action, error)
            raise
        listener.done(action, before)

    async def create(self, item: KubeObject, body: Body | None = None) -> None:
        home = self._home_of(type(item))
        if body is None:
            body = other_body(item, home.api_version, kind_name(type(item)))
        answer = await self.api.request("POST", home.path(item.namespace), body=msgspec.json.encode(body))
        self._told(type(item), answer)

    async def update(self, item: KubeObject) -> None:
        """The object is to be as it is here, where the model looks."""
        known = self._view.by_uid(item.metadata.uid)
        if known is None:
            return
        patch = merge_patch(plain(known), plain(item))
        status = patch.pop("status", None)
        for reference in (patch.get("metadata") or {}).get("ownerReferences") or ():
            if reference.get("controller"):
                reference["blockOwnerDeletion"] = True  # as every controller's reference has it
        if patch:
            patch.setdefault("metadata", {})["resourceVersion"] = known.metadata.resource_version
            await self.patch(item, patch)
            known = self._view.by_uid(item.metadata.uid) or known
        if status:
            version = known.metadata.resource_version
            await self.patch(item, {"metadata": {"resourceVersion": version}, "status": status}, subresource="status")

    async def patch(
        self, item: KubeObject, patch: Body, *, subresource: str = "", content_type: str = MERGE_PATCH
    ) -> None:
        path = self._home_of(type(item)).path(item.namespace, item.name, subresource)
        answer = await self.api.request("PATCH", path, body=msgspec.json.encode(patch), content_type=content_type)
        self._told(type(item), answer)

    async def delete(self, item: KubeObject, *, propagation: str = "Background", grace_s: int | None = None) -> None:
        await self.delete_at(self._home_of(type(item)).path(item.namespace, item.name), item, propagation, grace_s)

    async def delete_at(self, path: str, item: KubeObject, propagation: str, grace_s: int | None = None) -> None:
        """Of this very object, not of a namesake that came after it."""
        options: Body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {"uid": item.metadata.uid},
        }
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        try:
            answer = await self.api.request("DELETE", path, body=msgspec.json.encode(options))
        except ApiError as error:
            if error.is_not_found or error.is_conflict:  # gone, or another one by now
                return
            raise
        found = msgspec.json.decode(answer)
        metadata = found.get("metadata") or {}
        is_same = found.get("kind") != "Status" and metadata.get("uid") == item.metadata.uid
        if is_same and metadata.get("deletionTimestamp") and (metadata.get("finalizers") or _has_grace(metadata)):
            self._told(type(item), answer)
        else:
            self._view.remove(item)

    def _told(self, kind: type[KubeObject], answer: bytes) -> None:
        self._view.put_answer(kind, answer, kind in _WHOLE_KINDS)


def _has_grace(metadata: Body) -> bool:
    return bool(metadata.get("deletionGracePeriodSeconds"))


async def _side_by_side(calls: Sequence[Callable[[], Any]], first: int = AT_ONCE) -> None:
    """`first` of them, then twice as many each time, up to a limit; until one fails."""
    start, size = 0, first
    while start < len(calls):
        results = await asyncio.gather(*(call() for call in calls[start : start + size]), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        start, size = start + size, min(2 * size, AT_ONCE)


class RandomNames:
    """As an API server draws them. Never the same twice, as far as chance goes."""

    def name(self, prefix: str) -> str:
        return prefix[:58] + "".join(secrets.choice(SAFE_LETTERS) for _ in range(5))

    def uid(self, what: str) -> str:
        return secrets.token_hex(16)


def say_nothing(_who: EventSource, _about: ObjectReference, _reason: str, _note: str, _type: str) -> None:
    """For controllers that nobody listens to."""


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What all controllers share."""

    view: ClusterView
    writer: PlanWriter
    now_s: Callable[[], float] = time.time
    """Seconds since the epoch."""
    names: RandomNames = field(default_factory=RandomNames)
    tell: RecordEvent = say_nothing
    home_of: Homes = home_of

    def event(self, component: str, item: KubeObject, reason: str, note: str, type_: str = NORMAL) -> None:
        """For `kubectl describe` of this object."""
        self.tell(EventSource(component), reference_to(item, self.home_of), reason, note, type_)


def reference_to(item: KubeObject, home_of: Homes) -> ObjectReference:
    metadata = item.metadata
    return ObjectReference(
        kind=kind_name(type(item)),
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        api_version=home_of(type(item)).api_version,
        resource_version=metadata.resource_version,
    )


class Controller(Protocol):
    """One kind of object that is looked after."""

    @property
    def name(self) -> str: ...

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        """Keys of the objects to look at because of this change."""
        ...

    async def reconcile(self, key: str) -> float | None:
        """Looks at the object as it is now and does what is to be done; in how many seconds to look again, if so.
        Errors are logged, and it is tried again later."""
        ...


class AllKindsController:
    """What controllers that look after objects of every kind begin with: the context, and the kinds of the server."""

    def __init__(self, context: ControllerContext, discovered: DiscoveredKinds) -> None:
        self._context = context
        self._view = context.view
        self._discovered = discovered
