"""Volumes attached to each node, and how many it can hold: kept up to date, as columns per CSI driver.

A page per node holds the volumes that its pods use and those that VolumeAttachments name. It stays right as long as the
same pods are on the node and none of the objects it was written from changed. Counts and limits are columns over the
rows of the table, so that Filter reads no page of a node that has room. Limits are those of the CSINode objects.

Which volumes of which driver a pod, or an attachment, brings to a node (`volumes_of_pod`, `volume_of_attachment`): a
volume is known by its driver and its handle, so that two pods that use one volume count it once. A claim that is not
bound yet counts under the driver of its storage class, with the claim itself in the place of the handle. In-tree
volumes count under the driver they were migrated to, on nodes that have a CSINode object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import IntArray, NodeTable, PodTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import csi_migration, storage
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.storage import (
    ClaimUse,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.k8s.model.volumes import Volume
from kubesched.scheduler.plugins.object_changes import ObjectChanges

NO_LIMIT = int(np.iinfo(np.int64).max)


class LimitColumns:
    """Columns over the rows of the whole table. `refresh` recreates them when rows have other nodes, and follows
    CSINodes that changed."""

    __slots__ = ("_by_driver", "_changes", "_layout", "_n_rows", "has_csi_node")

    def __init__(self) -> None:
        self._changes: ObjectChanges[CSINode] = ObjectChanges()
        self._layout: object = None
        self._n_rows = 0
        self._by_driver: dict[str, IntArray] = {}
        self.has_csi_node: BoolArray = np.zeros(0, dtype=np.bool_)

    def refresh(self, csi_nodes: Mapping[str, CSINode], nodes: NodeTable) -> list[str]:
        """The names of nodes whose CSINode changed. `nodes` is the whole table."""
        changed = [item.name for before, now in self._changes.take(csi_nodes) if (item := now or before) is not None]
        if self._layout is not nodes.layout:
            self._layout, self._n_rows = nodes.layout, len(nodes)
            self._by_driver = {}
            self.has_csi_node = np.zeros(len(nodes), dtype=np.bool_)
            for row, name in enumerate(nodes.names):
                self._set(row, csi_nodes.get(name))
        else:
            for name in changed:
                row_or_none = nodes.row_of(name)
                if row_or_none is not None:
                    self._set(row_or_none, csi_nodes.get(name))
        return changed

    def _set(self, row: int, csi_node: CSINode | None) -> None:
        self.has_csi_node[row] = csi_node is not None
        for column in self._by_driver.values():
            column[row] = NO_LIMIT
        for driver in csi_node.spec.drivers if csi_node is not None else ():
            if driver.allocatable is not None and driver.allocatable.count is not None:
                self._column(driver.name)[row] = driver.allocatable.count

    def of(self, driver: str) -> IntArray | None:
        """(n_rows,) the limits of one driver, NO_LIMIT where a node has none; None if no node has one."""
        return self._by_driver.get(driver)

    def _column(self, driver: str) -> IntArray:
        column = self._by_driver.get(driver)
        if column is None:
            column = self._by_driver[driver] = np.full(self._n_rows, NO_LIMIT, dtype=np.int64)
        return column


@dataclass(frozen=True, slots=True)
class Page:
    """One node: its pods when the page was written, the volumes of each that has some, all of these together, and how
    many volumes of each driver are attached. A Status stands for volumes that cannot be told."""

    pods: list[PodInfo]
    by_pod: dict[PodInfo, Volumes | Status]
    in_use: frozenset[VolumeIdentity]
    held: Counter[str]


class VolumeLedger:
    """Pages by row. `refresh` once in a cycle, then `update` for the rows that are of interest."""

    def __init__(self) -> None:
        self._claims: ObjectChanges[PersistentVolumeClaim] = ObjectChanges()
        self._volumes: ObjectChanges[PersistentVolume] = ObjectChanges()
        self._classes: ObjectChanges[StorageClass] = ObjectChanges()
        self._attachments: ObjectChanges[VolumeAttachment] = ObjectChanges()
        self._attachments_by_node: dict[str, dict[str, VolumeAttachment]] = {}
        self._readers: dict[str, set[str]] = {}
        """Key of a claim, or name of a volume, to the names of nodes whose page was written from it."""
        self._layout: object = None
        self._names: list[str] = []
        self._pages: list[Page | None] = []
        self._held: dict[str, IntArray] = {}
        self._n_pages_with: Counter[VolumeIdentity] = Counter()
        self.broken: dict[int, Status] = {}
        """Rows with a pod whose volumes cannot be told, and why; right for rows that were just updated."""

    def refresh(self, objects: Objects, nodes: NodeTable) -> set[str]:
        """Takes in what changed among objects and in the order of rows; gives the names of nodes that this concerns.
        `nodes` is the whole table."""
        if self._layout is not nodes.layout:
            self._layout = nodes.layout
            self._follow_rows(nodes.names)
        stale = self._take_attachments(objects)
        for before, now in (
            *self._claims.take(objects.persistent_volume_claims),
            *self._volumes.take(objects.persistent_volumes),
        ):
            changed = now if now is not None else before
            assert changed is not None
            stale |= self._readers.pop(changed.key, set())
        if self._classes.take(objects.storage_classes):
            stale.update(self._names)
        for name in stale:
            row = nodes.row_of(name)
            if row is not None:
                self._put(row, None)
        return stale

    def update(self, objects: Objects, rows: Iterable[int], pods: PodTable) -> list[int]:
        """Writes the pages of these rows anew where they are missing or their pods are others by now. Gives the rows of
        these."""
        pages, pods_on = self._pages, pods.on
        written = []
        for row in rows:
            page = pages[row]
            if page is None or page.pods != pods_on(row):
                self._write(objects, row, pods_on(row), page)
                written.append(row)
        return written

    def is_in_use(self, volume: VolumeIdentity) -> bool:
        """Whether a pod uses the volume, on a node that was ever looked into."""
        return volume in self._n_pages_with

    def page(self, row: int) -> Page:
        """The page of a row that was just updated."""
        page = self._pages[row]
        assert page is not None
        return page

    def held(self, driver: str) -> IntArray:
        """(n_rows,) how many volumes of a driver are attached; right for rows that were just updated."""
        column = self._held.get(driver)
        if column is None:
            counts = (0 if page is None else page.held[driver] for page in self._pages)
            column = self._held[driver] = np.fromiter(counts, dtype=np.int64, count=len(self._pages))
        return column

    def _follow_rows(self, names: Sequence[str]) -> None:
        by_name = dict(zip(self._names, self._pages, strict=True))
        self._names = list(names)
        self._pages = [by_name.get(name) for name in names]
        self._held = {}
        self._n_pages_with = Counter(volume for page in self._pages if page is not None for volume in page.in_use)
        errors = ((row, _error_of(page)) for row, page in enumerate(self._pages) if page is not None)
        self.broken = {row: error for row, error in errors if error is not None}

    def _take_attachments(self, objects: Objects) -> set[str]:
        """Returns the names of nodes that gained or lost an attachment."""
        touched = set()
        for before, now in self._attachments.take(objects.volume_attachments):
            if before is not None:
                self._attachments_by_node[before.spec.node_name].pop(before.name)
                touched.add(before.spec.node_name)
            if now is not None:
                self._attachments_by_node.setdefault(now.spec.node_name, {})[now.name] = now
                touched.add(now.spec.node_name)
        return touched

    def _write(self, objects: Objects, row: int, pods: Sequence[PodInfo], old: Page | None) -> None:
        known = old.by_pod if old is not None else {}
        by_pod: dict[PodInfo, Volumes | Status] = {}
        for info in pods:
            if info.pod.spec.volumes:
                volumes = known.get(info)
                by_pod[info] = self._read_pod(objects, info.pod, row) if volumes is None else volumes
        page = _page(list(pods), by_pod, self._read_attachments(objects, row))
        self._put(row, page)
        for driver, column in self._held.items():
            column[row] = page.held[driver]
        self.broken.pop(row, None)
        error = _error_of(page)
        if error is not None:
            self.broken[row] = error

    def _put(self, row: int, page: Page | None) -> None:
        before, n_pages_with = self._pages[row], self._n_pages_with
        if before is not None:
            for volume in before.in_use:
                n_pages_with[volume] -= 1
                if not n_pages_with[volume]:
                    del n_pages_with[volume]
        if page is not None:
            n_pages_with.update(page.in_use)
        self._pages[row] = page

    def _read_pod(self, objects: Objects, pod: Pod, row: int) -> Volumes | Status:
        name = self._names[row]
        for use in storage.claims_of(pod):
            self._readers.setdefault(use.key, set()).add(name)
            claim = objects.persistent_volume_claims.get(use.key)
            if claim is not None and claim.spec.volume_name:
                self._readers.setdefault(claim.spec.volume_name, set()).add(name)
        return volumes_of_pod(objects, pod, has_csi_node=True, is_new=False)

    def _read_attachments(self, objects: Objects, row: int) -> set[VolumeIdentity]:
        name = self._names[row]
        found = set()
        for attachment in self._attachments_by_node.get(name, {}).values():
            volume_name = attachment.spec.source.persistent_volume_name
            if volume_name is not None:
                self._readers.setdefault(volume_name, set()).add(name)
            volume = volume_of_attachment(objects, attachment)
            if volume is not None:
                found.add(volume)
        return found


def _page(pods: list[PodInfo], by_pod: dict[PodInfo, Volumes | Status], attached: set[VolumeIdentity]) -> Page:
    in_use: set[VolumeIdentity] = set()
    for volumes in by_pod.values():
        if not isinstance(volumes, Status):
            in_use |= volumes
    return Page(pods, by_pod, frozenset(in_use), Counter(volume.driver for volume in in_use | attached))


def _error_of(page: Page) -> Status | None:
    return next((volumes for volumes in page.by_pod.values() if isinstance(volumes, Status)), None)


class VolumeIdentity(NamedTuple):
    """A volume as its driver knows it. `is_claim` marks a claim that has no volume yet."""

    driver: str
    handle: str
    is_claim: bool = False


Volumes = frozenset[VolumeIdentity]


def has_attachable_volumes(pod: Pod) -> bool:
    """Whether any volume of the pod may be one of a CSI driver."""
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or csi_migration.plugin_of(volume) is not None
        for volume in pod.spec.volumes or ()
    )


def volumes_of_pod(objects: Objects, pod: Pod, *, has_csi_node: bool, is_new: bool) -> Volumes | Status:
    """The volumes that the pod brings to a node, or why that cannot be said.

    A new pod cannot run without its claims; a claim that an existing pod has lost just does not count.
    """
    found: set[VolumeIdentity] = set()
    for volume in pod.spec.volumes or ():
        use = storage.claim_of(pod, volume)
        if use is None:
            answer = _inline_volume(volume) if has_csi_node else None
        else:
            answer = _claimed_volume(objects, pod, use, has_csi_node=has_csi_node, is_new=is_new)
        if isinstance(answer, Status):
            return answer
        if answer is not None:
            found.add(answer)
    return frozenset(found)


def volume_of_attachment(objects: Objects, attachment: VolumeAttachment) -> VolumeIdentity | None:
    """The volume that an attachment puts on its node; None if it is of no CSI driver, or cannot be told."""
    spec = attachment.spec
    if not spec.attacher or spec.source.persistent_volume_name is None:
        return None
    volume = objects.persistent_volumes.get(spec.source.persistent_volume_name)
    if volume is None or volume.spec.csi is None:
        return None
    return VolumeIdentity(spec.attacher, volume.spec.csi.volume_handle)


def _inline_volume(volume: Volume) -> VolumeIdentity | Status | None:
    plugin = csi_migration.plugin_of(volume)
    if plugin is None or not plugin.is_migrated:
        return None
    try:
        handle = csi_migration.inline_handle(volume)
    except csi_migration.TranslationError as problem:
        return Status.error(f"converting volume({volume.name}) from inline to csi: {problem}")
    return VolumeIdentity(plugin.driver, handle)


def _claimed_volume(
    objects: Objects, pod: Pod, use: ClaimUse, *, has_csi_node: bool, is_new: bool
) -> VolumeIdentity | Status | None:
    if not use.name:
        return Status.error("PersistentVolumeClaim had no name")
    claim = objects.persistent_volume_claims.get(use.key)
    if claim is None:
        if not is_new:
            return None
        return Status.unresolvable(f"looking up PVC {use.key}: {storage.claim_not_found(use.name)}")
    if use.is_ephemeral and (message := storage.foreign_claim_message(pod, claim)) is not None:
        return Status.error(message)
    return _volume_of_claim(objects, claim, has_csi_node=has_csi_node)


def _volume_of_claim(objects: Objects, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> VolumeIdentity | None:
    """None for volumes that no CSI driver attaches, or that cannot be told."""
    volume = objects.persistent_volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _volume_to_come(objects, claim, has_csi_node=has_csi_node)
    if volume.spec.csi is not None:
        return _identity(volume.spec.csi.driver, volume.spec.csi.volume_handle)
    plugin = csi_migration.plugin_of(volume.spec)
    if plugin is None or not plugin.is_migrated or not has_csi_node:
        return None
    try:
        translated = csi_migration.translate(volume)
    except csi_migration.TranslationError:
        return None
    return _identity(translated.driver, translated.handle)


def _volume_to_come(objects: Objects, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> VolumeIdentity | None:
    """A claim without a volume will get one from the provisioner of its storage class."""
    storage_class = objects.storage_classes.get(storage.class_of_claim(claim))
    if storage_class is None or not storage_class.provisioner:
        return None
    plugin = csi_migration.plugin_named(storage_class.provisioner)
    if plugin is None:
        return VolumeIdentity(storage_class.provisioner, claim.key, is_claim=True)
    if not plugin.is_migrated or not has_csi_node:
        return None
    return VolumeIdentity(plugin.driver, claim.key, is_claim=True)


def _identity(driver: str, handle: str) -> VolumeIdentity | None:
    return VolumeIdentity(driver, handle) if driver and handle else None
