"""Each planted bug is found, by the check that is about it and by no other; plugins without one pass."""

from __future__ import annotations

from datetime import timedelta

import planted_plugins as planted
import pytest

from kubesched.plugin_tools.check import check_plugin, subject_of
from kubesched.plugin_tools.check.report import CheckOutcome
from kubesched.plugin_tools.check.subject import Case, DrawnChange, in_tree_subject
from kubesched.testing import make

N_CASES = 20


@pytest.mark.parametrize(
    ("plugin", "check", "problem"),
    [
        pytest.param(planted.TableForgetsLabel, "forms", "filter and filter_node differ", id="filters differ"),
        pytest.param(planted.ScoresDiffer, "forms", "score and score_node differ", id="scores differ"),
        pytest.param(planted.MixesPositionsAndRows, "forms", "for this node alone", id="positions taken for rows"),
        pytest.param(planted.WritesPod, "writes", "the pod was written to", id="writes to the pod"),
        pytest.param(planted.WritesNode, "writes", "node n", id="writes to a node"),
        pytest.param(planted.WritesTable, "writes", "the table was written to", id="writes to a column"),
        pytest.param(planted.WritesArguments, "writes", "its arguments were written to", id="writes to its arguments"),
        pytest.param(planted.WritesCycle, "writes", "what others keep in the cycle", id="writes to the cycle"),
        pytest.param(planted.WritesRawScores, "writes", "raw scores", id="writes to the raw scores"),
        pytest.param(planted.TooHigh, "bounds", "a score of 150", id="a score above 100"),
        pytest.param(planted.TooLow, "bounds", "a score of -1", id="a score below 0"),
        pytest.param(planted.RemovesTooFew, "symmetry", "with pod ", id="remove_pod forgets the pod"),
        pytest.param(planted.CountsOnly, "symmetry", "does not answer as if", id="counts that are out of date"),
        pytest.param(planted.MissesEvent, "events", "no registered event matches", id="an event is missing"),
        pytest.param(planted.SkippingHint, "events", "NodeUpdateNodeLabel skips", id="a hint that skips what helps"),
        pytest.param(planted.BreakingHint, "events", "raised AssertionError", id="a hint that breaks"),
        pytest.param(planted.PermitMissesEvent, "events", "PodUpdatePodLabel made", id="an event of permit is missing"),
        pytest.param(planted.UnreserveBreaks, "answers", "unreserve", id="unreserve without reserve breaks"),
        pytest.param(planted.Dice, "determinism", "when it is asked again", id="random scores"),
        pytest.param(planted.Remembers, "determinism", "for another pod", id="remembers the pod before"),
        pytest.param(planted.Clock, "determinism", "a day later", id="asks the time"),
        pytest.param(planted.Calendar, "determinism", "a day later", id="asks the date"),
        pytest.param(planted.FirstRowWins, "determinism", "in another order", id="depends on the order of nodes"),
        pytest.param(planted.NeedsLabels, "answers", "IndexError", id="breaks for a pod without containers"),
        pytest.param(planted.SaysNothing, "answers", "returned None", id="answers with nothing"),
        pytest.param(planted.NarrowScope, "scope", "too narrow", id="a scope that leaves pods out"),
        pytest.param(planted.NotByAmounts, "scope", "AMOUNTS", id="a scope that leaves labels out"),
    ],
)
def test_a_planted_bug_is_found_by_its_check_alone(plugin: type, check: str, problem: str) -> None:
    report = check_plugin(subject_of(plugin), n_cases=N_CASES, costs=False)
    assert [result.check for result in report.failed] == [check]
    violation = report.failed[0].violation
    assert violation is not None
    assert problem in violation.problem


@pytest.mark.parametrize("hours", range(0, 24, 4))
def test_a_plugin_that_asks_the_date_is_found_at_any_time_of_the_day(
    hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted.Calendar, "time_zone", timedelta(hours=hours))
    report = check_plugin(subject_of(planted.Calendar), n_cases=1, costs=False)
    assert [result.check for result in report.failed] == ["determinism"]


@pytest.mark.parametrize("plugin", [planted.Quiet, planted.AtMostTwo], ids=lambda plugin: plugin.name)
def test_a_plugin_without_a_bug_passes(plugin: type) -> None:
    report = check_plugin(subject_of(plugin), n_cases=N_CASES, costs=False)
    assert report.failed == ()
    touched = {result.check for result in report.results if result.outcome is CheckOutcome.PASSED}
    assert {"answers", "writes", "symmetry", "events", "determinism"} <= touched


@pytest.mark.parametrize(
    "name",
    [
        "ImageLocality",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "PodTopologySpread",
        "TaintToleration",
    ],
)
def test_in_tree_plugins_pass(name: str) -> None:
    assert check_plugin(in_tree_subject(name), n_cases=10, costs=False).failed == ()


def test_the_one_gap_of_an_in_tree_plugin_is_found() -> None:
    """A pod that the anti-affinity of others keeps away is not called back when a node comes. kube-scheduler v1.36
    has the same gap in isSchedulableAfterNodeChange (plugins/interpodaffinity/plugin.go), and we decide as it does."""
    away = {"requiredDuringSchedulingIgnoredDuringExecution": [make.affinity_term(make.HOSTNAME, {"app": "web"})]}
    holder = make.pod("holder", on="n0", spec={"affinity": {"podAntiAffinity": away}})
    case = Case(
        make.pod("asking", labels={"app": "web"}),
        (make.node("n0"), holder),
        make.pod("visitor"),
        (DrawnChange.to(make.node("n1")),),
    )
    (gap,) = check_plugin(in_tree_subject("InterPodAffinity"), n_cases=5, given=[case], costs=False).failed
    assert gap.check == "events"
    assert gap.violation is not None
    assert gap.violation.problem == "the hint for NodeAdd skips a change that made the pod feasible"
    assert gap.violation.node == "n1"
