"""`-o prometheus`: every report in numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from resting_clusters import node, workload

from kubesched.cli.main import main
from kubesched.simulator.gauges import Gauge, exposition, gauge

ASKED = {
    "capacity": (["--shape", "1/1Gi"], 'kubesched_capacity_fits{pod="1-1Gi",by="all",value=""} 8'),
    "capacity --inflate": (["--inflate", "replicas"], 'kubesched_capacity_growth_percent{of="replicas"} 200'),
    "outage": ([], 'kubesched_outage_missing_pods{case="zone=a"} 0'),
    "upgrade": ([], "kubesched_upgrade_moves 4"),
    "consolidate": ([], "kubesched_consolidate_removable_nodes 2"),
    "consolidate --node": (["--node", "a0"], 'kubesched_consolidate_can_go{node="a0"} 1'),
    "optimal": ([], 'kubesched_optimal_nodes{kind="at_least"} 2'),
    "plan": (["--catalogue", "catalogue.json", "--orders", "1"], "kubesched_plan_new_nodes 0"),
    "compare": (
        ["--variant", "base", "--variant", "b:resize=cpu*0.5", "--seeds", "1"],
        'kubesched_compare_mean{variant="b",metric="pending"} 0',
    ),
    "sweep": (["--seeds", "1"], 'kubesched_sweep_pending_pods{configuration="default",seed="0"} 0'),
}


@pytest.mark.parametrize("command", ASKED)
def test_every_report_has_gauges(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["a0", "a1", "b0", "b1"]
    items = [*(node(name, name[0], cpu="3") for name in names), *workload("Deployment", "web", "1", names)]
    Path("cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    shapes = [{"name": "m", "allocatable": {"cpu": 4, "memory": "16Gi", "pods": 110}, "offers": [{"price": 0.2}]}]
    catalogue = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "currency": "USD", "shapes": shapes}
    Path("catalogue.json").write_text(json.dumps(catalogue))
    arguments, line = ASKED[command]
    told = CliRunner().invoke(main, [command.split()[0], "-f", "cluster.json", *arguments, "-o", "prometheus"])
    assert told.exit_code == 0, told.output
    assert line in told.stdout.splitlines()
    for text in told.stdout.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) kubesched_\w+ .+|kubesched_\w+(\{.*\})? -?[0-9.e-]+", text), text


def test_labels_are_escaped_and_what_is_not_known_is_left_out() -> None:
    gauges = [
        gauge("kubesched_a", "What.", 0.25, of='"x"\n\\'),
        gauge("kubesched_b", "Not known.", None),
        Gauge("kubesched_c", "None.", ()),
    ]
    assert exposition(gauges) == (
        '# HELP kubesched_a What.\n# TYPE kubesched_a gauge\nkubesched_a{of="\\"x\\"\\n\\\\"} 0.25\n'
    )


def test_a_check_has_gauges_and_a_table(tmp_path: Path) -> None:
    items = [node("a0"), *workload("Deployment", "web", "1", ["a0"])]
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    whole = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Check", "cluster": {"file": "dump.json"}, "seeds": 1}
    checks = [{"name": "fits", "fits": {}}, {"name": "room", "capacity": {"shape": "1/1Gi", "atLeast": 9}}]
    path = tmp_path / "check.json"
    path.write_text(json.dumps({**whole, "checks": checks}))
    told = CliRunner().invoke(main, ["check", str(path), "-o", "prometheus"])
    assert told.exit_code == 1
    assert 'kubesched_check_passed{check="fits"} 1' in told.stdout and 'passed{check="room"} 0' in told.stdout
    assert CliRunner().invoke(main, ["check", str(path), "-o", "csv"]).stdout.startswith("check,rule,result,found\n")
