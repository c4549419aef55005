"""Behind NodeVolumeLimits and VolumeRestrictions: how many volumes are attached, and which pod has one in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from kubesched.explanation.findings.finding import NEAR, CauseKind, Fact, Nearness
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.volume_claims import READ_WRITE_ONCE_POD, claims_of
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.scheduler.plugins.node_volume_limits.attachable import Volumes, volumes_of_pod
from kubesched.scheduler.plugins.node_volume_limits.ledger import NO_LIMIT, LimitColumns, VolumeLedger
from kubesched.scheduler.plugins.volume_restrictions import (
    DISK_CONFLICT,
    READ_WRITE_ONCE_POD_CONFLICT,
    VolumeRestrictions,
    conflicts,
)


class AttachedVolumes:
    """Facts by row: for each driver, how many volumes the node holds and may hold."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._cluster = cluster
        self._pod = pod

    def of(self, row: int) -> tuple[Fact, ...]:
        ledger = self._ledger
        ledger.update(self._cluster.objects, [row], self._cluster.table.pods)
        brought = Counter(volume.driver for volume in self._wanted - ledger.page(row).in_use)
        return tuple(
            _limit_fact(driver, n_new, int(ledger.held(driver)[row]), int(limits[row]))
            for driver, n_new in sorted(brought.items())
            if (limits := self._limits.of(driver)) is not None
            and limits[row] != NO_LIMIT
            and limits[row] < ledger.held(driver)[row] + n_new
        )

    @cached_property
    def _wanted(self) -> Volumes:
        found = volumes_of_pod(self._cluster.objects, self._pod.pod, has_csi_node=True, is_new=True)
        return frozenset() if isinstance(found, Status) else found

    @cached_property
    def _ledger(self) -> VolumeLedger:
        ledger = VolumeLedger()
        ledger.refresh(self._cluster.objects, self._cluster.nodes)
        return ledger

    @cached_property
    def _limits(self) -> LimitColumns:
        limits = LimitColumns()
        limits.refresh(self._cluster.objects.csi_nodes, self._cluster.nodes.names)
        return limits


class VolumesInUse:
    """Facts by row: who holds the claim that one pod may use, or the disk that a node may have once."""

    def __init__(self, cluster: Cluster, pod: PodInfo) -> None:
        self._cluster = cluster
        self._pod = pod

    def of(self, row: int) -> tuple[Fact, ...]:
        return (*self._exclusive, *self._disks(row))

    @cached_property
    def _exclusive(self) -> tuple[Fact, ...]:
        """The same for every row: such a claim is for one pod of the whole cluster."""
        objects = self._cluster.objects
        found = []
        for use in claims_of(self._pod.pod):
            claim = objects.persistent_volume_claims.get(use.key)
            if claim is None or READ_WRITE_ONCE_POD not in (claim.spec.access_modes or ()):
                continue
            for holder in self._users(use.key):
                text = f"claim {claim.name} (ReadWriteOncePod) is in use by {holder.key} on {holder.spec.node_name}"
                fields = {"claim": claim.key, "pod": holder.key, "node": holder.spec.node_name}
                found.append(_use_fact(text, fields, READ_WRITE_ONCE_POD_CONFLICT))
                break
        return tuple(found)

    def _users(self, key: str) -> Iterator[PodInfo]:
        for row in sorted(self._cluster.table.claims.get(key, {})):
            for pod in self._cluster.table.pods.on(row):
                if any(use.key == key for use in claims_of(pod.pod)):
                    yield pod

    def _disks(self, row: int) -> Iterator[Fact]:
        for volume in self._pod.spec.volumes or ():
            for other in self._cluster.table.pods.on(row):
                if conflicts(volume, other.pod):
                    taken = f"the disk of volume {volume.name} is in use on the node"
                    yield _use_fact(f"{taken} by {other.key}", {"pod": other.key}, DISK_CONFLICT, taken)
                    break


def _limit_fact(driver: str, n_new: int, n_held: int, limit: int) -> Fact:
    brings = f"brings {n_new} volume{'s' if n_new > 1 else ''}"
    fields = {"driver": driver, "brings": n_new, "attached": n_held, "limit": limit}
    return Fact(
        NodeVolumeLimits.name,
        f"{driver}: {brings}, {n_held} of {limit} are attached",
        fields,
        NEAR * (n_held + n_new - limit) / max(n_new, 1),
        "",
        CauseKind.VOLUME_LIMIT,
        Nearness.LACKS if limit >= n_new else Nearness.TOO_SMALL,
        f"{driver}: {brings}, and the node can attach no more",
    )


def _use_fact(text: str, fields: dict[str, str], reason: str, general: str = "") -> Fact:
    return Fact(VolumeRestrictions.name, text, fields, NEAR, reason, CauseKind.VOLUME_IN_USE, Nearness.LACKS, general)
