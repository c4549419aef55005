"""NodeResourcesFit on placements: all nodes as one large one, the fuller the better. Nodes have 5 CPU, 5000 bytes."""

from __future__ import annotations

import pytest
from placed_groups import PlacedGroups, placement
from small_clusters import pod, pod_info

from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.config.plugin_args import ResourceSpec
from kubesched.scheduler.plugins.node_resources_fit.scoring import placement_score

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
