"""How the outcome of Kubernetes' e2e suite is read and told; the suite itself is not part of the tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import conformance

_JUNIT = """<testsuites><testsuite>
<testcase name="[It] [sig-scheduling] a [Conformance]" status="passed"/>
<testcase name="[It] [sig-scheduling] b" status="failed"><failure message="timed out
  after 300s"/></testcase>
<testcase name="[It] [sig-scheduling] c" status="panicked"><error message="boom"/></testcase>
<testcase name="[It] [sig-scheduling] d" status="skipped"><skipped message="skipped - needs two zones"/></testcase>
<testcase name="[It] [sig-apps] not chosen" status="skipped"><skipped message="skipped"/></testcase>
<testcase name="[SynchronizedBeforeSuite]" status="passed"/>
</testsuite></testsuites>"""


def _family(name: str) -> conformance.Family:
    return next(family for family in conformance.FAMILIES if family.name == name)


def test_specs_that_passed_failed_and_cannot_run_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(_JUNIT)
    outcome = conformance.read_outcome(tmp_path / "report.xml")
    assert outcome.passed == ["[sig-scheduling] a [Conformance]"]
    assert outcome.failed == {"[sig-scheduling] b": "timed out after 300s", "[sig-scheduling] c": "boom"}
    assert outcome.skipped == {"[sig-scheduling] d": "skipped - needs two zones"}
    assert (outcome.n_ran, round(outcome.percent, 1)) == (3, 33.3)


def test_the_first_line_is_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.xml").write_text(_JUNIT)
    conformance.tell(_family("scheduling"), conformance.read_outcome(tmp_path / "report.xml"))
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "scheduling: 1 of 3 specs pass (33.3 %; target 100 % MISSED); 1 cannot run here"
    assert second == "  FAILED  [sig-scheduling] b"


@pytest.mark.parametrize(
    ("family", "spec", "is_chosen"),
    [
        ("scheduling", "[sig-scheduling] SchedulerPredicates [Serial] validates resource limits", True),
        ("scheduling", "[sig-scheduling] Workload [FeatureGate:GenericWorkload] [Alpha] [Feature:OffByDefault]", False),
        ("api-machinery", "[sig-api-machinery] Aggregator Should be able to support [Conformance]", False),
        ("api-machinery", "[sig-api-machinery] AggregatedDiscovery should support raw [Conformance]", True),
        ("api-machinery", "[sig-api-machinery] Watchers should observe an object deletion", False),
        ("apps", "[sig-apps] ReplicaSet should serve a basic image on each replica [Conformance]", False),
        ("apps", "[sig-apps] Job should delete a job [Conformance]", True),
        ("auth", "[sig-auth] ServiceAccounts should mount an API token into pods [Conformance]", False),
    ],
)
def test_families_choose_their_specs(family: str, spec: str, is_chosen: bool) -> None:
    chosen = _family(family)
    is_left_out = any(re.search(skip, spec) for skip in chosen.skips)
    assert (bool(re.search(chosen.focus, spec)) and not is_left_out) is is_chosen


def test_a_suite_that_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["conformance.py", "--e2e-test", "/nowhere/e2e.test"])
    assert conformance.main() == 2
    assert capsys.readouterr().err == "error: --e2e-test /nowhere/e2e.test: no such file\n"
