"""Plans that are kept: the same search and choice as among candidates made from nothing."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PostFilterResult
from kubesched.framework.status import Status
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod, PodSpec, PodStatus
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.node_order import NameOrder
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.preemption.candidates import Candidate, PreemptionPlans, least_harmful, who_stays
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make

NO_HELP = Status.unschedulable("in vain")
SIGNATURES = Cluster().signatures


def _pod(priority: int, *, uid: str = "u", started_day: int = 0, deleted: str | None = None) -> PodInfo:
    started = f"2026-01-{started_day:02}T00:00:00Z" if started_day else None
    metadata = ObjectMeta(name=uid, namespace="default", uid=uid, deletion_timestamp=deleted)
    return SIGNATURES.info(Pod(metadata, PodSpec(priority=priority), PodStatus(start_time=started)))


def _plans(names: list[str]) -> PreemptionPlans:
    return PreemptionPlans(len(names), lambda: NameOrder(names))


@st.composite
def outcomes(draw: st.DrawFn, *, breaks: bool) -> Candidate | Status:
    if draw(st.booleans()):
        return NO_HELP
    victims = tuple(
        _pod(draw(st.integers(0, 1)), started_day=draw(st.integers(0, 2))) for _ in range(draw(st.integers(1, 2)))
    )
    return Candidate("", tuple(sorted(victims, key=lambda victim: -victim.priority)), draw(st.integers(0, breaks)))


def _from_nothing(rows: list[int], enough: int, found: list[Candidate | Status]) -> list[int]:
    candidates: list[int] = []
    is_harmless = False
    for row in rows:
        candidate = found[row]
        if isinstance(candidate, Candidate):
            candidates.append(row)
            is_harmless = is_harmless or not candidate.n_budget_violations
            if is_harmless and len(candidates) >= enough:
                break
    return candidates


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_search_among_plans_is_a_search_from_nothing(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))
    names = [f"n{row}" for row in data.draw(st.permutations(range(n)))]
    plans = _plans(names)
    found: list[Candidate | Status] = [NO_HELP] * n
    changed, among, breaks = set(range(n)), np.arange(n), data.draw(st.booleans())
    for _ in range(data.draw(st.integers(1, 6))):
        for row in changed:
            made = data.draw(outcomes(breaks=breaks))
            found[row] = (
                made if isinstance(made, Status) else Candidate(names[row], made.victims, made.n_budget_violations)
            )
            plans.forget(row)
        if data.draw(st.booleans()):  # as long as the rows are the same ones, candidates are known without a search
            among = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))), dtype=np.intp)
        rows = among.tolist()
        start, enough = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, len(rows)))
        answer = plans.search(among, start, enough, found.__getitem__)
        assert answer.tolist() == _from_nothing([*rows[start:], *rows[:start]], enough, found)
        if len(answer):
            best = least_harmful([candidate for row in answer if isinstance(candidate := found[row], Candidate)])
            assert [names[row] for row in plans.least_harmful(answer)] == [candidate.node_name for candidate in best]
        changed = data.draw(st.sets(st.integers(0, n - 1)))


def test_why_evictions_help_nowhere_is_counted_row_by_row() -> None:
    plans = _plans(["a", "b", "c"])
    rows = np.arange(3)
    found: list[Candidate | Status] = [NO_HELP, NO_HELP, Status.unschedulable("other")]
    plans.search(rows, 2, 1, found.__getitem__)
    assert plans.failure_counts() == ({"in vain": 2, "other": 1}, 3)
    setattr(plans, "nowhere", PostFilterResult(NO_HELP))  # noqa: B010  the type checker would not see it forgotten
    found[0] = Status.unschedulable("other", "and more")
    plans.forget(0)
    assert plans.nowhere is None
    plans.search(rows, 0, 1, found.__getitem__)
    assert plans.failure_counts() == ({"in vain": 1, "other": 2, "and more": 1}, 3)
    found[2] = Candidate("c", (_pod(0),), 0)
    plans.forget(2)
    assert plans.search(rows, 0, 1, found.__getitem__).tolist() == [2]
    assert plans.failure_counts() == ({"in vain": 1, "other": 1, "and more": 1}, 2)
    plans.forget(2)
    assert plans.failure_counts()[1] == 2


def test_a_search_in_no_rows_finds_none() -> None:
    plans = _plans(["a"])
    assert len(plans.search(np.zeros(0, dtype=np.intp), 0, 1, lambda row: NO_HELP)) == 0


@pytest.mark.parametrize(
    ("later", "known"),
    [
        pytest.param(([_pod(9, uid="high"), _pod(0, uid="other")], []), True, id="others to evict came and went"),
        pytest.param(([_pod(0, uid="low")], [_pod(9, uid="high")]), True, id="who stays is promised the node instead"),
        pytest.param(([_pod(9, uid="new"), _pod(0, uid="low")], []), False, id="another one stays"),
        pytest.param(([_pod(9, uid="high", deleted="2026-01-01T00:00:00Z"), _pod(0)], []), False, id="one is leaving"),
        pytest.param(([_pod(0, uid="low")], []), False, id="nobody stays any more"),
    ],
)
def test_evictions_stay_in_vain_while_the_same_pods_stay(
    later: tuple[list[PodInfo], list[PodInfo]], known: bool
) -> None:
    plans = _plans(["a"])
    before = who_stays([_pod(9, uid="high"), _pod(0, uid="low")], [], 5)
    after = who_stays(*later, 5)
    assert before is not None
    assert after is not None
    plans.keep_in_vain(0, before, NO_HELP)
    plans.forget(0)
    assert plans.in_vain(0, after) == (NO_HELP if known else None)


def test_where_nobody_would_have_to_go_nothing_is_said() -> None:
    assert who_stays([_pod(5)], [], 5) is None
    assert who_stays([], [_pod(9)], 5) is None


@pytest.mark.parametrize("taints", [(), (make.taint("gpu"),)], ids=["evictions could help", "they could not"])
@pytest.mark.parametrize("priority", [0, 5])
def test_where_nobody_has_a_lower_priority_the_dry_runs_are_spared_and_the_answer_is_theirs(
    priority: int, taints: tuple[dict[str, str], ...]
) -> None:
    loop = build_loop(default(), ByName())
    objects = [make.node("a", cpu="1"), make.node("b", cpu="1", taints=taints), make.node("c", cpu="1", taints=taints)]
    objects += [make.pod(f"on-{name}", cpu="1", on=name, priority=5) for name in "abc"]
    for item in manifests.from_dicts(objects).objects:
        loop.put(item, 0.0)
    (pod,) = manifests.from_dicts([make.pod("late", cpu="1", priority=priority)]).objects
    assert isinstance(pod, Pod)
    scheduler, pods = loop.schedulers["default-scheduler"], loop.cluster.table.pods
    assert pods.lowest_priority == 5
    spared = scheduler.decide(loop.cluster.signatures.info(pod), complete=True)
    pods.lowest_priority = -inf
    assert scheduler.decide(loop.cluster.signatures.info(pod), complete=True).message == spared.message
    assert "No preemption victims found for incoming pod" in spared.message
