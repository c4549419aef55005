"""How many pods of a group find room in each placement, as far as that can be said before one of them is placed.

Every filter is asked once about every kind of pod, with the table as it is. Those whose answers depend on pods that are
placed before say how many of the group they let in (`BoundsGroups`); if one cannot say that, the group has to be tried
in every placement.

Next: `placements`, which tries the group only where that leaves a doubt.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.framework.caching import Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.group_room import BoundsGroups, GroupKind, GroupRoom
from kubesched.framework.nodes import RowSets
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.framework.status import PluginFault
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.filter import ask
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.profile import Profile


def group_room(
    cluster: Cluster, scheduler: ProfileScheduler, pods: Sequence[PodInfo], parts: RowSets
) -> GroupRoom | None:
    """None if it takes trials to know."""
    if not scheduler.has_only_in_tree_plugins or cluster.table.has_absurd_amounts or len(cluster.nodes) == 0:
        return None
    if any(pod.spec.resource_claims for pod in pods):
        return None
    try:
        kinds, n_pods_out = _kinds(cluster, scheduler.profile, pods)
        room = GroupRoom(cluster.nodes, kinds, parts) if kinds else None
        if room is None or not _told(scheduler.profile, room):
            return None
    except (PluginError, PluginFault):
        return None
    if n_pods_out:
        room.low[:] = 0
    for node_name in cluster.nominations.node_names():  # where others must not be overtaken, it takes a trial
        row = cluster.table.rows.get(node_name)
        if row is not None:
            room.low[row] = 0
    return room


def _kinds(cluster: Cluster, profile: Profile, pods: Sequence[PodInfo]) -> tuple[list[GroupKind], int]:
    """And how many of the pods fit nowhere, whatever comes."""
    alike: dict[tuple[PodSignature, str], list[PodInfo]] = {}
    for pod in pods:
        alike.setdefault((pod.signature, pod.pin), []).append(pod)
    nodes, kinds, n_out = cluster.nodes, [], 0
    for first, *others in alike.values():
        cycle = CycleState()
        before = run_pre_filter(profile, cycle, first, nodes)
        if not before.status.is_success:
            n_out += 1 + len(others)
            continue
        is_open = _open_rows(profile, cycle, first, nodes)
        if before.node_names is not None:
            rows = [row for name in before.node_names if (row := nodes.row_of(name)) is not None]
            is_named = np.zeros_like(is_open)
            is_named[rows] = True
            is_open = is_open & is_named
        kinds.append(GroupKind(first, cycle, 1 + len(others), is_open))
    return kinds, n_out


def _open_rows(profile: Profile, cycle: CycleState, pod: PodInfo, nodes: TableView) -> BoolArray:
    is_open = np.ones(len(nodes), dtype=np.bool_)
    for step in profile.filter:
        if step.name in cycle.skip_filter or getattr(profile.plugins[step.name], "reopens", False):
            continue
        verdicts = ask(step, cycle, pod, nodes)
        if verdicts.errors:
            raise PluginError(step.name, "a node cannot be judged")
        if verdicts is not ACCEPT_ALL:
            is_open &= ~verdicts.rejected
    return is_open


def _told(profile: Profile, room: GroupRoom) -> bool:
    """Whether all filters could say how many of the group they let in."""
    for step in profile.filter:
        if all(step.scope_for(kind.pod) is Scope.NODE for kind in room.kinds):
            continue
        plugin = profile.plugins[step.name]
        if not isinstance(plugin, BoundsGroups) or not plugin.bound_group(room):
            return False
    return True
