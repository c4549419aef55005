"""TaintToleration: which taints reject, which only cost score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_clusters import NO_HANDLE, node, pod, pod_info, statuses, table

from kubesched.framework import OK, CycleState, Hint
from kubesched.framework.events import HintFunction
from kubesched.k8s.model.core import Node
from kubesched.scheduler.plugins.taint_toleration import TaintToleration

PLUGIN = TaintToleration(None, NO_HANDLE)
REJECTED = ("UnschedulableAndUnresolvable", "node(s) had untolerated taint(s)")

Taint = dict[str, str]


def taint(key: str, effect: str, value: str = "") -> Taint:
    return {"key": key, "effect": effect, "value": value}


def hints() -> list[HintFunction | None]:
    return [registered.hint for registered in PLUGIN.events_to_register()]


@pytest.mark.parametrize(
    ("taints", "tolerations", "is_rejected"),
    [
        pytest.param(None, [], False, id="no taints"),
        pytest.param([taint("a", "NoSchedule")], [], True, id="NoSchedule, nothing tolerated"),
        pytest.param([taint("a", "NoExecute")], [], True, id="NoExecute, nothing tolerated"),
        pytest.param([taint("a", "PreferNoSchedule")], [], False, id="PreferNoSchedule never rejects"),
        pytest.param([taint("a", "Sometime")], [], False, id="an unknown effect never rejects"),
        pytest.param([taint("a", "NoSchedule", "x")], [{"key": "a", "value": "x"}], False, id="equal by default"),
        pytest.param([taint("a", "NoSchedule", "x")], [{"key": "a", "value": "y"}], True, id="another value"),
        pytest.param(
            [taint("a", "NoSchedule"), taint("b", "NoExecute")],
            [{"key": "a", "operator": "Exists"}],
            True,
            id="one of two tolerated",
        ),
        pytest.param(
            [taint("a", "NoSchedule"), taint("b", "NoExecute", "v")],
            [{"key": "b", "value": "v", "effect": "NoExecute"}, {"key": "a", "operator": "Exists"}],
            False,
            id="both tolerated, each by its own toleration",
        ),
        pytest.param([taint("a", "NoExecute")], [{"operator": "Exists"}], False, id="everything tolerated"),
        pytest.param([taint("a", "NoSchedule", "1")], [{"key": "a", "operator": "Lt", "value": "5"}], True, id="Lt"),
    ],
)
def test_untolerated_taints_reject_a_node(
    taints: list[Taint] | None, tolerations: list[dict[str, Any]], is_rejected: bool
) -> None:
    nodes = table(node("clean"), node("tainted", taints=taints))
    found = statuses(PLUGIN.filter(CycleState(), pod_info(tolerations=tolerations), nodes), nodes)
    assert found == ({"tainted": REJECTED} if is_rejected else {})


def test_a_part_of_the_table_gets_the_answers_of_its_own_rows() -> None:
    nodes = table(node("a", taints=[taint("a", "NoSchedule")]), node("b"), node("c", taints=[taint("c", "NoExecute")]))
    part = nodes.take(np.array([2, 1]))
    assert statuses(PLUGIN.filter(CycleState(), pod_info(), part), part) == {"c": REJECTED}


def scores(tolerations: list[dict[str, Any]], *nodes_given: Node) -> tuple[list[int], list[int]]:
    """Raw and normalized."""
    cycle, pod_at_hand, nodes = CycleState(), pod_info(tolerations=tolerations), table(*nodes_given)
    assert PLUGIN.pre_score(cycle, pod_at_hand, nodes) == OK
    raw = PLUGIN.score(cycle, pod_at_hand, nodes)
    return raw.tolist(), PLUGIN.normalize_score(cycle, pod_at_hand, nodes, raw).tolist()


PREFER_TWO = [taint("a", "PreferNoSchedule"), taint("b", "PreferNoSchedule"), taint("c", "NoSchedule")]
PREFER_THREE = [taint(key, "PreferNoSchedule") for key in "abc"]


@pytest.mark.parametrize(
    ("tolerations", "raw", "normalized"),
    [
        pytest.param([], [0, 2, 3], [100, 34, 0], id="nothing tolerated: more taints, less score"),
        pytest.param([{"operator": "Exists"}], [0, 0, 0], [100, 100, 100], id="all tolerated: all alike"),
        pytest.param([{"key": "c", "operator": "Exists"}], [0, 2, 2], [100, 0, 0], id="tolerated without an effect"),
        pytest.param(
            [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
            [0, 2, 3],
            [100, 34, 0],
            id="tolerated with another effect only",
        ),
    ],
)
def test_every_untolerated_taint_to_avoid_costs_score(
    tolerations: list[dict[str, Any]], raw: list[int], normalized: list[int]
) -> None:
    found = scores(tolerations, node("clean"), node("two", taints=PREFER_TWO), node("three", taints=PREFER_THREE))
    assert found == (raw, normalized)


def test_scoring_without_pre_score_fails_as_in_kube_scheduler() -> None:
    with pytest.raises(LookupError, match='failed to read "PreScoreTaintToleration" from cycleState: not found'):
        PLUGIN.score(CycleState(), pod_info(), table(node("n")))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, node("n"), Hint.QUEUE, id="a clean node came"),
        pytest.param(None, node("n", taints=[taint("a", "NoSchedule")]), Hint.SKIP, id="a tainted node came"),
        pytest.param(None, node("n", taints=[taint("ok", "NoSchedule")]), Hint.QUEUE, id="one with a tolerated taint"),
        pytest.param(node("n", taints=[taint("a", "NoExecute")]), node("n"), Hint.QUEUE, id="the taint went"),
        pytest.param(node("n"), node("n"), Hint.SKIP, id="clean before and after"),
        pytest.param(
            node("n", taints=[taint("a", "NoExecute")]),
            node("n", taints=[taint("b", "NoExecute")]),
            Hint.SKIP,
            id="one taint for another",
        ),
        pytest.param(None, None, Hint.QUEUE, id="something that cannot be, to be safe"),
    ],
)
def test_a_node_that_becomes_tolerable_is_worth_a_try(old: Node | None, new: Node | None, expected: Hint) -> None:
    after_node_change, _ = hints()
    assert after_node_change is not None
    assert after_node_change(pod_info(tolerations=[{"key": "ok", "operator": "Exists"}]), old, new) == expected


def test_only_the_pods_own_tolerations_count() -> None:
    _, after_toleration_change = hints()
    assert after_toleration_change is not None
    assert after_toleration_change(pod_info("p"), pod("p"), pod("p", tolerations=[{"key": "z"}])) == Hint.QUEUE
    assert after_toleration_change(pod_info("p"), pod("q"), pod("q")) == Hint.SKIP
