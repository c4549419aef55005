"""What the battery is made of: words, watched plugins, drawn cases, the smallest case, what is told."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace

import planted_plugins as planted
import pytest

from kubesched.framework import OK, CycleState, NodeInfo, PodInfo, Status
from kubesched.k8s.model import manifests
from kubesched.plugin_tools.check import check_plugin, subject_of
from kubesched.plugin_tools.check.battery import shrunk
from kubesched.plugin_tools.check.determinism_check import moved_clock
from kubesched.plugin_tools.check.drawing import drawn_cases
from kubesched.plugin_tools.check.report import CheckOutcome, RuleViolation
from kubesched.plugin_tools.check.subject import Case, Words, cases_of, words_of
from kubesched.plugin_tools.check.tracing import with_traced_words
from kubesched.testing import make

SOURCE = '''
"""A docstring with words."""
KEY = "example.com/quiet"
UNUSED = "not-this"

class Other:
    other = "nor-this"

def limit():
    """Says nothing."""
    return 42

class Mine:
    """Nothing of this."""
    name = "Mine"

    def filter_node(self, cycle, pod, node):
        return node.labels[KEY] == "loud" or limit()
'''


def test_words_are_those_that_the_class_uses() -> None:
    words = words_of(SOURCE, "Mine", {"label": "team", "share": 0.5, "at_most": 7})
    assert words.texts == ("label", "team", "share", "at_most", "Mine", "loud", "example.com/quiet")
    assert words.numbers == (0, 7, 42)
    assert words.resources == ("example.com/quiet",)


@pytest.mark.parametrize("plugin", [planted.Quiet, planted.WritesArguments])
def test_a_watched_plugin_tells_which_labels_and_values_matter(plugin: type) -> None:
    words = with_traced_words(subject_of(plugin), seed=0).words
    assert words.keys == (planted.QUIET,)
    assert words.values == ("true",)


def test_the_same_seed_draws_the_same_cases() -> None:
    words = Words(("a", "b"), (3,))
    assert list(drawn_cases(words, 7, 20)) == list(drawn_cases(words, 7, 20))
    assert list(drawn_cases(words, 7, 20)) != list(drawn_cases(words, 8, 20))


def test_drawn_cases_are_valid_and_ugly() -> None:
    cases = list(drawn_cases(Words(("example.com/x",)), 0, 150))
    for case in cases:
        changed = [change.new for change in case.changes if change.new is not None]
        assert manifests.from_dicts([case.pod, *case.objects, case.visitor, *changed]).objects
    nodes = [node for case in cases for node in case.nodes]
    assert any("status" not in node for node in nodes)
    assert any(node.get("spec", {}).get("unschedulable") for node in nodes)
    assert any(not case.pod["spec"]["containers"] for case in cases)
    assert any("labels" not in case.pod["metadata"] for case in cases)


def test_the_smallest_case_has_nothing_that_the_rule_can_do_without() -> None:
    def ask(case: Case) -> RuleViolation | bool:
        has_disk = any("disk" in node["metadata"].get("labels", {}) for node in case.nodes)
        return RuleViolation("disk") if has_disk and "app" in case.pod["metadata"].get("labels", {}) else True

    nodes = [make.node(name, labels={"disk": "1", "zone": "a"}, taints=[make.taint("t")]) for name in "abc"]
    pod = make.pod("asking", labels={"app": "web", "tier": "x"}, cpu=1, priority=3)
    whole = Case(pod, (*nodes, make.pod("p", on="a")), make.pod("visitor"))
    small, violation = shrunk(whole, RuleViolation("disk"), ask)
    assert violation.problem == "disk"
    assert [node["metadata"] for node in small.objects] == [{"name": "c", "labels": {"disk": "1"}}]
    assert small.pod["metadata"] == {"name": "asking", "namespace": "default", "labels": {"app": "web"}}
    assert small.pod["spec"] == {"containers": []}


def test_a_case_from_which_too_much_was_taken_is_no_case() -> None:
    def ask(case: Case) -> RuleViolation:
        manifests.from_dicts([case.pod])
        return RuleViolation(case.pod["spec"]["priority"])

    small, _ = shrunk(Case(make.pod("asking"), (), make.pod("visitor")), RuleViolation("any"), ask)
    assert small.pod["spec"] == {"containers": [], "priority": 0}


def test_given_cases_are_one_for_each_pending_pod() -> None:
    objects = [make.node("a"), make.pod("on", on="a"), make.pod("p0"), make.pod("p1")]
    cases = cases_of(objects)
    assert [case.pod["metadata"]["name"] for case in cases] == ["p0", "p1"]
    assert [len(case.objects) for case in cases] == [3, 3]


def test_the_clock_is_set_back_afterwards() -> None:
    module = sys.modules[planted.Calendar.__module__]
    now, told = time.time, vars(module)["datetime"]
    with moved_clock(planted.Calendar, 1e6):
        assert time.time() - now() > 9e5
        assert (vars(module)["datetime"].now() - told.now()).total_seconds() > 9e5
    assert time.time is now
    assert vars(module)["datetime"] is told


def test_the_report_is_the_same_for_the_same_seed() -> None:
    reports = [check_plugin(subject_of(planted.SkippingHint), n_cases=20, seed=3, costs=False) for _ in range(2)]
    one, other = (json.dumps(report.as_record()) for report in reports)
    assert one == other


def test_a_failure_is_told_with_change_and_case() -> None:
    report = check_plugin(subject_of(planted.SkippingHint), n_cases=20, only=["events"])
    record = report.as_record()
    (result,) = record["checks"]
    assert (record["result"], result["result"]) == ("failed", "failed")
    assert result["answers"] == {"before": "Unschedulable: node(s) were quiet", "after": "accepted"}
    assert result["change"]["new"]["kind"] == "Node"
    assert [item["kind"] for item in result["smallestCase"]["objects"]] == ["Node"]
    text = report.as_text()
    assert "FAILED  events" in text
    assert "after this change:" in text
    assert text.endswith("1 check failed (20 cases, seed 0)")


def test_a_filter_whose_rejections_nothing_undid_is_told() -> None:
    class NeverRejects:
        name = "NeverRejects"

        def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
            return OK

    (result,) = check_plugin(subject_of(NeverRejects), n_cases=3, only=["events"]).results
    assert result.outcome is CheckOutcome.NOT_APPLICABLE
    assert "no rejection was undone" in result.note


def test_cases_that_are_given_come_first() -> None:
    case = Case(make.pod("asking"), (make.node("a"),), make.pod("visitor"))
    subject = replace(subject_of(planted.Quiet), words=Words())
    report = check_plugin(subject, n_cases=1, given=[case], only=["answers"])
    assert report.n_cases == 2
