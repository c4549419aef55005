"""The readable answer: its first line is the verdict, whatever became of the pod."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.explanation.layout import Style
from kubesched.explanation.text import render
from kubesched.simulator.asking import explain
from kubesched.testing import make
from kubesched.testing.make import Manifest


def answer(objects: list[Manifest], *, wide: bool = False, width: int = 100, config: Any = None) -> list[str]:
    return render(explain(objects, "default/p", config), Style(width=width, wide=wide)).splitlines()


VERDICTS = [
    pytest.param(
        [make.node("a", cpu=8), make.node("b", cpu=2), make.pod("p", cpu=1)],
        ["Pod default/p fits on 2 of 2 nodes and would go to a."],
        id="it goes to the best node",
    ),
    pytest.param(
        [*(make.node(name) for name in "abcd"), make.pod("p")],
        ["Pod default/p fits on 4 of 4 nodes and would go to one of 4 equally good ones: a, b, c and 1 more."],
        id="to one of several",
    ),
    pytest.param(
        [make.node("a", cpu=8), make.node("b"), make.pod("p", cpu=1, status={"nominatedNodeName": "b"})],
        ["Pod default/p fits on 2 of 2 nodes and would go to b, which it is nominated to."],
        id="to the node it is nominated to",
    ),
    pytest.param(
        [make.node("a", cpu=1), make.pod("p", cpu=2)],
        [
            "Pod default/p is pending: needs 2 cpu; the only node, a, has 1 cpu even when empty. No eviction helps: "
            "ask for at most 1 cpu, or add a larger node.",
        ],
        id="nowhere, with what is needed, what there is and what to do",
    ),
    pytest.param(
        [make.node("a", cpu=2), make.pod("x", on="a", cpu=1), make.pod("p", cpu=2, priority=1)],
        [
            "Pod default/p is pending: needs 2 cpu; the only node, a, has 1 free. Preemption evicts "
            "default/x (priority 0) from a, then it fits.",
        ],
        id="nowhere without evictions",
    ),
    pytest.param(
        [
            make.node("a"),
            make.pod("p", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}),
        ],
        [
            "Pod default/p is pending: claim data does not exist in namespace default. Create it, or correct the name "
            "in the pod's volumes.",
        ],
        id="rejected as a whole",
    ),
    pytest.param(
        [make.node("a"), make.pod("p", spec={"schedulingGates": [{"name": "quota"}]})],
        [
            "Pod default/p is pending: the scheduling gate quota holds it back before any node is looked at. It is "
            "scheduled when whoever set it has removed it (spec.schedulingGates); it then fits on 1 of 1 node and "
            "would go to a.",
        ],
        id="gated",
    ),
    pytest.param(
        [make.pod("p")],
        ["Pod default/p is pending: there are no nodes. Add a node."],
        id="no nodes",
    ),
    pytest.param(
        [make.node("a"), make.pod("p", spec={"schedulerName": "other"})],
        [
            'Pod default/p is pending: its scheduler "other" is not configured here. Check that it is running. Nodes '
            'are shown as "default-scheduler" sees them.',
        ],
        id="where another scheduler is asked for, that comes first",
    ),
    pytest.param(
        [make.node("a"), make.pod("p", spec={"schedulerName": "other", "nodeName": "a"})],
        [
            'Pod default/p is on a; its scheduler "other" is not configured here, so this is as "default-scheduler" '
            "sees it; it would go there again today, with 397 points.",
        ],
        id="a bound pod of another scheduler is not pending",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), VERDICTS)
def test_the_verdict_comes_first(objects: list[Manifest], expected: list[str]) -> None:
    lines = answer(objects)
    assert lines[: lines.index("") if "" in lines else None] == expected


def test_only_the_best_nodes_are_shown_unless_all_are_asked_for() -> None:
    objects = [*(make.node(f"n{i:02}", cpu=i + 1) for i in range(12)), make.pod("p", cpu="100m")]
    shown = [line.split() for line in answer(objects) if line.startswith("  n")]
    totals = [int(total) for _, total, *_ in shown]
    assert len(shown) == 8 and totals == sorted(totals, reverse=True)
    assert any(line.startswith("  and 4 more nodes, down to a total of ") for line in answer(objects))
    assert len([line for line in answer(objects, wide=True) if line.startswith("  n")]) == 12


def test_wide_shows_every_plugin_that_rejects_a_node() -> None:
    objects = [make.node("a", cpu=1, taints=[make.taint("gpu")]), make.node("b"), make.pod("p", cpu=2)]
    lines = answer(objects, wide=True)
    start = lines.index("Nodes that do not fit (1), each with every reason against it")
    assert lines[start + 1 :] == [
        "  a",
        "    TaintToleration: node(s) had untolerated taint(s) (evictions do not help)",
        "      taint gpu:NoSchedule is not tolerated",
        "    NodeResourcesFit: Insufficient cpu (evictions do not help)",
        "      cpu: requested 2, free 1 (used 0 of 1)",
    ]


def test_nodes_are_grouped_by_what_is_true_of_them() -> None:
    objects = [
        *(make.node(f"n{i}", taints=[make.taint("spot" if i % 3 else "gpu")]) for i in range(12)),
        make.pod("p"),
    ]
    lines = answer(objects)
    start = lines.index("Nodes that do not fit (12), the nearest first")
    assert lines[start + 1 : start + 4] == [
        "  COUNT  NODES                        WHY NOT",
        "      8  n1, n10, n11, n2 and 4 more  taint spot:NoSchedule is not tolerated",
        "      4  n0, n3, n6, n9               taint gpu:NoSchedule is not tolerated",
    ]


def test_evictions_are_told_node_by_node_with_the_chosen_one_first() -> None:
    objects = [
        make.node("a", cpu=1),
        make.node("b", cpu=1),
        make.pod("x", on="a", cpu=1, priority=5, labels={"app": "x"}),
        make.pod("y", on="b", cpu=1, priority=3, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        make.budget("x", {"app": "x"}, allowed=0),
        make.pod("p", cpu=1, priority=9),
    ]
    lines = answer(objects)
    start = lines.index("Evictions that would make it fit (pods of a priority below 9)")
    assert lines[start + 1 : start + 3] == [
        "  b: default/y (priority 3, terminating) <- chosen",
        "  a: default/x (priority 5); breaks a disruption budget",
    ]


def test_pods_that_are_promised_a_node_are_told() -> None:
    nominated = make.pod("n", cpu=1, priority=7, status={"nominatedNodeName": "a"})
    lines = answer([make.node("a", cpu=1), nominated, make.pod("p", cpu=1)])
    start = lines.index("Counted as if they ran there already (nominated, and of no lower priority)")
    assert lines[start + 1] == "  a: default/n (priority 7)"


def test_a_combination_says_that_it_belongs_together() -> None:
    lines = answer([make.node("a", cpu=1, taints=[make.taint("gpu")]), make.pod("p", cpu=2)])
    together = "together: tolerate gpu:NoSchedule and lower the cpu request from 2 to 1"
    assert any(line.startswith(f"  2. {together}") for line in lines)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_stay_within_the_width_as_far_as_names_allow(width: int) -> None:
    objects = [
        make.node("a", cpu=1, labels={"disk": "hdd"}),
        make.node("b", taints=[make.taint("dedicated", "a-rather-long-value")]),
        make.node("c", cpu=8),
        make.pod("p", cpu=2),
    ]
    verdict, *rest = answer(objects, width=width)
    assert verdict
    assert max(len(line) for line in rest if not line.startswith("FailedScheduling: ")) <= max(width, 80)


def test_str_of_an_explanation_is_the_readable_answer() -> None:
    explanation = explain([make.node("a"), make.pod("p")], "default/p")
    assert str(explanation) == render(explanation)


def test_a_pod_whose_terms_cannot_be_understood_is_told_so() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    term = {"topologyKey": "zone", "labelSelector": selector}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    verdict, *_ = answer([make.node("a"), make.pod("p", spec={"affinity": affinity})])
    assert verdict.startswith("Pod default/p is pending: InterPodAffinity rejects it before any node is looked at: ")
    assert '"Like" is not a valid label selector operator' in verdict


def test_a_notebook_shows_cause_groups_and_changes() -> None:
    objects = [make.node("a", cpu=1), make.node("b", taints=[make.taint("<gpu>")]), make.pod("p", cpu=2)]
    html = explain(objects, "default/p")._repr_html_()
    assert '<div class="kubesched"><p class="head bad">Pod default/p is pending: needs 2 cpu; ' in html
    assert "<td>taint &lt;gpu&gt;:NoSchedule is not tolerated</td>" in html
    assert "<ol><li>" in html and "<gpu>" not in html
    fits = explain([make.node("a"), make.pod("p")], "default/p")._repr_html_()
    assert "<th>total</th>" in fits and "<ol>" not in fits
