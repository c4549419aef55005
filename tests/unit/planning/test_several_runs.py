"""Several seeds and orders of arrival: a yes is a yes in all runs, and what depends on chance says so."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result
from resting_clusters import Manifest, node, random_cluster, workload

import kubesched
from kubesched.cli.main import main
from kubesched.planning.several_runs import Run, Runs, RunVerdicts, shuffled
from kubesched.simulator.options import OptionError


def by_chance() -> list[Manifest]:
    """Whether the pod `large` of node a finds room elsewhere depends on where the two small ones, which wait, go."""
    nodes = [node(name, cpu="4") for name in "abc"]
    busy = [item for n, name in enumerate("abc") for item in workload("Deployment", f"busy-{n}", "2", [name])]
    small = workload("Deployment", "small", "1", [], replicas=2)
    return [*nodes, *busy, *small]


def test_runs_are_every_seed_in_every_order() -> None:
    runs = Runs(5, 2, 2)
    assert runs.all == (Run(5, 0), Run(5, 1), Run(6, 0), Run(6, 1)) and len(runs) == 4
    assert runs.told == "4 runs: 2 seeds, 2 orders of arrival; a yes is a yes in all of them."
    with pytest.raises(OptionError, match="orders: at least 1"):
        Runs(0, 1, 0)


def test_verdicts_say_in_how_many_runs_it_is_a_no() -> None:
    split = RunVerdicts((True, False, True))
    assert (split.n_yes, split.are_split, split.where_no) == (2, True, " in 1 of 3 runs")
    assert split.record() == {"runs": {"yes": 2, "of": 3, "each": [True, False, True]}}
    assert (RunVerdicts((False, False)).where_no, RunVerdicts().where_no, RunVerdicts().record()) == (
        " in all 2 runs",
        "",
        {},
    )


def test_another_order_changes_places_within_a_kind() -> None:
    objects = kubesched.load(by_chance()).found.objects
    mixed = shuffled(objects, 1)
    assert mixed != tuple(objects) and [type(item) for item in mixed] == [type(item) for item in objects]
    assert {id(item) for item in mixed} == {id(item) for item in objects}
    assert mixed == shuffled(objects, 1) != shuffled(objects, 2)


@pytest.mark.parametrize("full", [False, True])
def test_an_outage_is_survived_if_it_is_in_every_run(full: bool) -> None:
    asked: dict[str, Any] = {"every": "node", "nodes": "kubernetes.io/hostname notin (b)", "full": full}
    alone = [kubesched.outage(by_chance(), **asked, seed=seed) for seed in range(6)]
    report = kubesched.outage(by_chance(), **asked, seeds=6)
    assert report.verdicts.each == tuple(one.survives for one in alone)
    assert report.verdicts.are_split and not report.survives
    for place, case in enumerate(report.results):
        missing = tuple(one.results[place].missing for one in alone)
        assert (case.by_run, case.missing, case.at_best) == (missing, max(missing), min(missing))
    n_no = sum(not one.survives for one in alone)
    assert f" in {n_no} of 6 runs" in report.headline
    record = report.to_dict()
    assert (record["seeds"], record["orders"], record["runs"]["yes"]) == ([0, 1, 2, 3, 4, 5], 1, 6 - n_no)
    assert "AT BEST" in str(report)


def test_an_order_of_arrival_is_another_run() -> None:
    report = kubesched.outage(by_chance(), fail=["node/a"], orders=4, full=True)
    assert len(report.verdicts.each) == 4 and report.to_dict()["orders"] == 4
    assert kubesched.outage(by_chance(), fail=["node/a"], full=True).verdicts.each == ()


def test_an_upgrade_finishes_if_it_does_in_every_run() -> None:
    alone = [kubesched.upgrade(by_chance(), seed=seed) for seed in range(3)]
    report = kubesched.upgrade(by_chance(), seeds=3, find_order=True)
    found = [(run.finishes, run.duration_s, run.moves) for run in report.outcome.by_run]
    assert found == [(one.finishes, one.outcome.duration_s, one.outcome.moves) for one in alone]
    assert report.outcome.duration_s == max(one.outcome.duration_s or 0 for one in alone)
    assert "in all 3 runs" in report.headline and "Of 3 runs, 3 finish" in str(report)
    assert all(len(one.by_run) == 3 for one in report.orders)
    assert report.to_dict()["runs"] == {"yes": 3, "of": 3, "each": [True] * 3}


def test_nodes_can_go_if_they_can_in_every_run() -> None:
    alone = [kubesched.consolidate(by_chance(), seed=seed) for seed in range(6)]
    report = kubesched.consolidate(by_chance(), seeds=6)
    assert report.savings_by_run == tuple(one.saving for one in alone)
    each = [kubesched.consolidate(by_chance(), seed=seed, nodes="kubernetes.io/hostname=a") for seed in range(6)]
    asked = kubesched.consolidate(by_chance(), seeds=6, nodes="kubernetes.io/hostname=a")
    assert {bool(one.removed) for one in each} == {True, False} and not asked.removed
    assert [k.reason.identifier for k in asked.kept if k.node == "a"] == ["DependsOnChance"]
    assert asked.verdicts.each == tuple(bool(one.removed) for one in each)
    assert asked.headline == f"None of 3 nodes can go in {6 - asked.verdicts.n_yes} of 6 runs."


def test_steps_that_hold_in_every_run_are_the_steps_of_each() -> None:
    """Carried out by itself in each run, no pod is left without a node."""
    objects = random_cluster(Random(7), budgets=True, fill=0.6)
    report = kubesched.consolidate(objects, seeds=3, orders=2)
    assert report.removed
    for seed in range(3):
        with kubesched.world(objects, seed=seed).trial() as trial:
            for name in (name for step in report.steps for name in step.cordon):
                trial.cordon(name)
            for name in report.removed:
                trial.drain(name)
                assert not trial.settle().pending
                trial.delete_node(name)


def test_more_is_found_with_one_seed_than_holds_with_all() -> None:
    one, all_six = kubesched.consolidate(by_chance()), kubesched.consolidate(by_chance(), seeds=6)
    assert set(all_six.removed) <= {"a", "b", "c"} and all_six.saving <= one.saving


def test_what_is_placed_by_chance_is_measured_at_its_worst() -> None:
    wide = workload("Deployment", "wide", "2", [], replicas=1, priority=-1)
    objects = [*by_chance(), *wide]
    report = kubesched.optimal(objects, seeds=6)
    alone = [kubesched.optimal(objects, seed=seed) for seed in range(6)]
    n_left = tuple(one.tiers[-1].pods - one.tiers[-1].placed for one in alone)
    assert report.pending_by_run == n_left
    assert report.tiers[-1].pods - report.tiers[-1].placed == max(n_left)
    assert report.to_dict()["seeds"] == [0, 1, 2, 3, 4, 5]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": by_chance()}))
    return path


def run(cluster: Path, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [command, "-f", str(cluster), *arguments], catch_exceptions=False)


def test_what_depends_on_chance_is_undecided(cluster: Path) -> None:
    asked = ("--fail", "node/a", "--full", "--exit-code")
    seeds = {run(cluster, "outage", *asked, "--seed", str(seed)).exit_code for seed in range(6)}
    assert seeds == {0, 1}
    assert run(cluster, "outage", *asked, "--seeds", "6").exit_code == 3
    for about in (("--node", "a"), ("--nodes", "kubernetes.io/hostname=a")):
        told = run(cluster, "consolidate", *about, "--seeds", "6", "--exit-code")
        assert told.exit_code == 3, told.output


@pytest.mark.parametrize("command", ["outage", "upgrade", "consolidate"])
def test_several_processes_give_the_bytes_of_one(cluster: Path, command: str) -> None:
    asked = ("--seeds", "2", "--orders", "2", "-o", "json")
    alone, together = (run(cluster, command, *asked, "--jobs", jobs) for jobs in ("1", "3"))
    assert alone.stdout and (alone.exit_code, alone.stdout) == (together.exit_code, together.stdout)


@pytest.mark.parametrize("command", ["outage", "upgrade", "consolidate", "optimal"])
def test_no_run_is_no_question(cluster: Path, command: str) -> None:
    assert run(cluster, command, "--seeds", "0").exit_code == 2
