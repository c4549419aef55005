"""DynamicResources: pods get the devices that their claims ask for.

The story in order: `pod_claims` finds the claims, `extended` adds one for extended resources, `filtering` asks
`allocator` on which nodes they can be had, `scoring` prefers what was preferred, `reserving` keeps the devices and
`binding` writes that down. What outlives a cycle is in `shared_devices`.

Decides as kube-scheduler does with the feature gates of its release at their defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kubesched.framework.caching import Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import RegisteredEvent
from kubesched.framework.extension_points import Steps
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult, PreFilterResult
from kubesched.framework.scores import Scores, default_normalize_score
from kubesched.framework.status import OK, SKIP, Status
from kubesched.framework.verdicts import ACCEPT_ALL, Verdicts
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.scheduler.config.plugin_args import DynamicResourcesArgs
from kubesched.scheduler.plugins.dynamic_resources import filtering, preparing, reserving, scoring
from kubesched.scheduler.plugins.dynamic_resources.binding import Binding
from kubesched.scheduler.plugins.dynamic_resources.effects import ClaimRequest
from kubesched.scheduler.plugins.dynamic_resources.hints import RequeueHints
from kubesched.scheduler.plugins.dynamic_resources.pod_claims import ClaimNotReadyError, claims_of
from kubesched.scheduler.plugins.dynamic_resources.shared_devices import SharedDevices
from kubesched.scheduler.plugins.dynamic_resources.state import NO_CLAIMS, DynamicResourcesState, state_of
from kubesched.scheduler.plugins.resource_allocation import devices_do_not_matter


class DynamicResources:
    """Profiles of one scheduler give out the same devices: they should be built with the same `shared`."""

    name: ClassVar[str] = "DynamicResources"
    filter_scope: ClassVar[Scope] = Scope.CLUSTER
    score_scope: ClassVar[Scope] = Scope.CLUSTER

    def __init__(self, args: object, handle: Handle, shared: SharedDevices | None = None) -> None:
        self._args = args if isinstance(args, DynamicResourcesArgs) else DynamicResourcesArgs()
        self._handle = handle
        self._shared = SharedDevices() if shared is None else shared
        self._requests: list[ClaimRequest] = []

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return RequeueHints(self._find_claim).events()

    def has_stake_in(self, pod: PodInfo) -> bool:
        return preparing.may_need_devices(pod, self._handle.objects.device_classes)

    def filter_scope_for(self, pod: PodInfo) -> Scope:
        """A pod that needs no devices is never refused, and all nodes are alike to it."""
        return self.filter_scope if self.has_stake_in(pod) else Scope.NODE

    score_scope_for = filter_scope_for

    def objects_changed(self, _cycle: CycleState, pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
        return not pod.spec.resource_claims and devices_do_not_matter(pod, changed)

    def take_effects(self) -> list[ClaimRequest]:
        """What PostFilter and Unreserve ask for since this was last called. Nothing waits for it to be done."""
        taken, self._requests = self._requests, []
        return taken

    # -- stages -------------------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.spec.resource_claims:
            return OK
        try:
            claims_of(pod.pod, self._find_claim)
        except ClaimNotReadyError as problem:
            return Status.unresolvable(str(problem))
        return OK

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        cycle.put(NO_CLAIMS)
        objects = self._handle.objects
        if not preparing.may_need_devices(pod, objects.device_classes):
            return PreFilterResult(SKIP)
        self._shared.refresh(objects)
        timeout_s = self._args.filter_timeout.nanoseconds / 10**9
        prepared = preparing.prepare(pod, self._shared, objects.device_classes, timeout_s)
        if isinstance(prepared, Status):
            return PreFilterResult(prepared)
        if not prepared.claims:
            return PreFilterResult(SKIP)
        cycle.put(prepared)
        return PreFilterResult()

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        state = state_of(cycle)
        if not state.claims:
            return ACCEPT_ALL
        return filtering.filter_nodes(state, nodes, self._shared.book)

    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        state = cycle.find(DynamicResourcesState)
        if state is None:
            return PostFilterResult(Status.error("not found"))
        if not state.claims:
            return PostFilterResult(Status.unschedulable("no new claims to deallocate"))
        status, requests = reserving.free_something(state, pod, self._handle.nodes, statuses)
        self._requests.extend(requests)
        return PostFilterResult(status)

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return scoring.score_nodes(state_of(cycle), nodes)

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=False)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        state = state_of(cycle)
        if not state.claims:
            return OK
        return reserving.reserve(state, self._handle.nodes, node_name, self._shared.book)

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        state = cycle.find(DynamicResourcesState)
        if state is not None and state.claims:
            self._requests.extend(reserving.unreserve(state, pod, self._shared.book))

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        return OK if state_of(cycle).claims else SKIP

    def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        timeout_s = self._args.binding_timeout.nanoseconds / 10**9
        state = state_of(cycle)
        return Binding(state, pod, node_name, self._shared.book, self._refresh_claims, timeout_s).steps()

    # -- claims -------------------------------------------------------------------------------------------------------

    def _find_claim(self, key: str) -> ResourceClaim | None:
        """One claim, without going through all that changed."""
        return self._shared.book.latest(key, self._handle.objects.resource_claims.get(key))

    def _refresh_claims(self) -> None:
        self._shared.book.refresh(self._handle.objects.resource_claims)
