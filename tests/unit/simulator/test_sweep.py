"""Sweeps: what they tell, and that it does not matter where the runs are made."""

from __future__ import annotations

import json
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from simulated_clusters import workload

import kubesched
from kubesched.cli.sweep import sweep as command
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import manifests
from kubesched.scheduler.config import default
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.simulator.many_runs import SpreadError, spread_over
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.run import run_simulation
from kubesched.testing import make

EXAMPLES = Path(__file__).parents[3] / "examples" / "simulate"
FILES = [str(EXAMPLES / "cluster.yaml"), str(EXAMPLES / "workload.yaml")]
NO_SCORES = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}],
}


def _web(n: int) -> list[dict[str, Any]]:
    return [*(make.node(name, cpu="2") for name in "abc"), workload("Deployment", "web", replicas=n, pod={"cpu": "1"})]


def test_a_sweep_tells_chance_from_what_is_not() -> None:
    report = kubesched.sweep(_web(8), seeds=4)
    assert report.headline == "1 configuration with 4 seeds: 2 pods pending in all 4 runs."
    assert [row["pending"] for row in report.runs.to_rows()] == [2, 2, 2, 2]
    assert len(set(report.runs["fingerprint"])) == 4
    assert not report.places_all
    named = kubesched.sweep([make.node("a"), make.pod("p")], seeds=[7, 8], tie_break="name")
    assert len(set(named.runs["fingerprint"])) == 1
    assert named.headline == "1 configuration with 2 seeds: every pod finds a node in all 2 runs."
    assert "Ties are decided by name" in str(named)


def test_configurations_are_told_apart() -> None:
    report = kubesched.sweep(_web(6), {"usual": None, "no scores": NO_SCORES}, seeds=2)
    assert report.headline == (
        "2 configurations with 2 seeds: with usual, every pod finds a node in all 2 runs; "
        "with no scores, every pod finds a node in all 2 runs."
    )
    assert [row[:2] for row in report.runs] == [("usual", 0), ("usual", 1), ("no scores", 0), ("no scores", 1)]
    assert report.to_dict()["configurations"]["usual"]["pending"] == {"least": 0, "median": 0, "most": 0}
    assert "no scores" in report._repr_html_()


def test_processes_give_the_same_report() -> None:
    alone = kubesched.sweep(FILES, seeds=3, until="2h")
    assert kubesched.sweep(FILES, seeds=3, until="2h", jobs=2) == alone


def test_a_dask_cluster_gives_the_same_bytes() -> None:
    distributed = pytest.importorskip("distributed")
    arguments = [*(part for name in FILES for part in ("-f", name)), "--seeds", "3", "--until", "2h", "-o", "json"]
    alone = CliRunner().invoke(command, arguments)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, scheduler_port=0
    ) as cluster:
        spread = CliRunner().invoke(command, [*arguments, "--dask", cluster.scheduler_address])
    assert (spread.exit_code, spread.output) == (0, alone.output)
    assert json.loads(alone.output)["runs"][2]["seed"] == 2


def test_objects_are_the_same_in_another_process() -> None:
    """A template's hash, and with it the names of pods, must not depend on which objects are identical."""
    given = load(manifests.from_dicts(_web(2), kinds=SIMULATED_KINDS))
    again = pickle.loads(pickle.dumps(given))
    assert again == given
    runs = [run_simulation(one, default(), SimulationOptions()) for one in (given, again)]
    names = [[record.key for record in cluster.ledger.pods.values()] for cluster in runs]
    assert names[0] == names[1]


def _double(shared: int, case: int) -> int:
    if case < 0:
        raise KubeschedError("no")
    return shared * case


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_order_and_what_is_raised_is_raised(jobs: int) -> None:
    assert list(spread_over(_double, 2, range(5), jobs=jobs)) == [0, 2, 4, 6, 8]
    results: Iterator[int] = spread_over(_double, 2, [1, -1], jobs=jobs)
    assert next(results) == 2
    with pytest.raises(KubeschedError, match="no"):
        next(results)


def _blocked(_shared: int, _case: int) -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_workers_leave_ctrl_c_to_the_process_that_asked() -> None:
    assert list(spread_over(_blocked, 0, [1, 2], jobs=2)) == [True, True]
    assert not _blocked(0, 0)


def test_what_other_processes_cannot_be_given_is_one_error() -> None:
    with pytest.raises(SpreadError, match="other processes cannot be given this"):
        spread_over(lambda shared, case: case, None, [1, 2], jobs=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "0"], "0 is not in the range"),
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
        (["--dask", "nonsense://x:1"], "no Dask scheduler answers there"),
    ],
)
def test_what_cannot_be_done_is_a_line(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(command, [*(part for name in FILES for part in ("-f", name)), *arguments])
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_the_exit_code_says_whether_all_found_a_node(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": _web(8)}))
    arguments = ["-f", str(tmp_path / "all.json"), "--seeds", "1"]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert CliRunner().invoke(command, [*arguments, "--exit-code"]).exit_code == 1
