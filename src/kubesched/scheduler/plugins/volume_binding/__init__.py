"""VolumeBinding: a pod goes only where its volumes are, can be bound, or can be provisioned.

A pod's path through the files: `finding` sorts its PersistentVolumeClaims and finds the nodes where all of them can be
satisfied (`matching` for volumes that exist, and for those that can be provisioned), `binding` assumes the chosen
volumes, has them written and waits until they are bound. Here are the extension points and the queueing hints. Score
does nothing with the feature gates of this version, so `pre_score` always skips it.

What the claims of a pod ask of a node, without what is their own, is where bound volumes can be reached from, and where
volumes can be made for claims that have none (`find_question`). Pods that ask the same have the same answers, which
depend on the labels of nodes alone. Claims that may get a volume that exists already, for which a node was selected, or
whose driver says how much room there is, ask more than that: for their pods `finding` looks at everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kubesched.framework.caching import ClaimQuestion, PodChange, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.extension_points import Steps
from kubesched.framework.group_room import GroupKind, GroupRoom
from kubesched.framework.handle import Handle, Objects
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PreFilterResult, Scores
from kubesched.framework.status import OK, SKIP, Status
from kubesched.framework.verdicts import Verdicts
from kubesched.k8s.model import csi_migration, storage
from kubesched.k8s.model.csi_migration import MIGRATED_PLUGINS_ANNOTATION
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.selectors import HOSTNAME_LABEL
from kubesched.k8s.model.storage import (
    NO_PROVISIONER,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    claims_of,
    class_of_claim,
    requested_storage,
    single_label,
)
from kubesched.scheduler.config.plugin_args import VolumeBindingArgs
from kubesched.scheduler.plugins.volume_binding.binding import AssumedVolumes, BindingCheck, Reservation, bind_volumes
from kubesched.scheduler.plugins.volume_binding.finding import (
    UNBOUND_IMMEDIATE,
    Conflict,
    Findings,
    PodClaims,
    PodVolumes,
    VolumeFinder,
    find_obstacle,
    selected_node,
    sort_claims,
)
from kubesched.scheduler.plugins.volume_binding.matching import (
    looks_at_capacity,
    rows_in_topology,
    rows_matching,
    volume_limit,
)


@dataclass(slots=True)
class VolumesOfPod:
    """What one cycle knows of its pod's volumes. Without `claims` the pod has none."""

    claims: PodClaims | None = None
    findings: Findings | None = None
    question: VolumeQuestion | None = None
    """What the claims ask, if that is answered for all pods that ask the same: then there are no findings."""
    is_all_bound: bool = False
    reservation: Reservation | None = None
    reserved_node: str = ""


