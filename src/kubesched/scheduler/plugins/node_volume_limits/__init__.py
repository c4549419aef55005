"""NodeVolumeLimits: no more volumes of a CSI driver on a node than the driver can attach there.

Counts the volumes attached to a node, adds the pod's, and compares with the limits. Attached is what the node's pods
use and what VolumeAttachments name; a volume that the pod shares with pods of the node is not counted twice. Only nodes
that limit a driver that the pod needs are looked into.

Next: `ledger` for attached volumes and limits, and for what counts as a volume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kubesched.framework.caching import ClaimQuestion, PodChange, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.group_room import GroupRoom
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo, NodeTable, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PreFilterResult
from kubesched.framework.status import OK, SKIP, PluginFault, Status
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray, Verdicts
from kubesched.k8s.model import csi_migration, storage
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.csi_migration import InTreePlugin
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from kubesched.k8s.model.volumes import Volume
from kubesched.scheduler.cluster.journal import ChangeLog
from kubesched.scheduler.plugins.node_volume_limits.ledger import (
    NO_LIMIT,
    LimitColumns,
    VolumeLedger,
    Volumes,
    has_attachable_volumes,
    volumes_of_pod,
)

TOO_MANY_VOLUMES = "node(s) exceed max volume count"
_CROWDED = Status.unschedulable(TOO_MANY_VOLUMES)


@dataclass(slots=True)
class WantedVolumes:
    """What the pod brings to a node with a CSINode object, and to one without; a Status where that cannot be said."""

    with_csi_node: Volumes | Status
    without_csi_node: Volumes | Status


@dataclass(slots=True)
class AskedVolumes:
    """How many volumes of which drivers any pod of a class brings, none of which is on a node already."""

    brought: Counter[str]
    place: int
    """How far the log of nodes that changed was read."""


class NodeVolumeLimits:
    """Keeps a ledger of what is attached; nothing in it outlives a change of what it was written from."""

    name: ClassVar[str] = "NodeVolumeLimits"
    filter_scope: ClassVar[Scope] = Scope.CLUSTER

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        self._ledger = VolumeLedger()
        self._limits = LimitColumns()
        self._changed: ChangeLog[str] = ChangeLog()
        """The nodes about which an answer may be another, beside those whose pods changed."""
        self._asked: tuple[PodInfo, Volumes] | None = None
        """The pod that was last asked about, and what it brings."""

    def filter_scope_for(self, pod: PodInfo) -> Scope:
        """A pod without volumes to attach is never refused."""
        return self.filter_scope if has_attachable_volumes(pod.pod) else Scope.NODE

    def objects_changed(self, _cycle: CycleState, pod: PodInfo, _changed: Sequence[KubeObject]) -> bool:
        """Objects matter to pods with volumes of that kind alone."""
        return self.filter_scope_for(pod) is Scope.NODE

    # -- pods of a class -----------------------------------------------------------------------------------------------

    def question_of(self, pod: PodInfo) -> ClaimQuestion | None:
        """How many volumes of which drivers. None if a volume may be on a node already: by a claim that others use, or
        as an inline volume."""
        nodes = self._handle.nodes
        if self._ledger.broken or any(nodes.is_claim_used(key) for key in pod.signature.claim_names):
            return None
        if any(csi_migration.plugin_of(volume) is not None for volume in pod.spec.volumes or ()):
            return None
        wanted = volumes_of_pod(self._handle.objects, pod.pod, has_csi_node=True, is_new=True)
        if isinstance(wanted, Status):
            return None
        self._asked = pod, wanted
        return ClaimQuestion(tuple(sorted(_by_driver(wanted).items())), Scope.ROW)

    def generalize(self, cycle: CycleState, pod: PodInfo) -> None:
        self._take_changes()
        cycle.put(AskedVolumes(_by_driver(self._wanted_by(pod)), self._changed.end))

    def take_over(self, cycle: CycleState, pod: PodInfo) -> bool:
        wanted = self._wanted_by(pod)
        if any(map(self._ledger.is_in_use, wanted)):
            return False
        cycle.drop(AskedVolumes)
        cycle.put(WantedVolumes(wanted, wanted))
        return True

    def nodes_to_ask_again(self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]) -> Sequence[str] | None:
        asked, nodes = cycle.get(AskedVolumes), self._handle.nodes
        self._take_changes()
        names = self._changed.since(asked.place)
        if names is None:
            return None
        asked.place = self._changed.end
        rows = {nodes.row_of(name) for name in names}
        rows.update(nodes.row_of(info.spec.node_name) for _, info, _ in changes if info.spec.volumes)
        limits = [column for driver in asked.brought if (column := self._limits.of(driver)) is not None]
        limited = [row for row in rows if row is not None and any(column[row] != NO_LIMIT for column in limits)]
        self._ledger.update(self._handle.objects, limited, nodes.pods)
        return None if self._ledger.broken else names

    def _wanted_by(self, pod: PodInfo) -> Volumes:
        """What the pod brings, for which a question was found just now."""
        assert self._asked is not None
        asked_about, wanted = self._asked
        assert asked_about is pod
        return wanted

    def _take_changes(self) -> None:
        """Brings limits and ledger up to date, and notes which nodes that concerns."""
        objects, nodes = self._handle.objects, self._handle.nodes
        for name in (*self._limits.refresh(objects.csi_nodes, nodes), *self._ledger.refresh(objects, nodes)):
            self._changed.append(name)

    # -- extension points ----------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        if not has_attachable_volumes(pod.pod):
            return PreFilterResult(SKIP)
        objects = self._handle.objects
        wanted = WantedVolumes(
            volumes_of_pod(objects, pod.pod, has_csi_node=True, is_new=True),
            volumes_of_pod(objects, pod.pod, has_csi_node=False, is_new=True),
        )
        self._take_changes()
        cycle.put(wanted)
        return PreFilterResult()

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        asked = cycle.find(AskedVolumes)
        if asked is None:
            return self.filter(cycle, pod, self._handle.nodes.take(np.array([node.row]))).status(0)
        row, looks_into_node = node.row, False
        for driver, count in asked.brought.items():
            limits = self._limits.of(driver)
            if limits is None or limits[row] == NO_LIMIT:
                continue
            if not looks_into_node:
                self._ledger.update(self._handle.objects, (row,), self._handle.nodes.pods)
                looks_into_node = True
            if limits[row] < self._ledger.page(row).held[driver] + count:
                return _CROWDED
        return OK

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        asked = cycle.find(AskedVolumes)
        if asked is not None:
            return self._filter_for_class(asked, nodes)
        wanted = cycle.get(WantedVolumes)
        if isinstance(wanted.with_csi_node, Status) or isinstance(wanted.without_csi_node, Status):
            return self._cannot_be_said(wanted, nodes)
        rows = nodes.rows
        limited = self._limited_rows(_by_driver(wanted.with_csi_node), rows)
        if not limited.any():
            return ACCEPT_ALL
        # Others are to look again where pods may be on trial.
        for row in self._ledger.update(self._handle.objects, rows[limited].tolist(), nodes.pods):
            self._changed.append(nodes.whole.names[row])
        crowded = self._crowded_rows(wanted.with_csi_node, rows)
        errors = self._errors(rows, limited)
        if not crowded.any() and not errors:
            return ACCEPT_ALL
        return Verdicts((TOO_MANY_VOLUMES,), crowded[np.newaxis, :], np.zeros_like(crowded), errors)

    def bound_group(self, room: GroupRoom) -> bool:
        """Every pod is taken to bring all of its volumes, shared ones as well."""
        most: Counter[str] = Counter()
        for kind in room.kinds:
            wanted = kind.cycle.find(WantedVolumes)
            if wanted is None:
                continue
            if isinstance(wanted.with_csi_node, Status) or isinstance(wanted.without_csi_node, Status):
                return False
            most |= _by_driver(wanted.with_csi_node)
        if self._ledger.broken:
            return False
        for driver, count in most.items():
            limits = self._limits.of(driver)
            if limits is not None:
                free = (limits - self._ledger.held(driver)[: len(limits)]) // count
                room.limit_rows(np.where(limits == NO_LIMIT, room.n_pods, free), None)
        return True

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return (
            RegisteredEvent(ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)),
            RegisteredEvent(ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), after_csi_node_updated),
            RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.DELETE), after_pod_deleted),
            RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_added),
            RegisteredEvent(ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE), after_attachment_deleted),
        )

    def _cannot_be_said(self, wanted: WantedVolumes, nodes: NodeTable) -> Verdicts:
        """What the pod brings is not known; an in-tree volume may be at fault only where there is a CSINode."""
        with_csi_node = wanted.with_csi_node if isinstance(wanted.with_csi_node, Status) else OK
        without_csi_node = wanted.without_csi_node if isinstance(wanted.without_csi_node, Status) else OK
        has_csi_node = self._limits.has_csi_node[nodes.rows].tolist()
        return Verdicts.from_statuses([with_csi_node if known else without_csi_node for known in has_csi_node])

    def _filter_for_class(self, asked: AskedVolumes, nodes: NodeTable) -> Verdicts:
        rows = nodes.rows
        limited = self._limited_rows(asked.brought, rows)
        if not limited.any():
            return ACCEPT_ALL
        self._ledger.update(self._handle.objects, rows[limited].tolist(), nodes.pods)
        if self._errors(rows, limited):
            raise PluginFault("the volumes of a pod on a node cannot be told")
        return Verdicts.reject(self._over_limit(asked.brought, rows), TOO_MANY_VOLUMES)

    def _limited_rows(self, drivers: Iterable[str], rows: RowArray) -> BoolArray:
        limited = np.zeros(len(rows), dtype=np.bool_)
        for driver in drivers:
            limits = self._limits.of(driver)
            if limits is not None:
                limited |= limits[rows] != NO_LIMIT
        return limited

    def _crowded_rows(self, wanted: Volumes, rows: RowArray) -> BoolArray:
        crowded = self._over_limit(_by_driver(wanted), rows)
        for position in np.flatnonzero(crowded).tolist():
            in_use = self._ledger.page(int(rows[position])).in_use
            if not wanted.isdisjoint(in_use):
                crowded[position] = self._over_limit(_by_driver(wanted - in_use), rows[position : position + 1])[0]
        return crowded

    def _errors(self, rows: RowArray, limited: BoolArray) -> dict[int, str]:
        """By position, where the volumes of a pod that is on the node already cannot be told."""
        broken = self._ledger.broken
        if not broken:
            return {}
        asked = zip(rows.tolist(), limited.tolist(), strict=True)
        return {at: broken[row].message for at, (row, is_limited) in enumerate(asked) if is_limited and row in broken}

    def _over_limit(self, brought: Counter[str], rows: RowArray) -> BoolArray:
        over = np.zeros(len(rows), dtype=np.bool_)
        for driver, count in brought.items():
            limits = self._limits.of(driver)
            if limits is not None:
                over |= limits[rows] < self._ledger.held(driver)[rows] + count
        return over


def _by_driver(volumes: Volumes) -> Counter[str]:
    return Counter(volume.driver for volume in volumes)


# -- queueing hints ----------------------------------------------------------------------------------------------------


def after_csi_node_updated(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """A driver attaches more than before; a driver that names no limit counts as 0 here."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return Hint.QUEUE
    before = _limits(old)
    grew = any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())
    return Hint.QUEUE if grew else Hint.SKIP


