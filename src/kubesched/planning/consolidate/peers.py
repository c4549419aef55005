"""What Karpenter and Cluster Autoscaler would find: their searches, with the scheduler's own places for the pods.

Karpenter (1.15) deletes empty nodes, then searches by bisection for the longest prefix of at most 100 candidates that
can go together, with at most one cheaper machine in their place, then tries single nodes. Cluster Autoscaler (1.37)
looks at nodes that are less than half used, deletes the empty ones, and drains one at a time; it replaces none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from kubesched.framework.pod_info import PodInfo
from kubesched.planning.catalogue import Option
from kubesched.planning.consolidate.rules import KeepReason
from kubesched.planning.consolidate.state import ConsolidationState
from kubesched.planning.node_groups import group_of

MOST_TOGETHER = 100
UTILISATION_THRESHOLD = 0.5
MOST_EMPTY_AT_ONCE = 10


def karpenter(state: ConsolidationState) -> None:
    while not state.is_over:
        if not (_delete_empty(state, None) or several_together(state) or _single(state)):
            return


def _delete_empty(state: ConsolidationState, most: int | None) -> bool:
    empty = [name for name in state.candidates() if not state.pods(name)]
    return bool(empty) and state.remove(empty[:most]) is not None


def several_together(state: ConsolidationState) -> bool:
    """The longest prefix of the candidates that bisection finds. Whether there is one."""
    candidates = state.candidates()
    if len(candidates) < 2:
        return False
    low, high = 1, min(MOST_TOGETHER, len(candidates) - 1)
    found: tuple[list[str], tuple[Option, ...]] | None = None
    middle = high  # where bisection would end if all can go
    while low <= high and not state.limits.stopped:
        names = candidates[: middle + 1]
        options = _way_out(state, names)
        if options is None:
            high = middle - 1
        else:
            found, low = (names, options), middle + 1
        middle = (low + high) // 2
    return found is not None and state.remove(*found) is not None


def _single(state: ConsolidationState) -> bool:
    for name in _interleaved(state):
        if state.is_over:
            return False
        tried = state.kept.get(name)
        if tried is not None and tried[0] == len(state.steps) and tried[1].identifier != _MANY:
            continue
        options = _way_out(state, [name])
        if options is not None and state.remove([name], options) is not None:
            return True
        if name not in state.kept or state.kept[name][0] < len(state.steps):
            state.kept[name] = (
                len(state.steps),
                KeepReason("Can't replace with a cheaper node", "no machine is cheaper"),
            )
    return False


_MANY = "Can't remove without creating several candidates"


def _way_out(state: ConsolidationState, names: Sequence[str]) -> tuple[Option, ...] | None:
    """With what the nodes could go: nothing, or one machine that costs less than they do. None: with neither. Nothing
    is changed."""
    n_steps = len(state.steps)
    with state.forked():
        if state.remove(names) is not None:
            del state.steps[n_steps:]
            return ()
    if not state.replacements:
        return None
    homeless = state.homeless(names)
    below = _below(state, names, homeless) if len(names) > 1 else None
    for options in state.proposals(names, homeless, most_nodes=1, below=below):
        with state.forked():
            if state.remove(names, options) is not None:
                del state.steps[n_steps:]
                return options
    return None


def _below(state: ConsolidationState, names: Sequence[str], homeless: Sequence[PodInfo]) -> int | None:
    """A machine of a type that goes must cost less than the cheapest of that type: else it would be simpler to keep
    that one."""
    proposed = state.proposals(names, homeless, most_nodes=1)
    offered = {option.shape.name for options in proposed for option in options}
    return min((state.price(name) for name in names if state.instance_type(name) in offered), default=None)


def _interleaved(state: ConsolidationState) -> list[str]:
    """One of each pool in turn."""
    pools: dict[str, list[str]] = {}
    for name in state.candidates():
        pools.setdefault(group_of(state.node(name), "pool") or "", []).append(name)
    return [name for turn in zip_longest(*pools.values()) for name in turn if name is not None]


def cluster_autoscaler(state: ConsolidationState) -> None:
    while not state.is_over:
        unneeded = []
        for name in sorted(state.candidates()):
            if state.utilisation(name) < UTILISATION_THRESHOLD:
                unneeded.append(name)
            else:
                state.kept[name] = len(state.steps), KeepReason("NotUnderutilized", "at least half of it is asked for")
        empty = [name for name in unneeded if not state.pods(name)]
        if empty and state.remove(empty[:MOST_EMPTY_AT_ONCE]) is not None:
            continue
        if not any(state.remove([name]) is not None for name in unneeded if not state.is_over):
            return
