"""NodeResourcesFit on placements: all nodes as one large one, the fuller the better. Nodes have 5 CPU, 5000 bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from placed_groups import PlacedGroups, placement
from small_clusters import node, pod, pod_info

from kubesched.framework.groups import CountedPlacements
from kubesched.framework.nodes import RowSets
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.config.plugin_args import ResourceSpec
from kubesched.scheduler.plugins.node_resources_fit.scoring import counted_placement_scores, placement_score

_CPU, _MEMORY, _GPU = (ResourceSpec(name, 1) for name in ("cpu", "memory", "gpu.com/g"))


def _containers(**requests: str) -> list[dict[str, object]]:
    named = {name.replace("gpu", "gpu.com/g"): amount for name, amount in requests.items()}
    return [{"name": "c", "resources": {"requests": named}}]


_ONE = pod_info("x", containers=_containers(cpu="1", memory="0"))
_TWO = pod_info("y", containers=_containers(cpu="2", memory="2000"))
_WITH_GPU = pod_info("z", containers=_containers(cpu="1", memory="0", gpu="1"))
_OTHER = pod("other", uid="o", nodeName="a", containers=_containers(cpu="1", memory="0"))


@pytest.mark.parametrize(
    ("specs", "rows", "pods", "others", "score"),
    [
        pytest.param((_CPU, _MEMORY), [0, 1], (_ONE, _TWO), (), 25, id="30 and 20 percent"),
        pytest.param((ResourceSpec("cpu", 4), _MEMORY), [0, 1], (_ONE, _TWO), (), 28, id="weights"),
        pytest.param((_CPU, _MEMORY), [0, 1], (_ONE, _TWO), (_OTHER,), 30, id="what runs there counts"),
        pytest.param((_CPU, _MEMORY), [1, 2], (_ONE, _TWO), (_OTHER,), 25, id="what runs elsewhere does not"),
        pytest.param(
            (_CPU, _MEMORY, _GPU),
            [0, 1],
            (_WITH_GPU, _TWO),
            (),
            20,
            id="what is asked for counts",
        ),
        pytest.param(
            (_CPU, _MEMORY, _GPU),
            [0, 1],
            (_ONE, _TWO),
            (),
            25,
            id="what nobody asks for does not",
        ),
        pytest.param((ResourceSpec("none.com/x", 1),), [0, 1], (_ONE,), (), 0, id="nothing to go by"),
    ],
)
def test_score(
    specs: tuple[ResourceSpec, ...], rows: list[int], pods: tuple[PodInfo, ...], others: tuple[object, ...], score: int
) -> None:
    handle = PlacedGroups({}, *others)  # type: ignore[arg-type]
    for at in (0, -1):  # it does not matter on which of them
        placed = [(info, rows[at if number else 0]) for number, info in enumerate(pods)]
        assert placement_score(specs, handle.nodes, placement(rows, *placed)) == score


@given(
    st.lists(st.sampled_from([[0], [1, 2], [0, 1, 4], [3, 4], [0, 1, 2, 3, 4]]), min_size=1, max_size=4),
    st.lists(st.integers(0, 20), min_size=4, max_size=4),
    st.sampled_from([_ONE, _TWO, _WITH_GPU]),
    st.lists(st.sampled_from([_CPU, _MEMORY, _GPU, ResourceSpec("cpu", 4), ResourceSpec("none.com/x", 2)]), max_size=4),
)
def test_counted_scores_are_those_of_the_placements(
    parts: list[list[int]], counts: list[int], info: PodInfo, specs: list[ResourceSpec]
) -> None:
    nodes = PlacedGroups({}, _OTHER).nodes
    rows = [np.array(part, dtype=np.intp) for part in parts]
    counted = CountedPlacements([info] * 20, np.array(counts[: len(parts)]), RowSets(rows), np.arange(len(parts)))
    scores = counted_placement_scores(specs, nodes, counted)
    one_by_one = [
        placement_score(specs, nodes, placement(part, *([(info, part[0])] * n)))
        for part, n in zip(parts, counts, strict=False)
    ]
    assert scores.tolist() == one_by_one


def test_counted_scores_do_not_run_over() -> None:
    handle = PlacedGroups({})
    huge = {"allocatable": {"cpu": "1", "memory": str(2**60), "pods": "9"}}
    for name in ("f", "g"):
        handle.cluster.put(node(name, status=huge))
    info = pod_info("x", containers=_containers(cpu="0", memory=str(2**59)))
    rows = np.array([5, 6], dtype=np.intp)
    counted = CountedPlacements([info] * 3, np.array([3]), RowSets([rows]), np.arange(1))
    assert counted_placement_scores([_MEMORY], handle.nodes, counted).tolist() == [75]
    assert placement_score([_MEMORY], handle.nodes, placement([5, 6], *([(info, 5)] * 3))) == 75