class VolumeBinding:
    """Keeps what is assumed for pods between their cycle and their binding."""

    name: ClassVar[str] = "VolumeBinding"
    filter_scope: ClassVar[Scope] = Scope.CLUSTER
    score_scope: ClassVar[Scope] = Scope.CLUSTER

    def __init__(self, args: object, handle: Handle) -> None:
        self._args = args if isinstance(args, VolumeBindingArgs) else VolumeBindingArgs()
        self._handle = handle
        self._assumed = AssumedVolumes()
        self._finder = VolumeFinder(self._assumed.volumes)
        self._asked: tuple[PodInfo, PodClaims, VolumeQuestion] | None = None
        """The pod that was last asked about."""

    def filter_scope_for(self, pod: PodInfo) -> Scope:
        """A pod without claims is never rejected: all nodes are the same to it."""
        return self.filter_scope if any(True for _ in storage.claims_of(pod.pod)) else Scope.NODE

    def objects_changed(self, _cycle: CycleState, pod: PodInfo, _changed: Sequence[KubeObject]) -> bool:
        """Objects matter to pods with volumes of that kind alone."""
        return self.filter_scope_for(pod) is Scope.NODE

    score_scope_for = filter_scope_for

    def question_of(self, pod: PodInfo) -> ClaimQuestion | None:
        objects = self._handle.objects
        if find_obstacle(objects, pod.pod) is not None:
            return None
        claims = self.claims_of(pod)
        if isinstance(claims, Status) or claims.immediate:
            return None
        question = find_question(self._finder, objects, claims)
        if question is None:
            return None
        self._asked = pod, claims, question
        return ClaimQuestion(question)

    def generalize(self, cycle: CycleState, pod: PodInfo) -> None:
        cycle.put(VolumesOfPod(None, question=self._asked_by(pod)[1]))

    def take_over(self, cycle: CycleState, pod: PodInfo) -> bool:
        claims, question = self._asked_by(pod)
        cycle.put(VolumesOfPod(claims, question=question))
        return True

    def _asked_by(self, pod: PodInfo) -> tuple[PodClaims, VolumeQuestion]:
        """For a pod whose question was found just now."""
        assert self._asked is not None
        asked_about, claims, question = self._asked
        assert asked_about is pod
        return claims, question

    def nodes_to_ask_again(self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]) -> Sequence[str]:
        return ()

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        obstacle = find_obstacle(self._handle.objects, pod.pod)
        if obstacle is not None:
            return PreFilterResult(obstacle)
        if not any(True for _ in storage.claims_of(pod.pod)):
            cycle.put(VolumesOfPod())
            return PreFilterResult(SKIP)
        claims = self.claims_of(pod)
        if isinstance(claims, Status):
            return PreFilterResult(claims)
        if claims.immediate:
            return PreFilterResult(Status.unresolvable(UNBOUND_IMMEDIATE))
        cycle.put(VolumesOfPod(claims))
        return PreFilterResult()

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        state = cycle.get(VolumesOfPod)
        if state.question is not None:
            return state.question.verdicts(nodes)
        if state.findings is None:
            state.findings = self._finder.find(nodes.whole, self._handle.objects, state.claims or PodClaims())
        return state.findings.verdicts(nodes.rows)

    def bound_group(self, room: GroupRoom) -> bool:
        """As long as no pod may take a volume that another one would have got, they do not concern each other."""
        return all(map(self._takes_nothing, room.kinds))

    def _takes_nothing(self, kind: GroupKind) -> bool:
        claims = kind.cycle.get(VolumesOfPod).claims
        return claims is None or not claims.delayed or self.question_of(kind.pod) is not None

    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
        return SKIP

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)

    def has_stake_in(self, pod: PodInfo) -> bool:
        return any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes or ())

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        state = cycle.get(VolumesOfPod)
        wanted = self._volumes_on(node_name, state)
        if wanted is None or self._are_all_bound(pod):
            state.is_all_bound = True
            return OK
        made = self._assumed.assume(self._handle.objects, node_name, wanted)
        if isinstance(made, str):
            return Status.error(made)
        state.reservation, state.reserved_node = made, node_name
        return OK

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        state = cycle.find(VolumesOfPod)
        if state is not None and state.reservation is not None and state.reserved_node == node_name:
            self._assumed.revert(state.reservation)
            state.reservation = None

    def pre_bind_pre_flight(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        state = cycle.get(VolumesOfPod)
        if state.is_all_bound:
            return SKIP
        if state.reservation is None or state.reserved_node != node_name:
            return _nothing_reserved(node_name)
        return OK

    def pre_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        state = cycle.get(VolumesOfPod)
        if state.is_all_bound:
            return OK
        if state.reservation is None or state.reserved_node != node_name:
            return _nothing_reserved(node_name)
        check = BindingCheck(self._handle, self._assumed, state.reservation, node_name)
        timeout_s = float(self._args.bind_timeout_seconds)
        return (yield from bind_volumes(self._assumed, state.reservation, node_name, timeout_s, check))

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return REGISTERED_EVENTS

    def claims_of(self, pod: PodInfo) -> PodClaims | Status:
        """The pod's claims, as they are assumed to be; a Status if one cannot be judged."""
        return sort_claims(self._handle.objects, self._assumed.claims, pod.pod)

    def _volumes_on(self, node_name: str, state: VolumesOfPod) -> PodVolumes | None:
        """What the pod gets on the node; None if the node is not one that was found to do."""
        if state.question is not None:
            return None if state.claims is None else volumes_to_make(state.claims)
        row = None if state.findings is None else self._handle.nodes.row_of(node_name)
        if state.findings is None or row is None or not state.findings.fits(row):
            return None
        return state.findings.volumes_on(row)

    def _are_all_bound(self, pod: PodInfo) -> bool:
        claims = self.claims_of(pod)
        return isinstance(claims, PodClaims) and not claims.delayed and not claims.immediate


def _nothing_reserved(node_name: str) -> Status:
    return Status.error(f'no pod volume found for node "{node_name}"')


# -- queueing hints ----------------------------------------------------------------------------------------------------


def after_storage_class_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """Of a class, only the topologies it allows can change for the better."""
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return Hint.QUEUE
    return Hint.QUEUE if (old.allowed_topologies or ()) != (new.allowed_topologies or ()) else Hint.SKIP


def after_claim_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(new, PersistentVolumeClaim):
        return Hint.QUEUE
    return Hint.QUEUE if any(use.key == new.key for use in claims_of(pod.pod)) else Hint.SKIP


def after_csi_node_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """Which in-tree plugins a node has migrated decides how their volumes are judged there."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return Hint.QUEUE
    return Hint.QUEUE if _migrated_plugins(old) != _migrated_plugins(new) else Hint.SKIP


def after_csi_driver_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """The driver of one of the pod's own CSI volumes no longer has its capacity looked at."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return Hint.QUEUE
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    is_used = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes or ())
    return Hint.QUEUE if stopped and is_used else Hint.SKIP


