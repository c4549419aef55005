"""PodGroupPodsCount: scores by number of pods."""

from __future__ import annotations

import numpy as np
import pytest
from placed_groups import PlacedGroups, placement
from small_clusters import pod_info

from kubesched.framework.groups import CountedPlacements, GroupCycle
from kubesched.framework.nodes import RowSets
from kubesched.framework.status import PluginFault
from kubesched.scheduler.plugins.pod_group_pods_count import PodGroupPodsCount

_GROUP = GroupCycle("default/g", [])


@pytest.mark.parametrize("n_scheduled", [0, 1, 3])
def test_pods_with_a_node_count_beside_those_that_would_get_one(n_scheduled: int) -> None:
    plugin = PodGroupPodsCount(None, PlacedGroups({f"p{i}": "a" for i in range(n_scheduled)}))  # type: ignore[arg-type]
    proposed = placement([0, 1], (pod_info("x"), 0), (pod_info("y"), 1))
    assert plugin.score_placement(_GROUP, proposed) == n_scheduled + 2


@pytest.mark.parametrize(
    ("raw", "normalized"),
    [
        ([10, 50, 110], [9, 45, 100]),
        ([7, 7], [100, 100]),
        ([11, 100, 101, 102], [10, 98, 99, 100]),
        ([3], [100]),
    ],
)
def test_the_most_pods_are_a_hundred(raw: list[int], normalized: list[int]) -> None:
    assert PodGroupPodsCount(None, PlacedGroups({})).normalize_placement_scores(_GROUP, raw) == normalized  # type: ignore[arg-type]


def test_no_pods_at_all_are_an_error() -> None:
    with pytest.raises(PluginFault, match="no pods from pod group are assigned to any of the candidate placements"):
        PodGroupPodsCount(None, PlacedGroups({})).normalize_placement_scores(_GROUP, [0, 0])  # type: ignore[arg-type]


@pytest.mark.parametrize("n_scheduled", [0, 2])
def test_counted_pods_score_as_placed_ones(n_scheduled: int) -> None:
    plugin = PodGroupPodsCount(None, PlacedGroups({f"p{i}": "a" for i in range(n_scheduled)}))  # type: ignore[arg-type]
    counts, rows = [3, 7, 5], [np.array([row]) for row in (0, 1, 2)]
    counted = CountedPlacements([pod_info("x")] * max(counts), np.array(counts), RowSets(rows), np.arange(3))
    raw = [plugin.score_placement(_GROUP, placement([0], *[(pod_info("x"), 0)] * n)) for n in counts]
    assert plugin.score_counted(_GROUP, counted).tolist() == plugin.normalize_placement_scores(_GROUP, raw)
