"""What a class keeps by row follows nodes that come, change and go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.scheduler.cluster.journal import NodeChange, NodeChangeKind
from kubesched.scheduler.engine.class_cache.pod_class import follow_rows

ADDED, UPDATED, REMOVED = NodeChangeKind.ADDED, NodeChangeKind.UPDATED, NodeChangeKind.REMOVED


@pytest.mark.parametrize(
    ("changes", "pod_rows", "values", "stale", "asked"),
    [
        pytest.param([], [1], [10, 11, 12], {1}, set(), id="only a pod came"),
        pytest.param([NodeChange(ADDED, 3, 4, 0)], [], [10, 11, 12], set(), {3}, id="a new node is to be asked about"),
        pytest.param([NodeChange(UPDATED, 1, 3, 0)], [], [10, 11, 12], set(), {1}, id="so is one that changed"),
        pytest.param([NodeChange(REMOVED, 0, 2, 0)], [], [12, 11], set(), set(), id="the last row fills the hole"),
        pytest.param([NodeChange(REMOVED, 2, 2, 1)], [2], [10, 11], set(), set(), id="the last row leaves no hole"),
        pytest.param([NodeChange(REMOVED, 0, 2, 1)], [2], [12, 11], {0}, set(), id="with the pods that changed before"),
        pytest.param([NodeChange(REMOVED, 0, 2, 1)], [0], [12, 11], set(), set(), id="pods leave with their node"),
        pytest.param([NodeChange(REMOVED, 0, 2, 0)], [0], [12, 11], {0}, set(), id="a pod that came after the move"),
        pytest.param(
            [NodeChange(UPDATED, 2, 3, 0), NodeChange(REMOVED, 0, 2, 0)],
            [],
            [12, 11],
            set(),
            {0},
            id="a node that changed is moved",
        ),
        pytest.param(
            [NodeChange(ADDED, 3, 4, 0), NodeChange(REMOVED, 3, 3, 0)],
            [],
            [10, 11, 12],
            set(),
            set(),
            id="a node that came and went",
        ),
    ],
)
def test_rows_move_along(
    changes: list[NodeChange], pod_rows: list[int], values: list[int], stale: set[int], asked: set[int]
) -> None:
    column = np.array([10, 11, 12, 0, 0])
    marks = np.zeros(5, dtype=np.bool_)
    assert follow_rows([column], marks, np.array(pod_rows, dtype=np.int64), changes, 0) == asked
    assert column[: len(values)].tolist() == values
    assert set(np.flatnonzero(marks).tolist()) == stale


def test_columns_that_have_no_room_are_given_up() -> None:
    marks = np.zeros(2, dtype=np.bool_)
    assert follow_rows([], marks, np.array([], dtype=np.int64), [NodeChange(ADDED, 2, 3, 0)], 0) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("pod", "add", "update", "remove")), st.integers(0, 7)), max_size=20))
def test_every_row_keeps_what_is_known_of_its_node(steps: list[tuple[str, int]]) -> None:
    """Against a model: names in a list, of which the last fills a hole."""
    names = ["a", "b", "c"]
    column = np.array([ord(name) for name in names] + [0] * 30)
    touched: set[str] = set()
    changed: set[str] = set()
    pod_rows: list[int] = []
    nodes: list[NodeChange] = []
    for number, (step, pick) in enumerate(steps):
        row = pick % len(names) if names else 0
        if step == "add":
            names.append(f"new{number}")
            changed.add(names[-1])
            nodes.append(NodeChange(ADDED, len(names) - 1, len(names), len(pod_rows)))
        elif names and step == "pod":
            pod_rows.append(row)
            touched.add(names[row])
        elif names and step == "update":
            changed.add(names[row])
            nodes.append(NodeChange(UPDATED, row, len(names), len(pod_rows)))
        elif names:
            gone, names[row] = names[row], names[-1]
            names.pop()
            touched.discard(gone)
            changed.discard(gone)
            nodes.append(NodeChange(REMOVED, row, len(names), len(pod_rows)))
    marks = np.zeros(len(column), dtype=np.bool_)
    asked = follow_rows([column], marks, np.array(pod_rows, dtype=np.int64), nodes, 0)
    assert asked == {row for row, name in enumerate(names) if name in changed}
    assert {names[row] for row in np.flatnonzero(marks).tolist()} == touched
    for row, name in enumerate(names):
        assert name.startswith("new") or column[row] == ord(name)
