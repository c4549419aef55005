"""Traces that once failed, kept because few seeds lead there."""

from __future__ import annotations

import pytest

from kubesched.testing.chaos import parse_trace, run_trace

THE_LAST_POD_WITH_TERMS_LEAVES = """
options seed=5206 strict=1 permit=1 extender=0
node n0 cpu=2
restart
pod p6 cpu=2
deliver pods
pod p3 apart=db priority=10
schedule
deliver pods
node n3
pod p8 app=db priority=5
schedule
pod p9 priority=10 permit=3
pod p7 app=db priority=5
settle
schedule
pod p4 app=db apart=db priority=10
settle
wait for=11
schedule
schedule
schedule
schedule
timeout bind/p4
"""
"""A class of pods followed the last pod that kept them off until it was gone, and went on heeding terms of nominated
pods, which nobody heeds where no pod in the cluster has any."""

A_VOLUME_NEVER_COMES = """
options seed=133 strict=1 permit=0 extender=2
pod p0 claim=c2
node n0
volume v2
claim c2 class=local
settle
disconnect claims
drop claim c2
schedule
claim c2
settle
"""
"""A pod waits ten minutes for a claim that was replaced, and then has another try."""


A_NOMINATION_IS_TAKEN_BACK_UNWRITTEN = """
options seed=4302 strict=1 permit=0 extender=0
node n0 cpu=6
pod p6 cpu=2 priority=1
deliver nodes
deliver pods default/p6
schedule
pod p9
deliver pods
schedule
pod p1 cpu=3 priority=1
pod p4 priority=10
deliver pods
schedule
pod p8
schedule
pod p5 priority=5
"""
"""A pod was promised a node, and lost the promise before it was written: no change of the pod tells those who had to
leave it the place."""

A_CLASS_WITHOUT_NODES = """
options seed=312 strict=1 permit=0 extender=0
node n1
pod p9 app=db
settle
schedule
drop node n1
pod p4 app=db
deliver pods default/p4
schedule
settle
pod p3 app=db
deliver pods default/p3
schedule
node n0
"""
"""The last node goes, and another comes: what was known of pods alike knows no rows."""

A_VICTIM_IS_RELABELLED_ON_ITS_WAY = """
options seed=0 strict=1 permit=1 extender=0
node n0
deliver
pod p8 port=80
pod p6 app=db
relabel p6
deliver pods default/p6
pod p3 port=80 apart=db priority=10
schedule
deliver
schedule
"""
"""A pod changed its labels while it was being bound, so that it was in nobody's way any more; the pod that had to evict
it was not told, neither of that nor, since the labels were others by then, of its leaving."""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(THE_LAST_POD_WITH_TERMS_LEAVES, id="the last pod with terms leaves"),
        pytest.param(A_VOLUME_NEVER_COMES, id="a volume never comes"),
        pytest.param(A_NOMINATION_IS_TAKEN_BACK_UNWRITTEN, id="a nomination is taken back unwritten"),
        pytest.param(A_CLASS_WITHOUT_NODES, id="a class without nodes"),
        pytest.param(A_VICTIM_IS_RELABELLED_ON_ITS_WAY, id="a victim is relabelled on its way"),
    ],
)
def test_a_trace_that_once_failed_passes(text: str) -> None:
    assert run_trace(parse_trace(text)).failure is None