def after_pod_deleted(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """A pod that held volumes on a node, or was about to, is gone."""
    if not isinstance(old, Pod):
        return Hint.QUEUE
    had_node = bool(old.spec.node_name or old.status.nominated_node_name)
    return Hint.QUEUE if had_node and has_attachable_volumes(old) else Hint.SKIP


def after_claim_added(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(new, PersistentVolumeClaim):
        return Hint.QUEUE
    is_ours = any(use.key == new.key for use in storage.claims_of(pod.pod))
    return Hint.QUEUE if is_ours else Hint.SKIP


def after_attachment_deleted(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """Any attachment may have stood in the way of a claim; one of the same driver in that of an in-tree volume."""
    if not isinstance(old, VolumeAttachment):
        return Hint.QUEUE
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        plugin = csi_migration.plugin_of(volume)
        if plugin is None:
            continue
        if plugin.driver == old.spec.attacher or not _is_translatable(plugin, volume):
            return Hint.QUEUE
    return Hint.SKIP


def _is_translatable(plugin: InTreePlugin, volume: Volume) -> bool:
    if not plugin.is_migrated:
        return True
    try:
        csi_migration.inline_handle(volume)
    except csi_migration.TranslationError:
        return False
    return True


def _limits(csi_node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count or 0 if driver.allocatable is not None else 0
        for driver in csi_node.spec.drivers
    }
