"""What a controller is: it says whom a change concerns, and looks at one object at a time.

Next: `runner`, which calls them; `workload` for the commonest.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kubesched.k8s.client.event_forms import NORMAL
from kubesched.k8s.client.event_recorder import EventSource, RecordEvent
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import ObjectReference
from kubesched.k8s.workloads.actions import SAFE_LETTERS
from kubesched.playground.controllers.cluster_view import ClusterView
from kubesched.playground.controllers.kinds import DiscoveredKinds, Homes, home_of, kind_name
from kubesched.playground.controllers.plan_writer import PlanWriter


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