def after_capacity_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return Hint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    grew = now is not None and (before is None or now.value > before.value)
    return Hint.QUEUE if grew else Hint.SKIP


def _migrated_plugins(csi_node: CSINode) -> str:
    return (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS_ANNOTATION, "")


_ADDED_OR_UPDATED = ActionType.ADD | ActionType.UPDATE

REGISTERED_EVENTS = (
    RegisteredEvent(ClusterEvent(EventResource.STORAGE_CLASS, _ADDED_OR_UPDATED), after_storage_class_changed),
    RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, _ADDED_OR_UPDATED), after_claim_changed),
    RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME, _ADDED_OR_UPDATED)),
    RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
    RegisteredEvent(ClusterEvent(EventResource.CSI_NODE, _ADDED_OR_UPDATED), after_csi_node_changed),
    RegisteredEvent(ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), after_csi_driver_changed),
    RegisteredEvent(ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, _ADDED_OR_UPDATED), after_capacity_changed),
)
"""The changes that can undo a rejection, each with the hint that looks closer."""


Topologies = tuple[TopologySelectorTerm, ...]


@dataclass(frozen=True, slots=True)
class VolumeQuestion:
    """Of bound claims, the node affinities of their volumes; of the others, the topologies that their classes allow."""

    affinities: tuple[VolumeNodeAffinity | None, ...]
    topologies: tuple[Topologies, ...]

    def verdicts(self, nodes: NodeTable) -> Verdicts:
        """For a part of the table. No rejection is resolvable."""
        reached = np.ones(len(nodes), dtype=np.bool_)
        for affinity in self.affinities:
            if affinity is not None:
                reached &= rows_matching(nodes, affinity)
        allowed = np.ones(len(nodes), dtype=np.bool_)
        for terms in self.topologies:
            if terms:
                allowed &= rows_in_topology(nodes, terms)
        return Verdicts.combine(((Conflict.NODE.value, ~reached, True), (Conflict.BIND.value, ~allowed, True)))


def find_question(finder: VolumeFinder, objects: Objects, claims: PodClaims) -> VolumeQuestion | None:
    """None if the claims ask for more than can be said in general, or for what no other pod asks for."""
    affinities = []
    for claim in claims.bound:
        volume = finder.volume_of(objects, claim)
        if volume is None or csi_migration.plugin_of(volume.spec) is not None:
            return None
        affinity = volume.spec.node_affinity
        label = single_label(affinity)
        if label is not None and label[0] == HOSTNAME_LABEL:
            return None
        affinities.append(affinity)
    topologies = []
    for claim in claims.delayed:
        storage_class = objects.storage_classes[class_of_claim(claim)]
        if _asks_for_more(finder, objects, claim, storage_class):
            return None
        topologies.append(storage_class.allowed_topologies or ())
    return VolumeQuestion(tuple(affinities), tuple(topologies))


def volumes_to_make(claims: PodClaims) -> PodVolumes:
    """What a pod gets on any node that does, if it can be told by a question."""
    return PodVolumes((), tuple(sorted(claims.delayed, key=lambda claim: requested_storage(claim).nanos)))


def _asks_for_more(
    finder: VolumeFinder, objects: Objects, claim: PersistentVolumeClaim, storage_class: StorageClass
) -> bool:
    return (
        selected_node(claim) is not None
        or storage_class.provisioner in ("", NO_PROVISIONER)
        or looks_at_capacity(objects, storage_class, claim)
        or finder.may_find_volume(objects, claim)
    )
