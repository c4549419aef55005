"""The example with a group of groups: all in the only zone with a rack for the workers."""

from __future__ import annotations

from pathlib import Path

import kubesched

HERE = Path(__file__).parents[3] / "examples" / "groups-of-groups"


def test_leader_and_workers_run_in_one_zone_and_the_workers_in_one_rack() -> None:
    report = kubesched.simulate([HERE / "cluster.yaml", HERE / "training.yaml"], config=HERE / "config.yaml")
    nodes = {pod["name"]: pod["node"] for pod in report.to_dict()["pods"]}
    workers = {node[:2] for name, node in nodes.items() if name.startswith("workers")}
    assert (len(nodes), workers) == (7, {"b1"})
    assert {node[0] for node in nodes.values()} == {"b"}
