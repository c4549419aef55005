"""Rows get other numbers when nodes come and go: what is kept by row moves along, change by change."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.verdicts import BoolArray
from kubesched.scheduler.cluster.journal import NodeChange, NodeChangeKind


def follow_rows(
    columns: Sequence[BoolArray | IntArray],
    stale: BoolArray,
    pod_rows: RowArray,
    changes: Sequence[NodeChange],
    pods_begin: int,
) -> set[int] | None:
    """Brings columns into the rows of now, and notes in `stale` where pods came or went.

    `pod_rows` are the rows of the pods that changed, numbered as they were then; the first of these changes stands at
    `pods_begin` in the log of pods. Gives the rows whose node is new or another; None if the columns are too short.
    """
    with_other_node: set[int] = set()
    read = 0
    for change in changes:
        upto = max(change.pods_end - pods_begin, read)
        stale[pod_rows[read:upto]] = True
        read = upto
        row = change.row
        if row >= len(stale):
            return None
        if change.kind is NodeChangeKind.REMOVED:
            with_other_node.discard(row)
            last = change.n_rows
            for column in (stale, *columns):
                column[row] = column[last]
            stale[last] = False
            if last in with_other_node:
                with_other_node.discard(last)
                with_other_node.add(row)
        else:
            with_other_node.add(row)
    stale[pod_rows[read:]] = True
    return with_other_node
