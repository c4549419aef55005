"""A handle on a small cluster with racks, in which some pods of a group are placed already."""

from __future__ import annotations

import numpy as np
from small_clusters import node, pod

from kubesched.framework.groups import Placement, PlacementAssignments, PodGroupMembers
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.scheduling import AnyGroup, PodGroup
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.testing.world import QuietHandle

_ROOM = {"allocatable": {"cpu": "5", "memory": "5000", "gpu.com/g": "5", "pods": "9"}}
RACKS = {"a": "r0", "b": "r1", "c": "r0", "d": "", "e": "r1"}


class PlacedGroups(QuietHandle):
    """Pods of group `g` by name, and the node of each."""

    def __init__(self, placed: dict[str, str], *objects: PodGroup | Pod) -> None:
        nodes = [node(name, labels={"rack": rack} if rack else {}, status=_ROOM) for name, rack in RACKS.items()]
        members = [
            pod(name, uid=name, schedulingGroup={"podGroupName": "g"}, nodeName=where) for name, where in placed.items()
        ]
        self.cluster = Cluster.from_objects([*nodes, *members, *objects])
        self.cluster.track_groups({"default-scheduler"})
        self.objects = self.cluster.objects

    @property
    def nodes(self) -> TableView:
        return self.cluster.nodes

    def group(self, key: str) -> AnyGroup | None:
        return self.objects.pod_groups.get(key)

    def group_members(self, key: str) -> PodGroupMembers | None:
        assert self.cluster.groups is not None
        return self.cluster.groups.get(key)


def placement(rows: list[int], *assignments: tuple[PodInfo, int], name: str = "") -> PlacementAssignments:
    return PlacementAssignments(Placement(name, np.array(rows, dtype=np.intp)), assignments)
