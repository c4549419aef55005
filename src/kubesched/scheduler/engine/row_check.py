"""One pod on one node: does it fit as things are, or with the pods nominated there?

The same answer as the filters give for a table of one row. Trials (preemption, nominated pods) ask this very often:
where every filter looks at one node at a time they are asked through their scalar forms, and other pods are imagined
on the node; else these are put on the table, and taken off again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, Status
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.filter import change_state
from kubesched.scheduler.engine.imagined_node import ImaginedNode, steps_within_node
from kubesched.scheduler.engine.plugin_call import PluginError, blamed, guarded
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.steps import FilterStep


def check_row(cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, row: int) -> Status:
    """The first rejection, with its plugin; or OK."""
    node = NodeRow(cluster.table, row)
    steps = steps_within_node(profile, cycle, pod)
    if steps is not None:
        return _check_node(steps, cycle, pod, node)
    alone = None
    for step in profile.filter:
        if step.name in cycle.skip_filter:
            continue
        with guarded(step.name, 'running "{}" filter plugin'):
            if step.filter_node is not None:
                status = step.filter_node(cycle, pod, node)
            else:
                if alone is None:
                    alone = cluster.nodes.take(np.array([row]))
                status = step.filter(cycle, pod, alone).status(0)
        if not status.is_success:
            return _rejection(status, step.name)
    return OK


def check_row_with_nominated(cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, row: int) -> Status:
    """The pod must fit beside the nominated pods (asked first, as their rejection counts) and without them."""
    nominated_pods = nominated_pods_on(cluster, pod, cluster.table.names[row])
    if nominated_pods:
        status = check_row_beside(cluster, profile, cycle, pod, row, nominated_pods)
        if not status.is_success:
            return status
    return check_row(cluster, profile, cycle, pod, row)


def nominated_pods_on(cluster: Cluster, pod: PodInfo, node_name: str) -> list[PodInfo]:
    """Pods nominated to the node that this one must not overtake."""
    return [p for p in cluster.nominations.on(node_name) if p.priority >= pod.priority and p.uid != pod.uid]


def check_row_beside(
    cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, row: int, others: Sequence[PodInfo]
) -> Status:
    """Whether the pod fits on the row if the others ran there too."""
    steps = steps_within_node(profile, cycle, pod)
    if steps is not None:
        imagined = ImaginedNode(NodeRow(cluster.table, row))
        for other in others:
            imagined.bring(other)
        return _check_node(steps, cycle, pod, imagined)
    with cluster.with_pods(others, row):
        for other in others:
            change_state(profile, cycle, pod, other, cluster, row, adding=True)
        status = check_row(cluster, profile, cycle, pod, row)
        for other in reversed(others):
            change_state(profile, cycle, pod, other, cluster, row, adding=False)
    return status


def _check_node(steps: Sequence[FilterStep], cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
    for step in steps:
        assert step.filter_node is not None
        try:
            status = step.filter_node(cycle, pod, node)
        except Exception as bug:
            raise blamed(bug, step.name, 'running "{}" filter plugin') from bug
        if status is not OK and not status.is_success:
            return _rejection(status, step.name)
    return OK


def _rejection(status: Status, plugin: str) -> Status:
    if status.code is Code.ERROR:
        raise PluginError(plugin, f'running "{plugin}" filter plugin: {status.message}')
    return status.by(plugin)
