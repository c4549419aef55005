"""Rolling upgrades, played: surges, budgets that block, timeouts, orders, presets; the command."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from resting_clusters import budget, node, workload

import kubesched
from kubesched.cli.main import main
from kubesched.k8s.loaded_cluster import read_objects
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.rolling_upgrade import PRESETS, BlockedPod, UpgradeError, UpgradeStrategy, strategy_of
from kubesched.planning.upgrade import UpgradePlayer
from kubesched.planning.upgrade_report import UpgradeReport
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.simulator.options import SimulationOptions

ROOT = Path(__file__).parents[3]
Manifest = dict[str, Any]


def cluster(*, cpu: str = "1", replicas: int = 1) -> list[Manifest]:
    """Three nodes, each with a pod of its own and one that all share."""
    nodes = [node(name, "abc"[n]) for n, name in enumerate(("x", "y", "z"))]
    own = [item for name in ("x", "y", "z") for item in workload("Deployment", f"on-{name}", cpu, [name] * replicas)]
    return [*nodes, *own, *workload("Deployment", "web", "100m", ["x", "y", "z"])]


def upgraded(objects: list[Manifest], **options: Any) -> Any:
    return kubesched.upgrade(objects, tie_break="name", **options)


def test_a_surge_of_one_upgrades_one_after_another() -> None:
    report = upgraded(cluster(), boot="2m")
    one = report.outcome
    assert report.finishes
    assert (one.n_upgraded, one.peak_nodes, one.stuck) == (3, 4, ())
    assert one.duration_s == 3 * (120 + 30)  # a machine boots, then pods have thirty seconds to end
    assert one.moves >= one.n_pods == 6
    assert one.most_pending == 0
    assert 0 < one.extra_node_hours <= 1


def test_without_a_surge_pods_wait_where_there_is_no_room() -> None:
    tight = cluster(cpu="3")
    surge = upgraded(tight, max_surge=1)
    assert (surge.finishes, surge.outcome.most_pending) == (True, 0)
    none = upgraded(tight, max_surge=0, max_unavailable=1)
    assert none.finishes
    assert none.outcome.most_pending == 1
    assert none.outcome.longest_wait_s > 100


def test_a_budget_that_allows_nothing_is_named_with_its_pods() -> None:
    objects = [*cluster(), budget("on-y", minAvailable=1)]
    stopped = upgraded(objects, drain_timeout="30m")
    (stuck,) = stopped.outcome.stuck
    assert not stopped.finishes
    assert (stuck.node, stuck.outcome, stopped.outcome.n_upgraded) == ("y", "stop", 1)
    assert stuck.pods == (BlockedPod("default/on-y-1-0", ("default/on-y",)),)
    assert "It is stuck at y." in stopped.headline
    assert "default/on-y-1-0: disruption budget default/on-y" in str(stopped)

    forced = upgraded(objects, drain_timeout="30m", on_timeout="force")
    assert (forced.finishes, forced.outcome.forced) == (True, 1)
    skipped = upgraded(objects, drain_timeout="30m", on_timeout="skip")
    assert (skipped.outcome.skipped, skipped.outcome.n_upgraded) == (("y",), 2)
    for_ever = upgraded(objects, preset="capi")
    assert [(one.node, one.outcome) for one in for_ever.outcome.stuck] == [("y", "waits")]


def test_a_budget_lets_go_once_the_pod_runs_elsewhere() -> None:
    objects = [*cluster(replicas=2), budget("on-x", maxUnavailable=1)]
    report = upgraded(objects, max_surge=1)
    assert report.finishes
    assert report.outcome.stuck == ()


def test_the_smallest_surge_that_finishes() -> None:
    tight = [*(node(name) for name in "xyz"), *(i for n in "xyz" for i in workload("Deployment", n, "3500m", [n]))]
    tight += [budget(name, maxUnavailable=1) for name in "xyz"]
    report = upgraded(tight, find_surge=True)
    assert [one.strategy.max_surge for one in report.surges][-1] == report.smallest_surge
    assert report.surges[-1].finishes


def test_orders_are_compared_by_their_moves() -> None:
    report = upgraded(cluster(), find_order=True)
    assert {one.strategy.order for one in report.orders} == {"zone", "age", "least-pods"}
    assert report.best_order is not None
    assert "A POD" in str(report)


def test_rebooting_keeps_the_nodes() -> None:
    report = upgraded(cluster(), preset="reboot", boot="5m")
    assert (report.finishes, report.outcome.peak_nodes, report.outcome.extra_node_hours) == (True, 3, 0.0)
    assert report.outcome.duration_s == 3 * (30 + 300)


def test_a_soak_delays_the_next_node() -> None:
    assert upgraded(cluster(), soak="1h").outcome.duration_s > 3 * 3600


def test_to_another_shape_of_a_catalogue() -> None:
    from kubesched.planning.catalogue_files import read_catalogue

    catalogue = read_catalogue(str(ROOT / "examples" / "plan" / "catalogue.yaml"))
    larger = upgraded(cluster(), catalogue=catalogue, to_shape="large")
    assert larger.finishes
    smaller = upgraded(cluster(cpu="3500m"), catalogue=catalogue, to_shape="small")
    assert not smaller.finishes
    assert smaller.outcome.waiting


def test_presets_and_what_is_given_besides() -> None:
    assert strategy_of("aks").numbers(25) == (3, 0)
    assert strategy_of("aks", max_surge=5).numbers(25) == (5, 0)
    assert strategy_of("gke", on_timeout="skip").on_timeout == "skip"
    assert all(preset.numbers(7) for preset in PRESETS.values())
    for wrong in ({"preset": "no"}, {"order": "no"}, {"on_timeout": "no"}, {"max_surge": 0}, {"max_surge": "x%"}):
        with pytest.raises(UpgradeError):
            upgraded(cluster(), **wrong)
    with pytest.raises(UpgradeError):
        UpgradeStrategy(max_surge=-1).numbers(3)


def test_after_ctrl_c_it_says_how_far_it_was_played_and_what_else_was() -> None:
    def played(n_looks: int) -> UpgradeReport:
        looks, heard = count(), []
        given = load(read_objects(cluster(), SIMULATED_KINDS))
        player = UpgradePlayer(
            given,
            GivenConfiguration.read(None, None, None, None).as_of_today().config,
            SimulationOptions(tie_break="name"),
            progress=lambda n_done, n_nodes: heard.append((n_done, n_nodes)),
            stopped=lambda: "interrupted" if next(looks) >= n_looks else "",
        )
        report = player.report(strategy_of(None), find_order=True)
        assert heard[0] == (0, 3)
        return report

    begun = played(5)
    assert begun.to_dict()["finishes"] is None
    assert begun.headline.startswith("Not known whether the upgrade finishes: interrupted after ")
    assert begun.outcome.stuck == ()
    n_looks = next(n for n in range(5, 500) if played(n).finishes)
    first_done = played(n_looks)
    assert (first_done.stopped, first_done.orders) == ("interrupted", ())
    assert "Interrupted: not all alternatives were simulated." in str(first_done)
    assert "Out of time (stopped: time): not all alternatives" in str(replace(first_done, stopped="time"))


def test_only_the_pool_is_upgraded() -> None:
    objects = cluster()
    objects[0]["metadata"]["labels"]["pool"] = "workers"
    report = upgraded(objects, pool="workers")
    assert (report.outcome.n_nodes, report.outcome.n_upgraded) == (1, 1)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["upgrade", "--tie-break", "name", *arguments])


def test_the_command_and_its_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [*cluster(), budget("on-y", minAvailable=1)]})
    )
    stuck = run("-f", str(path), "--exit-code")
    assert stuck.exit_code == 1
    assert stuck.stdout.startswith("The upgrade does not finish: 1 of 3 nodes are upgraded. It is stuck at y.\n")
    assert json.loads(run("-f", str(path), "-o", "json").stdout)["stuck"][0]["node"] == "y"
    assert run("-f", str(path), "-o", "csv", "--table", "stuck").stdout.splitlines()[1].startswith("y,")
    assert "| order |" in run("-f", str(path), "-o", "markdown").stdout
    mistakes = {
        ("-f", str(path), "--pool", "w"): "error: no node has a label for its pool",
        ("-f", str(path), "--max-surge", "x"): "error: Invalid value for '--max-surge'",
        ("-f", str(path), "--max-surge", "0"): "error: with neither a surge nor unavailable nodes",
        ("-f", str(path), "--to-shape", "m"): "error: a shape is of a catalogue, and none was given",
        (): "error: a cluster is needed",
    }
    for arguments, told in mistakes.items():
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(told), result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_the_guide_shows_what_is_printed() -> None:
    guide = (ROOT / "docs" / "guides" / "upgrade.md").read_text()
    files = ("-f", str(ROOT / "examples" / "consolidate"), "-f", str(ROOT / "examples" / "upgrade"))
    result = run(*files, "--pool", "shop", "--preset", "aks")
    assert f"```text\n{result.stdout}```" in guide
