"""One pod on one node beside others: imagined or put on the table, the answer is the same."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import default
from kubesched.scheduler.engine import row_check
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import strategies
from kubesched.testing.make import Manifest


def _statuses(objects: list[Manifest]) -> list[Status]:
    """Of the pending pod on each node, beside some like those that run in the cluster."""
    cluster = Cluster.from_objects(manifests.from_dicts(objects).objects)
    profile = build_schedulers(cluster, default(), ByName(), percentage=100)["default-scheduler"].profile
    pod = next(iter(cluster.pending.values()))
    cycle = CycleState()
    if not run_pre_filter(profile, cycle, pod, cluster.nodes).status.is_success:
        return []
    statuses = []
    for row in range(len(cluster.nodes)):
        others = [_like(info, f"other-{row}-{number}") for number, info in enumerate(cluster.placed.values())][:3]
        statuses.append(row_check.check_row_beside(cluster, profile, cycle, pod, row, others))
        statuses.append(row_check.check_row_with_nominated(cluster, profile, cycle, pod, row))
    return statuses


def _like(info: PodInfo, uid: str) -> PodInfo:
    copy = PodInfo(info.pod, info.signature)
    copy.uid = uid
    return copy


@settings(max_examples=150, deadline=None)
@given(strategies.clusters())
def test_pods_imagined_on_a_node_count_as_those_on_the_table(objects: list[Manifest]) -> None:
    imagined = _statuses(objects)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_check, "steps_within_node", lambda *args: None)
        on_the_table = _statuses(objects)
    event(f"rejected: {any(not status.is_success for status in imagined)}")
    assert imagined == on_the_table
