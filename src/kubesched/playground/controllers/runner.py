"""All controllers on one set of informers: starts them, hands out what changed, and tries again what failed.

    runner = ControllerRunner(client)
    await runner.start()
    ...
    await runner.stop()

Which controllers a playground has stands at the head. Next: any of the modules named there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.event_recorder import EventBroadcaster
from kubesched.k8s.client.list_watch import Informers, InformerSettings, Pace
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.work_queue import WorkQueue, end_all
from kubesched.k8s.model.apps import DaemonSet, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController
from kubesched.k8s.model.meta import KubeObject
from kubesched.playground.controllers.claim_controllers import (
    AttributesClassProtection,
    ClaimBinder,
    ClaimProtection,
    DeviceClaimRelease,
    GroupClaimController,
    PodClaimController,
    VolumeBinder,
    VolumeProtection,
)
from kubesched.playground.controllers.cluster_view import ClusterView, GoneMeanwhile
from kubesched.playground.controllers.controller import Controller, ControllerContext, PlanWriter
from kubesched.playground.controllers.garbage_collector import GarbageCollector
from kubesched.playground.controllers.group_controllers import PodGroupProtection
from kubesched.playground.controllers.kinds import (
    LIST_OPTIONS,
    REFRESH_S,
    CustomResourceDefinition,
    DiscoveredKinds,
    Homes,
    home_of,
)
from kubesched.playground.controllers.limit_controllers import BudgetController, QuotaController
from kubesched.playground.controllers.namespace_controllers import (
    NamespaceController,
    RootCaPublisher,
    ServiceAccountController,
)
from kubesched.playground.controllers.node_lifecycle import (
    DeviceTaintEvictionController,
    NodeLifecycleController,
    OrphanedPodController,
    TaintEvictionController,
)
from kubesched.playground.controllers.parent_controllers import CronJobController, DeploymentController
from kubesched.playground.controllers.role_aggregation import RoleAggregationController
from kubesched.playground.controllers.workload import WorkloadController
from kubesched.playground.controllers.workload_kinds import (
    DaemonSetRules,
    JobPodRelease,
    JobRules,
    ReplicaRules,
    StatefulSetRules,
)


def all_controllers(
    context: ControllerContext,
    discovered: DiscoveredKinds,
    root_ca_pem: str = "",
    *,
    jobs_have_groups: bool = False,
    groups_have_claims: bool = False,
) -> list[Controller]:
    """`root_ca_pem` is published in every namespace; without one, nothing is. With `jobs_have_groups`, a job that is a
    gang gets a PodGroup; with `groups_have_claims`, the pods of a group share the device claims that it names."""
    publishers = [RootCaPublisher(context, root_ca_pem)] if root_ca_pem else []
    return [
        *publishers,
        DeploymentController(context),
        WorkloadController(context, "replicaset", ReplicaSet, ReplicaRules(context)),
        WorkloadController(context, "replication", ReplicationController, ReplicaRules(context)),
        WorkloadController(context, "statefulset", StatefulSet, StatefulSetRules(context)),
        WorkloadController(context, "daemonset", DaemonSet, DaemonSetRules(context)),
        WorkloadController(context, "job", Job, JobRules(context, jobs_have_groups)),
        JobPodRelease(context),
        CronJobController(context),
        PodClaimController(context, groups_have_claims),
        *([GroupClaimController(context)] if groups_have_claims else []),
        DeviceClaimRelease(context),
        ClaimBinder(context),
        VolumeBinder(context),
        ClaimProtection(context),
        VolumeProtection(context),
        AttributesClassProtection(context),
        PodGroupProtection(context),
        BudgetController(context),
        RoleAggregationController(context),
        NodeLifecycleController(context),
        TaintEvictionController(context),
        DeviceTaintEvictionController(context),
        OrphanedPodController(context),
        NamespaceController(context, discovered),
        ServiceAccountController(context),
        QuotaController(context, discovered),
        GarbageCollector(context, discovered),
    ]


NAME = "controllers"

WORKERS = 4
"""How many objects a controller looks at side by side."""

EVENT_WRITERS = 2
"""Few, so that events do not get in the way of what they tell of."""

PAUSE_S = 0.03
"""Changes of pods come in swarms: their owner is looked at once for all that come in this time."""
_PAUSE_PER_POD_S = 0.0002

_NEVER_OWNED = frozenset({("", "events"), ("events.k8s.io", "events"), ("coordination.k8s.io", "leases")})

_OF_NAMESPACES = frozenset({RootCaPublisher.name, ServiceAccountController.name})
"""They make what must be there before the first pod of a namespace."""

MakeControllers = Callable[[ControllerContext, DiscoveredKinds], Iterable[Controller]]
_log = logging.getLogger("kubesched.controllers")


class ControllerRunner:
    def __init__(
        self, client: RestClient, make: MakeControllers, pace: Pace | None = None, home_of: Homes = home_of
    ) -> None:
        self.view = ClusterView()
        self._events = EventBroadcaster(client, n_writers=EVENT_WRITERS)
        writer = PlanWriter(client, self.view, home_of)
        self.context = ControllerContext(self.view, writer, tell=self._events.tell, home_of=home_of)
        self._informers = Informers(
            client, home_of.watched, InformerSettings(list_options=LIST_OPTIONS, name=NAME), pace
        )
        self._client = client
        self._pace = pace
        self._discovered = DiscoveredKinds(client, time.monotonic)
        self._more_informers: dict[type[KubeObject], Informers] = {}
        self._kinds_changed = asyncio.Event()
        self._controllers = list(make(self.context, self._discovered))
        self._queues = {controller.name: WorkQueue() for controller in self._controllers}
        self._tasks: list[asyncio.Task[None]] = []
        self._may_work = asyncio.Event()
        self._may_work.set()

    async def start(self) -> None:
        """Returns when everything there is has been seen."""
        self.view.listen(self._on_change)
        for informer in self._informers.all():
            informer.add_handler(self.view)
        self._informers.start()
        await self._informers.wait_for_sync(NAME)
        for controller in self._controllers:
            for number in range(WORKERS):
                work = self._work(controller, self._queues[controller.name])
                self._tasks.append(asyncio.create_task(work, name=f"{controller.name} controller {number}"))
        self._tasks.append(asyncio.create_task(self._watch_other_kinds(), name="watch of other kinds"))
        self._tasks.append(asyncio.create_task(self._events.run(), name="events of controllers"))

    async def stop(self) -> None:
        for queue in self._queues.values():
            queue.close()
        await end_all(self._tasks)
        for informers in (self._informers, *self._more_informers.values()):
            await informers.stop()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile nothing is made but what a namespace begins with, and nothing deleted. The objects of a dump come
        one after another: an owner whose pods are still to come would make others in their place."""
        self._may_work.clear()
        try:
            yield
        finally:
            self._may_work.set()

    @property
    def names(self) -> list[str]:
        return [controller.name for controller in self._controllers]

    @property
    def is_idle(self) -> bool:
        """Nobody has anything to do just now."""
        return all(queue.is_idle for queue in self._queues.values())

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        pause_s = 0.0
        item = before if after is None else after
        if isinstance(item, CustomResourceDefinition):
            self._discovered.forget()
            self._kinds_changed.set()
        if isinstance(item, Pod):
            n_siblings = max(
                (self.view.n_dependents(one.uid) for one in item.metadata.owner_references or ()), default=0
            )
            pause_s = PAUSE_S + n_siblings * _PAUSE_PER_POD_S
        for controller in self._controllers:
            try:
                for key in controller.concerned(before, after):
                    self._queues[controller.name].add_after(key, pause_s)
            except Exception:  # noqa: BLE001  one controller's bug must not keep the change from the others
                fields = {"controller": controller.name, "object": "" if item is None else item.name}
                _log.exception("A controller cannot tell whom a change concerns", extra={"fields": fields})

    async def _watch_other_kinds(self) -> None:
        """Kinds that are of interest only because they may belong to others: their metadata is enough."""
        known = {informer.resource.type for informer in self._informers.all()}
        while True:
            self._kinds_changed.clear()
            try:
                kinds = await self._discovered.kinds()
            except (ApiError, Unreachable, AnswerLost) as failure:
                _log.warning("The server does not tell its kinds", extra={"fields": {"err": str(failure)}})
            else:
                await self._watch_just(
                    {
                        kind.home.type: kind.home
                        for kind in kinds
                        if kind.home.type not in known
                        and "watch" in kind.verbs
                        and (kind.home.group, kind.home.plural) not in _NEVER_OWNED
                    }
                )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._kinds_changed.wait(), REFRESH_S)

    async def _watch_just(self, homes: dict[type[KubeObject], Resource]) -> None:
        for gone in self._more_informers.keys() - homes.keys():
            await self._more_informers.pop(gone).stop()
            for item in list(self.view.of(gone).values()):
                self.view.remove(item)
        for type_, home in homes.items():
            if type_ not in self._more_informers:
                informers = Informers(self._client, (home,), InformerSettings(name=NAME), self._pace)
                informers.add_handler(self.view)
                informers.start()
                self._more_informers[type_] = informers

    async def _work(self, controller: Controller, queue: WorkQueue) -> None:
        while True:
            key = await queue.take()
            if controller.name not in _OF_NAMESPACES:
                await self._may_work.wait()
            try:
                again_after_s = await controller.reconcile(key)
            except (ApiError, Unreachable, AnswerLost) as failure:
                self._log_failure(controller, key, failure, queue.failed(key))
            except GoneMeanwhile:
                queue.succeeded(key)  # the deletion itself calls on all whom it concerns
            except Exception:  # noqa: BLE001 - one object that cannot be looked at must not stop all others
                wait_s = queue.failed(key)
                fields = {"controller": controller.name, "object": key, "again_in_s": wait_s}
                _log.exception("A controller failed", extra={"fields": fields})
            else:
                queue.succeeded(key)
                if again_after_s is not None:
                    queue.add_after(key, again_after_s)
            finally:
                queue.done(key)

    def _log_failure(self, controller: Controller, key: str, failure: Exception, wait_s: float) -> None:
        fields = {"controller": controller.name, "object": key, "err": str(failure), "again_in_s": round(wait_s, 3)}
        if isinstance(failure, ApiError) and _is_usual(failure):
            _log.info("Looking again", extra={"fields": fields, "v": 4})
        else:
            _log.warning("A controller could not do what it wanted", extra={"fields": fields})


def _is_usual(error: ApiError) -> bool:
    """Somebody else was faster, or the namespace is on its way out."""
    is_too_late = error.is_forbidden and "because it is being terminated" in error.message
    return error.is_conflict or error.is_not_found or is_too_late
