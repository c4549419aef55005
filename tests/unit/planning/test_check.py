"""`kubesched check`: rules, verdicts, exit codes, and what CI systems read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner

import kubesched
from kubesched.cli.main import main
from kubesched.k8s.errors import KubeschedError
from kubesched.planning.check_report import (
    MARKDOWN_LIMIT,
    CheckFinding,
    CheckReport,
    Passed,
    RuleResult,
    github,
    junit,
    markdown,
    sarif,
)

EXAMPLE = Path(__file__).parents[3] / "examples" / "check" / "check.yaml"


def _node(name: str, zone: str = "a", cpu: str = "4") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _deployment(name: str, replicas: int, cpu: str = "1", **template: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}} if cpu else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], **template},
            },
        },
    }


def _write(tmp_path: Path, nodes: list[dict[str, Any]], change: list[dict[str, Any]], *rules: dict[str, Any]) -> Path:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(nodes))
    (tmp_path / "rendered").mkdir(exist_ok=True)
    (tmp_path / "rendered" / "app.yaml").write_text("# rendered\n" + yaml.safe_dump_all(change))
    path = tmp_path / "check.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubesched.dev/v1alpha1",
                "kind": "Check",
                "metadata": {"name": "before-merge"},
                "cluster": {"file": "cluster.yaml"},
                "change": [{"dir": "rendered"}],
                "seeds": 2,
                "checks": list(rules),
            }
        )
    )
    return path


FITS = {"name": "fits", "fits": {}}


def test_a_change_that_fits_passes(tmp_path: Path) -> None:
    path = _write(tmp_path, [_node("n1")], [_deployment("web", 3)], FITS)
    report = kubesched.check(path)
    assert report.passed and report.headline == "Passed: 3 pods placed, all of them"
    assert CliRunner().invoke(main, ["check", str(path)]).exit_code == 0


def test_a_change_that_does_not_fit_is_named_with_its_line(tmp_path: Path) -> None:
    path = _write(tmp_path, [_node("n1")], [_deployment("web", 3), _deployment("api", 4)], FITS)
    report = kubesched.check(path)
    (result,) = report.failed
    assert result.headline == "3 pods would stay pending"
    (finding,) = result.findings
    assert finding.about == "Deployment shop/api" and "cpu" in finding.message
    assert finding.position is not None and finding.position.file.endswith("rendered/app.yaml")
    text = (tmp_path / "rendered" / "app.yaml").read_text().splitlines()
    assert text[finding.position.line - 1].strip() == "requests:"
    assert "name: api" in "\n".join(text[: finding.position.line - 1])
    assert CliRunner().invoke(main, ["check", str(path)]).exit_code == 1


def test_what_waited_before_is_not_the_change_s_fault(tmp_path: Path) -> None:
    waiting = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "huge", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "64"}}}]},
    }
    path = _write(tmp_path, [_node("n1"), waiting], [_deployment("web", 2)], FITS)
    assert kubesched.check(path).passed


def test_a_workload_of_the_cluster_that_is_to_be_larger_must_fit_with_its_new_pods(tmp_path: Path) -> None:
    before = _deployment("web", 2)
    before["metadata"]["uid"] = "d"
    about = {"name": "web-1", "namespace": "shop", "uid": "s"}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    made = {**before, "kind": "ReplicaSet", "metadata": {**about, "ownerReferences": [owner]}}
    path = _write(tmp_path, [_node("n1"), before, made], [_deployment("web", 5)], FITS)
    (result,) = kubesched.check(path).failed
    assert result.headline == "1 pod would stay pending"
    assert _write(tmp_path, [_node("n1"), before, made], [_deployment("web", 4)], FITS) and kubesched.check(path).passed


def test_a_rollout_needs_room_for_its_surge(tmp_path: Path) -> None:
    rolling = {"name": "rollout", "fits": {"rollingUpdate": True}}
    path = _write(tmp_path, [_node("n1")], [_deployment("web", 4)], FITS, rolling)
    report = kubesched.check(path)
    assert [one.passed for one in report.results] == [Passed.YES, Passed.NO]


@pytest.mark.parametrize(
    ("rule", "passes", "told"),
    [
        ({"capacity": {"shape": "500m/64Mi", "atLeast": 4}}, True, "at least 4 more of 500m/64Mi fit"),
        ({"capacity": {"shape": "500m/64Mi", "atLeast": 13}}, False, "12 more of 500m/64Mi fit, 13 are wanted"),
        ({"capacity": {"shape": "500m/64Mi", "by": "zone", "atLeast": 6}}, True, "fit in each zone"),
        ({"capacity": {"shape": "500m/64Mi", "by": "zone", "atLeast": 7}}, False, "in some zone"),
        ({"outage": {"every": "node"}}, True, "every node can fail (2 cases)"),
        ({"cost": {"atMost": "+10%"}}, True, "grows by +0.0%"),
        ({"requests": {"cpu": "required", "memory": "required"}}, True, "1 container, each with a request"),
    ],
)
def test_rules(tmp_path: Path, rule: dict[str, Any], passes: bool, told: str) -> None:
    path = _write(tmp_path, [_node("n1"), _node("n2", "b")], [_deployment("web", 2)], {"name": "rule", **rule})
    (result,) = kubesched.check(path).results
    assert (result.passed is Passed.YES) == passes
    assert told in result.headline or told.replace("+0.0%", "+") in result.headline


def test_a_loss_that_cannot_be_replaced_fails(tmp_path: Path) -> None:
    path = _write(tmp_path, [_node("n1"), _node("n2")], [_deployment("web", 7)], {"outage": {"every": "node"}})
    (result,) = kubesched.check(path).results
    assert result.passed is Passed.NO and "not replaced after the loss of" in result.findings[0].message


def test_a_budget_that_blocks_an_upgrade_is_named(tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    rule = {"name": "drainable", "upgrade": {"preset": "eks"}}
    nodes = [_node("n1"), _node("n2"), _node("n3")]
    (result,) = kubesched.check(_write(tmp_path, nodes, [_deployment("web", 2), budget], rule)).results
    assert result.passed is Passed.NO and "web" in result.findings[0].message
    (result,) = kubesched.check(_write(tmp_path, nodes, [_deployment("web", 2)], rule)).results
    assert result.passed is Passed.YES


def test_money_is_compared_with_the_limit(tmp_path: Path) -> None:
    there = _deployment("old", 2)
    path = _write(tmp_path, [_node("n1"), there], [_deployment("web", 1)], {"cost": {"atMost": "+20%"}})
    (result,) = kubesched.check(path).results
    assert result.passed is Passed.NO and "grows by +50.0%" in result.headline


def test_containers_without_requests_are_named(tmp_path: Path) -> None:
    path = _write(
        tmp_path, [_node("n1")], [_deployment("web", 1, cpu="")], {"requests": {"cpu": "required", "memory": ""}}
    )
    (result,) = kubesched.check(path).results
    assert result.findings[0].message == "container c requests no cpu"


def test_the_example() -> None:
    report = kubesched.check(EXAMPLE)
    assert [one.name for one in report.failed] == ["zones"]


def _report(passed: Passed, *findings: CheckFinding) -> CheckReport:
    return CheckReport(
        "before-merge", (RuleResult("fits", "fits", passed, "it says <so> | here", findings),), 5, "c.yaml"
    )


def test_what_has_not_changed_does_not_roll_out(tmp_path: Path) -> None:
    rolling = {"name": "rollout", "fits": {"rollingUpdate": True}}
    web = _deployment("web", 4)
    path = _write(tmp_path, [_node("n1"), web], [web], rolling)
    assert kubesched.check(path).passed
    path = _write(tmp_path, [_node("n1"), web], [_deployment("web", 4, "900m")], rolling)
    assert not kubesched.check(path).passed


def test_the_change_is_compared_with_what_was_rendered_before(tmp_path: Path) -> None:
    """The main branch is not in the cluster yet: what it adds is not the change's cost."""
    money = {"name": "money", "cost": {"atMost": "+1%"}}
    path = _write(tmp_path, [_node("n1"), _deployment("api", 1)], [_deployment("web", 2)], money)
    assert not kubesched.check(path).passed
    (tmp_path / "main").mkdir()
    (tmp_path / "main" / "app.yaml").write_text(yaml.safe_dump(_deployment("web", 2)))
    asked = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**asked, "base": [{"dir": "main"}]}))
    assert kubesched.check(path).passed
    path.write_text(yaml.safe_dump({**asked, "base": [{}]}))
    with pytest.raises(KubeschedError, match=r"base\[0\]: one of file and dir"):
        kubesched.check(path)


