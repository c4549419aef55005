"""Everything for machines: the decision in the vectors' form, and the rest beside it."""

from __future__ import annotations

import json

from kubesched.playground.web.pod_story import why
from kubesched.simulator.asking import explain
from kubesched.testing import make

OBJECTS = [
    make.node("a", cpu=1, taints=[make.taint("gpu")]),
    make.node("b", cpu=1),
    make.pod("x", on="b", cpu="500m", priority=2_000_000_000),
    make.pod("p", cpu=2),
]


def test_the_report_has_all_parts() -> None:
    explanation = explain(OBJECTS, "default/p")
    report = explanation.report()
    assert list(report) == [
        *("pod", "scheduler", "node", "headline", "cause", "groups", "changes"),
        *("explanation", "failing", "numbers"),
    ]
    assert (report["pod"], report["scheduler"]) == ("default/p", "default-scheduler")
    assert report["explanation"] == explanation.to_dict()
    assert [found["plugin"] for found in report["failing"]["a"]] == ["TaintToleration", "NodeResourcesFit"]
    assert report["numbers"]["b"] == [
        {
            "plugin": "NodeResourcesFit",
            "kind": "too-large",
            "resource": "cpu",
            "requested": "2",
            "used": "500m",
            "nominated": "0",
            "free": "500m",
            "allocatable": "1",
            "missing": "1500m",
            "text": "cpu: requested 2, free 500m (used 500m of 1)",
        }
    ]
    assert [change["kind"] for change in report["changes"]] == ["add-node", "lower-requests"]
    assert report["changes"][1]["requests"] == {"cpu": {"from": "2", "to": "500m"}}


def test_the_cause_and_the_groups_are_facts() -> None:
    report = explain(OBJECTS, "default/p").report()
    assert report["headline"] == f"Pod default/p is pending: {report['cause']['text']}. {report['cause']['remedy']}"
    assert (report["cause"]["kind"], report["cause"]["nodes"]) == ("too-large", ["b"])
    assert report["cause"]["resources"] == {"cpu": {"requested": 2000, "free": 500, "allocatable": 1000}}
    assert [(group["nearness"], group["nodes"]) for group in report["groups"]] == [
        ("too-small", ["b"]),
        ("excluded", ["a"]),
    ]
    assert report["groups"][1]["kinds"] == ["taint", "too-large"]
    assert report["groups"][1]["nearest"]["evidence"][0]["taint"]["key"] == "gpu"


def test_the_report_is_plain_data() -> None:
    report = explain(OBJECTS, "default/p").report()
    assert json.loads(json.dumps(report)) == report


def test_a_gated_pod_has_a_report_too() -> None:
    gated = make.pod("p", spec={"schedulingGates": [{"name": "quota"}]})
    report = explain([make.node("a"), gated], "default/p").report()
    assert report["explanation"]["gated"]["plugin"] == "SchedulingGates"
    assert (report["failing"], report["numbers"], report["changes"]) == ({}, {}, [])


def test_a_gated_pod_is_told_what_would_become_of_it() -> None:
    gated = {"schedulingGates": [{"name": "quota"}]}
    objects = [make.node("a"), make.node("b", cpu=1), make.pod("p", cpu=2, spec=gated)]
    report = explain(objects, "default/p").report()
    assert report["explanation"]["nodes"] == {}
    assert report["withoutGates"]["fits"]
    assert report["withoutGates"]["explanation"]["best"] == ["a"]
    assert [group["nodes"] for group in report["groups"]] == [["b"]]
    assert list(report["numbers"]) == ["b"]
    shown = why(report)
    assert (shown["fit"], shown["best"], shown["groupOf"]) == (1, ["a"], {"b": 0})


def test_a_gated_pod_that_would_not_fit_gets_suggestions() -> None:
    gated = {"schedulingGates": [{"name": "quota"}]}
    answer = explain([make.node("a", cpu=1), make.pod("p", cpu=2, spec=gated)], "default/p")
    assert answer.changes and answer.without_gates is not None and not answer.without_gates.fits
    assert "would not fit then either: needs 2 cpu" in answer.headline
