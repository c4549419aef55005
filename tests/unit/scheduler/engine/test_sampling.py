"""How much of a large cluster is looked at, and from where."""

from __future__ import annotations

import numpy as np
import pytest

from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import load
from kubesched.scheduler.engine.filter import cut_search, feasible_nodes_to_find
from kubesched.scheduler.engine.score import ByName, Seeded
from kubesched.testing import make


@pytest.mark.parametrize(
    ("percentage", "n_nodes", "enough"),
    [
        pytest.param(0, 99, 99, id="a small cluster is looked at as a whole"),
        pytest.param(10, 50, 50, id="even if told otherwise"),
        pytest.param(0, 100, 100, id="never fewer than a hundred"),
        pytest.param(0, 1000, 420, id="adaptive: half, less one percent in 125 nodes"),
        pytest.param(0, 5000, 500, id="adaptive in a large cluster"),
        pytest.param(0, 6000, 300, id="adaptive, at least five percent"),
        pytest.param(40, 1000, 400, id="a fixed share"),
        pytest.param(5, 1000, 100, id="a fixed share below the minimum"),
        pytest.param(100, 1000, 1000, id="all"),
    ],
)
def test_how_many_feasible_nodes_are_enough(percentage: int, n_nodes: int, enough: int) -> None:
    assert feasible_nodes_to_find(percentage, n_nodes) == enough


@pytest.mark.parametrize(
    ("start", "enough", "found", "looked_at"),
    [
        pytest.param(0, 2, [3, 1], 3, id="stops at the second feasible row"),
        pytest.param(4, 2, [2, 3], 2, id="goes round"),
        pytest.param(0, 9, [3, 1, 2], 5, id="looks at all if there are not enough"),
    ],
)
def test_a_search_is_cut_where_enough_were_found(start: int, enough: int, found: list[int], looked_at: int) -> None:
    order = np.array([3, 0, 1, 4, 2])
    fits = np.array([False, True, True, True, False])
    rows, n = cut_search(order, fits, start, enough)
    assert (rows.tolist(), n) == (found, looked_at)


def _scheduler_of(n_nodes: int, percentage: int) -> tuple[Cluster, object]:
    nodes = [make.node(f"n{i:03}", labels={make.ZONE: f"z{i % 2}"}) for i in range(n_nodes)]
    cluster = Cluster.from_objects(manifests.from_dicts([*nodes, make.pod("p")]).objects)
    config = load(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": percentage,
        },
        "test",
    )
    return cluster, build_schedulers(cluster, config, ByName())["default-scheduler"]


def test_the_next_search_begins_where_the_last_one_ended() -> None:
    cluster, scheduler = _scheduler_of(250, 40)
    pod = next(iter(cluster.pending.values()))
    chosen = [scheduler.decide(pod) for _ in range(3)]  # type: ignore[attr-defined]
    assert [decision.n_feasible for decision in chosen] == [100, 100, 100]
    # zones take turns: n000, n001 | the second hundred begins at n100 | the third goes round to n000
    assert [decision.node_name for decision in chosen] == ["n000", "n100", "n000"]


def test_the_same_seed_breaks_ties_the_same_way() -> None:
    names = [f"n{i}" for i in range(50)]
    first, second = Seeded(7), Seeded(7)
    assert [first.choose(names) for _ in range(20)] == [second.choose(names) for _ in range(20)]
    assert len({Seeded(seed).choose(names) for seed in range(50)}) > 10