def test_a_page_can_be_printed() -> None:
    result = CliRunner().invoke(main, ["check", str(EXAMPLE), "-o", "html"])
    assert result.exit_code == 1
    assert result.stdout.startswith("<!") and "://" not in result.stdout


def test_junit_is_xml_that_counts() -> None:
    suite = ElementTree.fromstring(junit(_report(Passed.NO, CheckFinding("a & b", "Deployment x/y"))))
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("1", "1")
    assert suite.find("testcase/failure") is not None


def test_sarif_has_places_and_fingerprints_that_stay() -> None:
    first, second = (
        sarif(_report(Passed.NO, CheckFinding(text, "Deployment x/y")))["runs"][0] for text in ("1 pod", "2 pods")
    )
    assert first["results"][0]["partialFingerprints"] == second["results"][0]["partialFingerprints"]
    assert first["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "c.yaml"
    assert first["tool"]["driver"]["rules"][0]["id"] == "fits"


def test_markdown_says_the_verdict_first_and_never_exceeds_a_comment() -> None:
    many = [CheckFinding("x" * 500, f"Deployment x/y{i}") for i in range(500)]
    text = markdown(_report(Passed.NO, *many))
    assert text.startswith("❌ **Failed: 1 of 1 check.") and len(text) <= MARKDOWN_LIMIT
    assert text.count("<details>") == text.count("</details>")
    assert "&lt;so> \\| here" in text


def test_github_annotations_are_one_line_each() -> None:
    text = github(_report(Passed.UNDECIDED, CheckFinding("50%\nof it", "Deployment x/y")))
    assert "::warning title=fits::Deployment x/y: 50%25%0Aof it" in text


def test_undecided_has_an_exit_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path, [_node("n1")], [_deployment("web", 1)], FITS)
    monkeypatch.setattr("kubesched.cli.check._run", lambda *asked: _report(Passed.UNDECIDED))
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 3 and result.stdout.startswith("Undecided")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "Chek"}, "kind: Check are expected"),
        ({"cluster": {}}, "cluster: one of file and live is expected"),
        ({"checks": []}, "checks: at least one is expected"),
        ({"checks": [{"name": "x"}]}, "checks[0]: exactly one of fits, capacity"),
        ({"checks": [{"fitz": {}}]}, "checks[0]"),
        ({"checks": [{"capacity": {"atLeast": 1}}]}, "one of shape and pod is expected"),
        ({"checks": [{"capacity": {"shape": "many", "atLeast": 1}}]}, 'shape "many"'),
        ({"checks": [{"cost": {"atMost": "a lot"}}]}, '"a lot" is neither'),
        ({"seeds": 0}, "seeds: at least 1"),
        ({"cluster": {"file": "nowhere.json"}}, "nowhere.json"),
        ({"cluster": {"file": "rendered/app.yaml"}}, "there are no nodes"),
        ({"change": [{"dir": "nowhere"}]}, "nowhere"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    path = _write(tmp_path, [_node("n1")], [_deployment("web", 1)], FITS)
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **change}))
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 2, result.output
    assert problem in result.stderr and result.stderr.count("\n") == 1


def test_the_first_check_file_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path, [_node("n1"), _node("n2", "b")], [_deployment("web", 1)], FITS)
    arguments = ["check", "init", "-f", "cluster.yaml", "--change", "rendered", "--to", "first.yaml"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    result = CliRunner().invoke(main, ["check", "first.yaml", "-o", "json"])
    assert result.exit_code == 0, result.output
    assert [one["rule"] for one in json.loads(result.stdout)["checks"]] == [
        "fits", "fits", "capacity", "outage", "requests",
    ]  # fmt: skip
    assert CliRunner().invoke(main, arguments).exit_code == 2
