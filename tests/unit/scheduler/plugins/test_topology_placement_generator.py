"""TopologyPlacementGenerator: one placement per value of the label, and those that pods with a node leave of it."""

from __future__ import annotations

import numpy as np
import pytest
from placed_groups import PlacedGroups
from small_clusters import node

from kubesched.framework.groups import GroupCycle, Placement, PlacementsResult
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.scheduling import (
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSpec,
    TopologyConstraint,
)
from kubesched.scheduler.plugins.topology_placement_generator import TopologyPlacementGenerator

_PINNED = "cannot determine domain for already scheduled pods: "


def _group(key: str) -> PodGroup:
    constraints = PodGroupSchedulingConstraints((TopologyConstraint(key),)) if key else None
    return PodGroup(ObjectMeta("g", "default"), PodGroupSpec(scheduling_constraints=constraints))


def _generated(key: str, placed: dict[str, str] | None = None, within: tuple[int, ...] = ()) -> PlacementsResult:
    handle = PlacedGroups(placed or {}, _group(key))
    rows = np.array(within, dtype=np.intp) if within else handle.cluster.rows_in_order
    plugin = TopologyPlacementGenerator(None, handle)  # type: ignore[arg-type]
    return plugin.generate_placements(GroupCycle("default/g", []), Placement("", rows))


def _racks(result: PlacementsResult) -> dict[str, list[int]]:
    assert result.status.is_success, result.status.message
    return {one.name: one.rows.tolist() for one in result.placements}


def test_without_a_constraint_the_group_may_go_anywhere() -> None:
    assert _racks(_generated("")) == {"": [0, 1, 2, 3, 4]}


def test_one_placement_for_each_value_of_the_label() -> None:
    assert _racks(_generated("rack")) == {"r0": [0, 2], "r1": [1, 4]}


def test_a_node_that_changes_its_rack_is_found_there_the_next_time() -> None:
    handle = PlacedGroups({}, _group("rack"))
    plugin = TopologyPlacementGenerator(None, handle)  # type: ignore[arg-type]

    def found() -> dict[str, list[int]]:
        everything = Placement("", handle.cluster.rows_in_order)
        return _racks(plugin.generate_placements(GroupCycle("default/g", []), everything))

    assert found() == found() == {"r0": [0, 2], "r1": [1, 4]}
    handle.cluster.put(node("c", labels={"rack": "r1"}))
    assert found() == {"r0": [0], "r1": [1, 2, 4]}
    handle.cluster.remove(node("a"))  # its row is given to e
    assert found() == {"r1": [1, 2, 0]}


def test_no_node_with_the_label_leaves_no_placement() -> None:
    assert _racks(_generated("zone")) == {}


def test_pods_with_a_node_pin_the_group_to_their_domain() -> None:
    assert _racks(_generated("rack", {"p": "b", "q": "e"})) == {"r1": [1, 4]}


def test_a_pinned_domain_outside_of_the_parent_leaves_none() -> None:
    assert _racks(_generated("rack", {"p": "b"}, within=(0, 2))) == {}


@pytest.mark.parametrize(
    ("placed", "error"),
    [
        ({"p": "a", "q": "b"}, "more than 1 domain found for pod group: r0, r1"),
        ({"p": "gone"}, 'getting node for pod default/p: nodeinfo not found for node name "gone"'),
        ({"p": "d"}, "no topology domain found for pod default/p"),
    ],
)
def test_pods_that_pin_no_single_domain_are_an_error(placed: dict[str, str], error: str) -> None:
    assert _generated("rack", placed).status.message == _PINNED + error


def test_without_its_group_it_is_an_error() -> None:
    plugin = TopologyPlacementGenerator(None, PlacedGroups({}))  # type: ignore[arg-type]
    result = plugin.generate_placements(GroupCycle("default/g", []), Placement("", np.arange(1)))
    assert result.status.message == 'podgroup.scheduling.k8s.io "g" not found'
