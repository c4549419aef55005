"""Steps that go together: as many nodes at a time as asked for, and as budgets of nodes allow, if the scheduler finds a
place for all their pods then, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from kubesched.k8s.errors import KubeschedError
from kubesched.planning.consolidate.karpenter_pools import is_node_ready
from kubesched.planning.consolidate.removal import PodMove
from kubesched.planning.consolidate.state import ConsolidationState, ConsolidationStep
from kubesched.planning.node_groups import group_of
from kubesched.planning.node_pool_budgets import EMPTY, UNDERUTILIZED


class BudgetError(KubeschedError, ValueError):
    """A budget of nodes is neither a number nor a percentage."""


def nodes_allowed(budget: str, n_nodes: int, n_not_ready: int) -> int:
    """How many nodes of a pool may be disrupted at a time: percentages round up; what is not ready counts already."""
    text = budget.removesuffix("%")
    if not text.isdecimal() or (budget.endswith("%") and int(text) > 100):
        raise BudgetError(f'budget "{budget}" is neither a number of nodes nor a percentage up to 100%')
    most = ceil(n_nodes * int(text) / 100) if budget.endswith("%") else int(text)
    return max(0, most - n_not_ready)


def in_rounds(
    state: ConsolidationState, steps: Sequence[ConsolidationStep], parallel: int, budget: str
) -> tuple[list[ConsolidationStep], list[int]]:
    """The steps with the moves that they mean then, and the number of each one's round, from 1 on."""
    one_by_one = list(steps), list(range(1, len(steps) + 1))
    allowed = _allowed(state, budget) if budget else None
    if parallel == 1:
        return one_by_one
    done: list[ConsolidationStep] = []
    rounds: list[int] = []
    with state.forked() as trial:
        for name in (name for step in steps for name in step.cordon):
            trial.cordon(name)
        while len(done) < len(steps):
            waiting = steps[len(done) : len(done) + parallel]
            together = next(
                (
                    made
                    for size in range(len(waiting), 0, -1)
                    if _within(state, waiting[:size], parallel, allowed) and (made := _together(state, waiting[:size]))
                ),
                None,
            )
            if together is None:
                return one_by_one
            rounds += [rounds[-1] + 1 if rounds else 1] * len(together)
            done += together
    return done, rounds


def _allowed(state: ConsolidationState, budget: str) -> dict[str, int]:
    pools: dict[str, list[bool]] = {}
    for name in state.world.nodes:
        node = state.node(name)
        pools.setdefault(group_of(node, "pool") or "", []).append(is_node_ready(node))
    return {pool: nodes_allowed(budget, len(ready), ready.count(False)) for pool, ready in pools.items()}


def _within(
    state: ConsolidationState, steps: Sequence[ConsolidationStep], parallel: int, allowed: dict[str, int] | None
) -> bool:
    if len(steps) == 1:
        return True
    names = [name for step in steps for name in step.delete]
    if len(names) > parallel or any(name not in state.world.cluster.table.rows for name in names):
        return False
    counts = Counter(group_of(state.node(name), "pool") or "" for name in names)
    if allowed is not None and any(count > max(1, allowed.get(pool, 0)) for pool, count in counts.items()):
        return False
    empty = [name for name in names if state.is_empty(name)]
    busy = [name for name in names if name not in empty]
    return state.within_budgets(empty, EMPTY) == empty and state.within_budgets(busy, UNDERUTILIZED) == busy


def _together(state: ConsolidationState, steps: Sequence[ConsolidationStep]) -> list[ConsolidationStep] | None:
    """The steps as they go together; None if pods would find no node."""
    with state.forked() as trial:
        for one in (one for step in steps for one in step.launch):
            state.remover.launch(trial, one.option)
        result = state.remover.attempt(trial, [name for step in steps for name in step.delete], at_once=True)
        if not result.is_possible:
            return None
        trial.commit()
    by_source: dict[str, list[PodMove]] = {}
    for move in result.moves:
        by_source.setdefault(move.source, []).append(move)
    return [
        replace(
            step,
            moves=tuple(move for name in step.delete for move in by_source.get(name, ())),
            waves=max(result.waves),
        )
        for step in steps
    ]
