"""A plan is true when played: the nodes that it writes are created in a playground, and every pod runs there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHOP, CATALOGUE = ROOT / "examples" / "plan" / "shop.yaml", ROOT / "examples" / "plan" / "catalogue.yaml"
WITHIN_S = 240


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubesched", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)


def test_every_pod_runs_on_the_nodes_of_the_plan(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.yaml"
    planned = run(
        "plan", "-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--orders", "8", "--write", nodes, "-o", "json"
    )
    assert planned.returncode == 0, planned.stderr
    report = json.loads(planned.stdout)
    played = run("up", "--once", "--nodes", "0", "-f", nodes, "-f", SHOP)
    assert played.returncode == 0, played.stdout + played.stderr
    n_pods = report["pods"] + len(report["nodes"])  # and an agent on each node
    assert f"{n_pods} of {n_pods} pods scheduled, on {len(report['nodes'])} nodes" in played.stdout
