"""Filter with the pods that are nominated to a node.

Pods of equal or higher priority that are nominated to a node are treated as if they ran there: the pod must fit with
them and without them.
"""

from __future__ import annotations

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.filter import FilterOutcome, index_of, run_filters
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.row_check import check_row_beside, nominated_pods_on


def run_filters_with_nominated(
    cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, nodes: NodeTable
) -> FilterOutcome:
    """As `run_filters`, and nodes must hold the pod beside those nominated to them, too. A rejection because of these
    comes before any other."""
    outcome = run_filters(profile, cycle, pod, nodes)
    rows = nodes.rows
    for node_name in cluster.nominations.node_names():
        row = cluster.table.rows.get(node_name)
        nominated_pods = nominated_pods_on(cluster, pod, node_name)
        if row is None or not nominated_pods:
            continue
        position = row if row < len(rows) and rows[row] == row else index_of(rows, row)
        if position is None:
            continue
        status = check_row_beside(cluster, profile, cycle, pod, row, nominated_pods)
        if not status.is_success:
            outcome.fits[position] = False
            outcome.unresolvable[position] = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            outcome.overrides[position] = status
    return outcome
