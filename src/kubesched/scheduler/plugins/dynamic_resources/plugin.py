"""The plugin DynamicResources: pods get the devices that their ResourceClaims ask for.

A pod's path through the files: `state` looks up its claims, `requests` reads what they ask for (and what extended
resources backed by a DeviceClass ask for), `scheduling_cycle` filters, scores and reserves with the answers of
`allocator`, and `binding` writes the allocation in PreBind. What outlives a cycle is in `allocator.SharedDevices`.

Decides as kube-scheduler does with the feature gates of its release at their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from kubesched.framework.caching import PodChange, Scope
from kubesched.framework.claim_questions import ClaimQuestion
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.extension_points import Steps
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult, PreFilterResult, Scores, default_normalize_score
from kubesched.framework.status import OK, SKIP, Status
from kubesched.framework.verdicts import ACCEPT_ALL, Verdicts
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.scheduler.config.plugin_args import DynamicResourcesArgs
from kubesched.scheduler.plugins.dynamic_resources import questions, scheduling_cycle
from kubesched.scheduler.plugins.dynamic_resources.allocator import Allocator, SharedDevices
from kubesched.scheduler.plugins.dynamic_resources.binding import Binding
from kubesched.scheduler.plugins.dynamic_resources.claim_book import identity
from kubesched.scheduler.plugins.dynamic_resources.effects import ClaimRequest
from kubesched.scheduler.plugins.dynamic_resources.outcomes import NotFound
from kubesched.scheduler.plugins.dynamic_resources.state import (
    NO_CLAIMS,
    ClaimNotReadyError,
    DynamicResourcesState,
    claims_of,
    state_of,
)
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
        self._filter_timeout_s = self._args.filter_timeout.nanoseconds / 10**9
        self._requests: list[ClaimRequest] = []
        self._asking: questions.AskingPod | None = None
        """The pod that was last asked about."""

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return RequeueHints(self._find_claim).events()

    def has_stake_in(self, pod: PodInfo) -> bool:
        return scheduling_cycle.may_need_devices(pod, self._handle.objects.device_classes)

    def filter_scope_for(self, pod: PodInfo) -> Scope:
        """A pod that needs no devices is never rejected: all nodes are the same to it."""
        return self.filter_scope if self.has_stake_in(pod) else Scope.NODE

    score_scope_for = filter_scope_for

    def objects_changed(self, _cycle: CycleState, pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
        return not pod.spec.resource_claims and devices_do_not_matter(pod, changed)

    def take_effects(self) -> list[ClaimRequest]:
        """What PostFilter and Unreserve ask for since this was last called. Nothing waits for it to be done."""
        taken, self._requests = self._requests, []
        return taken

    # -- pods of a class ----------------------------------------------------------------------------------------------

    def question_of(self, pod: PodInfo) -> ClaimQuestion | None:
        objects = self._handle.objects
        self._shared.refresh(objects)
        self._asking = questions.find_question(pod, self._shared, objects.device_classes, self._allocator())
        if self._asking is None:
            return None
        order = self._asking.order
        score_scope = Scope.ROW if questions.is_prioritized(order) else Scope.NODE
        return ClaimQuestion(order.fingerprint, Scope.ROW, score_scope)

    def generalize(self, cycle: CycleState, pod: PodInfo) -> None:
        shared = self._shared
        cycle.put(questions.AskedDevices(self._asked_by(pod).order, shared.changed.end, shared.n_offers_to_all))

    def take_over(self, cycle: CycleState, pod: PodInfo) -> bool:
        cycle.drop(questions.AskedDevices)
        cycle.put(self._asked_by(pod).state(self._allocator()))
        return True

    def nodes_to_ask_again(self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]) -> Sequence[str] | None:
        asked = cycle.get(questions.AskedDevices)
        self._shared.refresh(self._handle.objects)
        names = self._shared.changed.since(asked.place)
        if asked.n_offers_to_all != self._shared.n_offers_to_all:
            return None
        asked.place = self._shared.changed.end
        return names

    def _asked_by(self, pod: PodInfo) -> questions.AskingPod:
        """For a pod whose question was found just now."""
        assert self._asking is not None
        assert self._asking.pod is pod
        return self._asking

    def _allocator(self) -> Allocator:
        return Allocator(self._shared, self._handle.objects.device_classes, self._filter_timeout_s)

    # -- extension points ---------------------------------------------------------------------------------------------

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
        if not scheduling_cycle.may_need_devices(pod, objects.device_classes):
            return PreFilterResult(SKIP)
        self._shared.refresh(objects)
        prepared = scheduling_cycle.prepare(pod, self._shared, objects.device_classes, self._filter_timeout_s)
        if isinstance(prepared, Status):
            return PreFilterResult(prepared)
        if not prepared.claims:
            return PreFilterResult(SKIP)
        cycle.put(prepared)
        return PreFilterResult()

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        asked, nodes = cycle.find(questions.AskedDevices), self._handle.nodes
        if asked is None:
            return self.filter(cycle, pod, nodes.take(np.array([node.row]))).status(0)
        outcome = asked.outcome(self._allocator(), nodes, node.row)
        return Status.unresolvable(outcome.reason) if isinstance(outcome, NotFound) else OK

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        asked = cycle.find(questions.AskedDevices)
        if asked is not None:
            return asked.verdicts(self._allocator(), nodes)
        state = state_of(cycle)
        if not state.claims:
            return ACCEPT_ALL
        return scheduling_cycle.filter_nodes(state, nodes, self._shared.book)

    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        state = cycle.find(DynamicResourcesState)
        if state is None:
            return PostFilterResult(Status.error("not found"))
        if not state.claims:
            return PostFilterResult(Status.unschedulable("no new claims to deallocate"), lasts=True)
        status, requests = scheduling_cycle.free_something(state, pod, self._handle.nodes, statuses)
        self._requests.extend(requests)
        return PostFilterResult(status)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        asked, nodes = cycle.find(questions.AskedDevices), self._handle.nodes
        if asked is None:
            return int(self.score(cycle, pod, nodes.take(np.array([node.row]))).item(0))
        if not questions.is_prioritized(asked.order):
            return 0
        return scheduling_cycle.score_outcome(asked.order, asked.outcome(self._allocator(), nodes, node.row))

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        asked = cycle.find(questions.AskedDevices)
        if asked is not None:
            return asked.scores(self._allocator(), nodes)
        return scheduling_cycle.score_nodes(state_of(cycle), nodes)

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=False)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        state = state_of(cycle)
        if not state.claims:
            return OK
        return scheduling_cycle.reserve(state, self._handle.nodes, node_name, self._shared.book)

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        state = cycle.find(DynamicResourcesState)
        if state is not None and state.claims:
            self._requests.extend(scheduling_cycle.unreserve(state, pod, self._shared.book))

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


# -- queueing hints ----------------------------------------------------------------------------------------------------


class RequeueHints:
    """`find` gives a claim by its key, as it is when it is asked."""

    def __init__(self, find: Callable[[str], ResourceClaim | None]) -> None:
        self._find = find

    def events(self) -> list[RegisteredEvent]:
        on_node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        on_update = ActionType.ADD | ActionType.UPDATE
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return [
            RegisteredEvent(ClusterEvent(EventResource.NODE, on_node)),
            RegisteredEvent(ClusterEvent(EventResource.RESOURCE_CLAIM, on_update), self.after_claim_change),
            RegisteredEvent(ClusterEvent(EventResource.POD, generated), self.after_pod_change),
            RegisteredEvent(ClusterEvent(EventResource.DEVICE_CLASS, on_update)),
            RegisteredEvent(ClusterEvent(EventResource.RESOURCE_SLICE, on_update)),
        ]

    def after_claim_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """A claim of the pod's own that came, or whose status changed; or any that was deallocated."""
        assert isinstance(new, ResourceClaim)
        try:
            mine = claims_of(pod.pod, self._find)
        except ClaimNotReadyError:
            return Hint.SKIP
        before = old if isinstance(old, ResourceClaim) else None
        if before is not None and before.status.allocation is not None and new.status.allocation is None:
            return Hint.QUEUE
        if all(identity(claim) != identity(new) for claim in mine):
            return Hint.SKIP
        return Hint.QUEUE if before is None or before.status != new.status else Hint.SKIP

    def after_pod_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """The pod itself now knows all its claims."""
        assert isinstance(new, Pod)
        if (new.metadata.uid or new.pod_key) != pod.uid:
            return Hint.SKIP
        try:
            claims_of(new, self._find)
        except ClaimNotReadyError:
            return Hint.SKIP
        return Hint.QUEUE
