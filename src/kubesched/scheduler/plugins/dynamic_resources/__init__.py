"""DynamicResources: allocates devices to pods, by their ResourceClaims.

A pod's path through the files: `state` looks up its claims, `requests` reads what they ask for (and what extended
resources backed by a DeviceClass ask for), `scheduling_cycle` filters, scores and reserves with the answers of
`allocator`, and `binding` writes the allocation in PreBind. What outlives a cycle is in `allocator.SharedDevices`.

Pods that ask the same (devices of classes, selectors, counts) have the same answers on nodes that are offered the same:
`find_question` says what the claims of a pod ask of a node, without what is their own. Claims that are allocated
already, or about to be, ask more than that, and so does everybody where devices are offered to many nodes at once: for
their pods `scheduling_cycle` looks at all nodes.

Decides as kube-scheduler does with the feature gates of its release at their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from kubesched.framework.caching import ClaimQuestion, PodChange, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.extension_points import Steps
from kubesched.framework.groups import GroupCycle
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult, PreFilterResult, Scores, default_normalize_score
from kubesched.framework.status import OK, SKIP, PluginFault, Status
from kubesched.framework.verdicts import ACCEPT_ALL, Verdicts
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import DeviceClass, ResourceClaim
from kubesched.k8s.model.scheduling import PodGroup, group_key_of
from kubesched.scheduler.config.plugin_args import DynamicResourcesArgs
from kubesched.scheduler.plugins.dynamic_resources import requests, scheduling_cycle
from kubesched.scheduler.plugins.dynamic_resources.allocator import Allocator, SharedDevices
from kubesched.scheduler.plugins.dynamic_resources.binding import Binding
from kubesched.scheduler.plugins.dynamic_resources.claim_book import identity
from kubesched.scheduler.plugins.dynamic_resources.effects import ClaimRequest
from kubesched.scheduler.plugins.dynamic_resources.outcomes import (
    CANNOT_ALLOCATE,
    Abandoned,
    Broken,
    Found,
    NotFound,
    Outcome,
)
from kubesched.scheduler.plugins.dynamic_resources.requests import Order
from kubesched.scheduler.plugins.dynamic_resources.state import (
    NO_CLAIMS,
    ClaimNotReadyError,
    DynamicResourcesState,
    PodClaim,
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
        self._asking: AskingPod | None = None
        """The pod that was last asked about."""

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return RequeueHints(self._find_claim, of_groups=self._rules.has_claims).events()

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
        self._asking = find_question(
            pod, self._shared, objects.device_classes, self._allocator(), of_groups=self._rules.has_claims
        )
        if self._asking is None:
            return None
        order = self._asking.order
        score_scope = Scope.ROW if is_prioritized(order) else Scope.NODE
        return ClaimQuestion(order.fingerprint, Scope.ROW, score_scope)

    def generalize(self, cycle: CycleState, pod: PodInfo) -> None:
        shared = self._shared
        cycle.put(AskedDevices(self._asked_by(pod).order, shared.changed.end, shared.n_offers_to_all))

    def take_over(self, cycle: CycleState, pod: PodInfo) -> bool:
        cycle.drop(AskedDevices)
        cycle.put(self._asked_by(pod).state(self._allocator()))
        return True

    def nodes_to_ask_again(self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]) -> Sequence[str] | None:
        asked = cycle.get(AskedDevices)
        self._shared.refresh(self._handle.objects)
        names = self._shared.changed.since(asked.place)
        if asked.n_offers_to_all != self._shared.n_offers_to_all:
            return None
        asked.place = self._shared.changed.end
        return names

    def _asked_by(self, pod: PodInfo) -> AskingPod:
        """For a pod whose question was found just now."""
        assert self._asking is not None
        assert self._asking.pod is pod
        return self._asking

    def _allocator(self) -> Allocator:
        return Allocator(self._shared, self._handle.objects.device_classes, self._filter_timeout_s)

    # -- extension points ---------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.pod.spec.resource_claims:
            return OK
        try:
            claims_of(pod.pod, self._find_claim, of_groups=self._rules.has_claims)
        except ClaimNotReadyError as problem:
            return Status.unresolvable(str(problem))
        return OK

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        cycle.put(NO_CLAIMS)
        objects = self._handle.objects
        if not scheduling_cycle.may_need_devices(pod, objects.device_classes):
            return PreFilterResult(SKIP)
        self._shared.refresh(objects)
        of_group = scheduling_cycle.allocations_of(cycle.find(GroupCycle))
        prepared = scheduling_cycle.prepare(
            pod, self._shared, objects.device_classes, self._filter_timeout_s, of_group, self._rules
        )
        if isinstance(prepared, Status):
            return PreFilterResult(prepared)
        if self._rules.has_claims and (key := group_key_of(pod.pod)) and key not in objects.pod_groups:
            name = key.partition("/")[2]
            return PreFilterResult(Status.unresolvable(f'podgroup.scheduling.k8s.io "{name}" not found'))
        if not prepared.claims:
            return PreFilterResult(SKIP)
        cycle.put(prepared)
        return PreFilterResult()

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        asked, nodes = cycle.find(AskedDevices), self._handle.nodes
        if asked is None:
            return self.filter(cycle, pod, nodes.take(np.array([node.row]))).status(0)
        outcome = asked.outcome(self._allocator(), nodes, node.row)
        return Status.unresolvable(outcome.reason) if isinstance(outcome, NotFound) else OK

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        asked = cycle.find(AskedDevices)
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
        if not requests and (group := self._group_of(pod)) is not None and not self._is_group_placed(cycle, pod):
            try:
                freed = scheduling_cycle.unreserve_for_group(pod.pod, group, self._shared.book)
            except ClaimNotReadyError as problem:
                return PostFilterResult(Status.error(str(problem)))
            if freed is not None:
                status, requests = freed[0], [freed[1]]
        self._requests.extend(requests)
        return PostFilterResult(status)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        asked, nodes = cycle.find(AskedDevices), self._handle.nodes
        if asked is None:
            return int(self.score(cycle, pod, nodes.take(np.array([node.row]))).item(0))
        if not is_prioritized(asked.order):
            return 0
        return scheduling_cycle.score_outcome(asked.order, asked.outcome(self._allocator(), nodes, node.row))

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        asked = cycle.find(AskedDevices)
        if asked is not None:
            return asked.scores(self._allocator(), nodes)
        return scheduling_cycle.score_nodes(state_of(cycle), nodes)

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=False)

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        state = state_of(cycle)
        if not state.claims:
            return OK
        of_group = scheduling_cycle.allocations_of(cycle.find(GroupCycle))
        return scheduling_cycle.reserve(state, pod, self._handle.nodes, node_name, self._shared.book, of_group)

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        state = cycle.find(DynamicResourcesState)
        if state is not None and state.claims:
            self._requests.extend(scheduling_cycle.unreserve(state, pod, self._shared.book))

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        return OK if state_of(cycle).claims else SKIP

    def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        timeout_s = self._args.binding_timeout.nanoseconds / 10**9
        features = self._handle.group_features
        return Binding(
            state_of(cycle),
            pod,
            node_name,
            self._shared.book,
            self._refresh_claims,
            timeout_s,
            self._group_of(pod),
            has_mates=features.groups and not features.claims_race and bool(group_key_of(pod.pod)),
        ).steps()

    # -- groups -------------------------------------------------------------------------------------------------------

    @cached_property
    def _rules(self) -> scheduling_cycle.GroupRules:
        features = self._handle.group_features
        return scheduling_cycle.GroupRules(features.claims, features.alpha)

    def _group_of(self, pod: PodInfo) -> PodGroup | None:
        """The pod's group, if groups have claims of their own."""
        return self._handle.objects.pod_groups.get(group_key_of(pod.pod)) if self._rules.has_claims else None

    def _is_group_placed(self, cycle: CycleState, pod: PodInfo) -> bool:
        """Whether a pod of the group has a node, beside those that are placed for trial."""
        members, trial = self._handle.group_members(group_key_of(pod.pod)), cycle.find(GroupCycle)
        tried = {mate.key for mate in trial.pods} if trial is not None else set()
        return members is not None and any(mate.key not in tried for mate in members.scheduled_pods())

    # -- claims -------------------------------------------------------------------------------------------------------

    def _find_claim(self, key: str) -> ResourceClaim | None:
        """One claim, without going through all that changed."""
        return self._shared.book.latest(key, self._handle.objects.resource_claims.get(key))

    def _refresh_claims(self) -> None:
        self._shared.book.refresh(self._handle.objects.resource_claims)


