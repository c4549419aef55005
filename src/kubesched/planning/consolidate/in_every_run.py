"""Steps that hold whatever chance does: found with one seed, carried out again with the others and in other orders.

A step that leaves a pod without a node in any run is left out, and the rest is carried out once more, until all of it
holds in every run. Where any one zone is to be spared (`--keep n-1:zone`), a step must not leave more pods without a
node after the loss of a zone than would be now.

Next: `consolidation`, which finds the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kubesched.k8s.model.meta import PodKey
from kubesched.planning.consolidate.rules import KeepReason
from kubesched.planning.consolidate.state import ConsolidationState, ConsolidationStep
from kubesched.planning.headroom import is_headroom
from kubesched.planning.spare_one import homeless, losses
from kubesched.simulator.settling import Settled
from kubesched.simulator.trial import LoadedWorld, WorldTrial


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """The steps in one run, with the moves that they mean there; None for one that does not hold."""

    steps: tuple[ConsolidationStep | None, ...]


@dataclass(frozen=True, slots=True)
class HeldSteps:
    steps: list[ConsolidationStep]
    """As they are in the first run."""
    left_out: dict[str, int]
    """Nodes whose step does not hold in every run, each with the number of runs in which it does."""


def held_in_all(
    steps: Sequence[ConsolidationStep], carry_out: Callable[[Sequence[ConsolidationStep]], list[CarriedOut]]
) -> HeldSteps:
    """`carry_out` gives what becomes of the steps in each run."""
    left_out: dict[str, int] = {}
    while steps:
        found = carry_out(steps)
        held = [sum(one.steps[place] is not None for one in found) for place in range(len(steps))]
        if min(held) == len(found):
            return HeldSteps([step for step in found[0].steps if step is not None], left_out)
        for step, n in zip(steps, held, strict=True):
            if n < len(found):
                left_out.update(dict.fromkeys(step.delete, n))
        kept = [step for step, n in zip(steps, held, strict=True) if n == len(found)]
        steps = [replace(step, cordon=tuple(name for name in step.cordon if name not in left_out)) for step in kept]
    return HeldSteps([], left_out)


def carried_out(state: ConsolidationState, steps: Sequence[ConsolidationStep], spared: str = "") -> CarriedOut:
    """One after another; the world is as before afterwards."""
    spare = SpareOne(state.world, spared) if spared else None
    with state.forked() as trial:
        found = _carried_out(state, trial, steps)
        if spare is None or spare.is_kept:
            return CarriedOut(tuple(found))
    with state.forked() as trial:
        return CarriedOut(tuple(_carried_out(state, trial, steps, lambda: spare.is_kept)))


def needed_after_loss(by: str) -> KeepReason:
    return KeepReason("NeededAfterLoss", f"without it, more pods would have no node after the loss of a {by}")


class SpareOne:
    """Whether any one zone, or node, can be lost as it could at first."""

    def __init__(self, world: LoadedWorld, by: str) -> None:
        self._world = world
        self._by = by
        self.lost_at_first = self._lost()

    @property
    def is_kept(self) -> bool:
        return all(n <= self.lost_at_first.get(name, 0) for name, n in self._lost().items())

    def _lost(self) -> dict[str, int]:
        """For each zone or node, how many pods have no node after its loss."""
        world = self._world

        def left_of(settled: Settled) -> dict[PodKey, str]:
            found = homeless(world, settled, settled.preempted)
            return {key: text for key, text in found.items() if not is_headroom(key)}

        with world.trial() as trial:
            return {one.name: len(one.left) for one in losses(trial, self._by, left_of, lambda: None)}


def _carried_out(
    state: ConsolidationState,
    trial: WorldTrial,
    steps: Sequence[ConsolidationStep],
    is_fine: Callable[[], bool] = lambda: True,
) -> list[ConsolidationStep | None]:
    """`is_fine` is asked after each step."""
    rows = state.world.cluster.table.rows
    closed = {
        name for step in steps for name in step.cordon if name in rows and not state.node(name).spec.unschedulable
    }
    for name in sorted(closed):
        trial.cordon(name)
    found: list[ConsolidationStep | None] = []
    for step in steps:
        with trial.trial() as inner:
            done = _one_step(state, inner, step)
            if done is not None and is_fine():
                inner.commit()
                found.append(done)
                continue
        for name in closed.intersection(step.delete):
            trial.uncordon(name)
        found.append(None)
    return found


def _one_step(state: ConsolidationState, trial: WorldTrial, step: ConsolidationStep) -> ConsolidationStep | None:
    if any(name not in state.world.cluster.table.rows for name in step.delete):
        return None
    launched = tuple(state.remover.launch(trial, one.option) for one in step.launch)
    result = state.remover.attempt(trial, step.delete)
    if not result.is_possible:
        return None
    return replace(
        step, launch=launched, moves=result.moves, waves=sum(result.waves), waited=result.waited, lost=result.lost
    )
