"""Traces that once failed, kept because few seeds lead there."""

from __future__ import annotations

import pytest

from harness.chaos import parse_trace, run_trace

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

A_NOMINATED_POD_GOES_ELSEWHERE = """
options seed=0 strict=1 permit=1 extender=0
node n0 cpu=6
node n2 zone=b
deliver
pod p8 cpu=2
pod p7 cpu=2 near=web permit=30
pod p3
pod p2 cpu=2
deliver pods
schedule
schedule
delete p8
schedule
schedule
pod p9 app=db
land bind/p3
pod p8 cpu=3
land patch/p7
delete p3
pod p1 app=db
deliver
schedule
schedule
allow p7 not=1
"""
"""A pod that was rejected at the turnstile was still promised a node, since taking that back was lost; it went to
another one. Those that had left it the place were not told."""

A_NOMINATED_POD_IS_BOUND_ELSEWHERE_BY_ANOTHER = """
options seed=0 strict=1 permit=0 extender=0
node n0 cpu=2
pod p1 cpu=2
settle
schedule
settle
pod p5 cpu=2 priority=5
settle
schedule
settle
reap p1
pod p6 cpu=2
deliver
schedule
node n2 cpu=1
deliver
other p5 n2
"""
"""The same, by the hand of somebody else."""

AN_ANSWER_COMES_AFTER_IT_WAS_ASKED_FOR = """
options seed=991 strict=1 permit=0 extender=0
node n3
pod p7
settle
schedule
land bind/p7
wait for=70
reply bind/p7
timeout find-bind/p7
wait
wait
schedule
"""
"""It was asked what became of a binding; then its answer came, nobody took it, and reading failed: the pod was bound
once more."""

READS_ARE_NOT_WITHHELD = """
options seed=0 strict=0 permit=0 extender=0
node n1 cpu=6
pod p4
pod p1
pod p2 cpu=3
deliver
pod p0 cpu=2
schedule
land bind/p4
schedule
land bind/p1
deliver pods
schedule
land bind/p2
wait for=650
withhold
schedule
"""
"""The gate holds back writes. A question is none, and what it is about may have come about."""

A_PROMISE_THAT_NOBODY_WROTE_AND_NOBODY_CAN_LOOK_AT = """
options seed=0 strict=0 permit=0 extender=0
node n0
node n1
claim c0
claim c1
claim c3
pod p8
pod p3 cpu=2 claim=c1 priority=5
pod p4 cpu=2 claim=c3
pod p9 priority=5
restart
schedule
schedule
settle
control c1
deliver claims default/c1
deliver volumes
refuse bind/p3
wait
settle
schedule
schedule
wait
schedule
drop volume made-c1-6
"""
"""A pod was promised a node, the patch was lost, and its volume went: PostFilter broke at every try from then on, and
the promise was kept forever."""


A_POD_THAT_IS_BEING_BOUND_IS_BOUND_ELSEWHERE_BY_ANOTHER = """
options seed=15463 strict=1 permit=0 extender=0
node n0 cpu=6
pod p9 cpu=2
deliver
schedule
pod p1 cpu=2
pod p4 cpu=3 gate=1
pod p5 cpu=3
ungate p4
settle
schedule
schedule
timeout bind/p1
delete p1
other p4 n2
schedule
schedule
"""
"""We had a place for a pod on one node, and another scheduler bound it to a second one: the first was free, and nobody
was told."""

WHAT_WOULD_LET_A_POD_PREEMPT_COMES_WITH_THE_FLUSH = """
options seed=53052 strict=0 permit=0 extender=1
node n0
pod p6
pod p0 app=db gate=1 priority=10
pod p1 cpu=2 app=db
pod p5 near=web priority=5
deliver
relabel p5 app=db
ungate p0
schedule
timeout filter-call/p5
settle
pod p7 cpu=2 near=db priority=10
schedule
timeout filter-call/p0
"""
"""Two pods had waited long and were tried again, one after the other. The second could not preempt before the first was
bound, which no hint tells: it has to wait long once more, and the run was over before."""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(THE_LAST_POD_WITH_TERMS_LEAVES, id="the last pod with terms leaves"),
        pytest.param(A_VOLUME_NEVER_COMES, id="a volume never comes"),
        pytest.param(A_NOMINATION_IS_TAKEN_BACK_UNWRITTEN, id="a nomination is taken back unwritten"),
        pytest.param(A_CLASS_WITHOUT_NODES, id="a class without nodes"),
        pytest.param(A_VICTIM_IS_RELABELLED_ON_ITS_WAY, id="a victim is relabelled on its way"),
        pytest.param(A_NOMINATED_POD_GOES_ELSEWHERE, id="a nominated pod goes elsewhere"),
        pytest.param(A_NOMINATED_POD_IS_BOUND_ELSEWHERE_BY_ANOTHER, id="a nominated pod is bound elsewhere by another"),
        pytest.param(AN_ANSWER_COMES_AFTER_IT_WAS_ASKED_FOR, id="an answer comes after it was asked for"),
        pytest.param(READS_ARE_NOT_WITHHELD, id="reads are not withheld"),
        pytest.param(A_PROMISE_THAT_NOBODY_WROTE_AND_NOBODY_CAN_LOOK_AT, id="a promise that nobody wrote"),
        pytest.param(A_POD_THAT_IS_BEING_BOUND_IS_BOUND_ELSEWHERE_BY_ANOTHER, id="an assumed pod is bound elsewhere"),
        pytest.param(WHAT_WOULD_LET_A_POD_PREEMPT_COMES_WITH_THE_FLUSH, id="what would let a pod preempt comes late"),
    ],
)
def test_a_trace_that_once_failed_passes(text: str) -> None:
    assert run_trace(parse_trace(text)).failure is None