# -- queueing hints ----------------------------------------------------------------------------------------------------


class RequeueHints:
    """`find` gives a claim by its key, as it is when it is asked; with `of_groups` it may be a group's."""

    def __init__(self, find: Callable[[str], ResourceClaim | None], *, of_groups: bool = False) -> None:
        self._find = find
        self._of_groups = of_groups

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
            mine = claims_of(pod.pod, self._find, of_groups=self._of_groups)
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
            claims_of(new, self._find, of_groups=self._of_groups)
        except ClaimNotReadyError:
            return Hint.SKIP
        return Hint.QUEUE


@dataclass(frozen=True, slots=True, eq=False)
class AskingPod:
    """A pod, its claims, and what they ask."""

    pod: PodInfo
    claims: tuple[ResourceClaim, ...]
    order: Order

    def state(self, allocator: Allocator) -> DynamicResourcesState:
        """The state of its cycle, if it is answered for all that ask the same."""
        claims = [PodClaim(claim) for claim in self.claims]
        return DynamicResourcesState(claims, allocator=allocator, orders={None: self.order}, is_of_class=True)


@dataclass(slots=True, eq=False)
class AskedDevices:
    """What all pods of a class ask for."""

    order: Order
    place: int
    """How far the log of nodes that are offered something else was read."""
    n_offers_to_all: int
    """How often all nodes were offered something else, then."""

    def outcome(self, allocator: Allocator, nodes: NodeTable, row: int) -> Outcome:
        """On a node of the whole table."""
        return _judged(allocator.answer_on(self.order, nodes, row))

    def verdicts(self, allocator: Allocator, nodes: NodeTable) -> Verdicts:
        outcomes, own = allocator.answers(self.order, nodes)
        is_found = np.zeros(len(outcomes), dtype=np.bool_)
        for number in np.unique(own).tolist():
            is_found[number] = isinstance(_judged(outcomes[number]), Found)
        return Verdicts.reject(~is_found[own], CANNOT_ALLOCATE, unresolvable=True)

    def scores(self, allocator: Allocator, nodes: NodeTable) -> Scores:
        """Raw scores; 0 where nothing can be allocated."""
        if not is_prioritized(self.order):
            return np.zeros(len(nodes), dtype=np.int64)
        outcomes, own = allocator.answers(self.order, nodes)
        of_outcome = np.array([scheduling_cycle.score_outcome(self.order, outcome) for outcome in outcomes], np.int64)
        scores: Scores = of_outcome[own]
        return scores


def find_question(
    pod: PodInfo,
    shared: SharedDevices,
    classes: Mapping[str, DeviceClass],
    allocator: Allocator,
    *,
    of_groups: bool = False,
) -> AskingPod | None:
    """None if the claims ask for more than can be said in general. `shared` must be fresh."""
    if shared.inventory.problem is not None or shared.inventory.floating or requests.find_demand(pod, classes)[1]:
        return None
    try:
        claims = tuple(claims_of(pod.pod, shared.book.get, of_groups=of_groups))
    except ClaimNotReadyError:
        return None
    for claim in claims:
        if claim.status.allocation is not None or shared.book.is_pending(claim):
            return None
        if scheduling_cycle.check_requests(claim, classes) is not None:
            return None
    return AskingPod(pod, claims, allocator.order(claims)) if claims else None


def is_prioritized(order: Order) -> bool:
    return any(wanted.is_prioritized for wanted in order.claims)


def _judged(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Broken | Abandoned):
        raise PluginFault("what comes of a node cannot be said for all pods")
    return outcome
