"""Several seeds and orders of arrival: a question is asked in several runs where chance has a say in the answer.

A yes is a yes in every run. Otherwise the answer is no, in so many of so many runs, and the worst run is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from random import Random
from typing import Any

from kubesched.explanation.layout import counted
from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController
from kubesched.k8s.model.meta import KubeObject
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.options import OptionError, check_seed

_COMING = (Pod, ReplicaSet, ReplicationController, StatefulSet, Job, DaemonSet, Deployment, CronJob)


@dataclass(frozen=True, slots=True)
class Run:
    """Of a question: with this seed, and in this order of arrival; 0 is the order of the files."""

    seed: int
    order: int = 0


@dataclass(frozen=True, slots=True)
class Runs:
    """Every seed with every order."""

    seed: int = 0
    n_seeds: int = 1
    n_orders: int = 1

    def __post_init__(self) -> None:
        check_seed(self.seed)
        for name, number in (("seeds", self.n_seeds), ("orders", self.n_orders)):
            if number < 1:
                raise OptionError(f"{name}: at least 1 is expected, not {number}")

    def __len__(self) -> int:
        return self.n_seeds * self.n_orders

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.n_seeds))

    @property
    def all(self) -> tuple[Run, ...]:
        return tuple(Run(seed, order) for seed in self.seeds for order in range(self.n_orders))

    @property
    def told(self) -> str:
        """`10 runs: 5 seeds, 2 orders of arrival.`"""
        orders = f"{counted(self.n_orders, 'order')} of arrival"
        return f"{counted(len(self), 'run')}: {counted(self.n_seeds, 'seed')}, {orders}; a yes is a yes in all of them."


ONE_RUN = Runs()


@dataclass(frozen=True, slots=True)
class RunVerdicts:
    """Whether the answer is a yes, run by run; empty if there was one run only."""

    each: tuple[bool, ...] = ()

    @property
    def n_yes(self) -> int:
        return sum(self.each)

    @property
    def are_split(self) -> bool:
        """Whether it depends on the seed or the order."""
        return 0 < self.n_yes < len(self.each)

    @property
    def where_no(self) -> str:
        """` in 3 of 10 runs` it is a no; ` in all 10 runs`; nothing if there was one run."""
        return f" in {len(self.each) - self.n_yes} of {len(self.each)} runs" if self.are_split else self.everywhere

    @property
    def nowhere(self) -> str:
        """The same after a negation: ` in 3 of 10 runs`, ` in any of 10 runs`."""
        return self.where_no.replace(" in all ", " in any of ")

    @property
    def everywhere(self) -> str:
        """` in all 10 runs`, of an answer that is the same in each; nothing if there was one run."""
        return f" in all {len(self.each)} runs" if len(self.each) > 1 else ""

    def record(self) -> dict[str, Any]:
        """What a record says of them; nothing if there was one run."""
        if len(self.each) < 2:
            return {}
        return {"runs": {"yes": self.n_yes, "of": len(self.each), "each": list(self.each)}}


def in_order(given: SimulationInput, order: int) -> SimulationInput:
    """As if its pods and workloads had come in another order, which the number stands for: who waits is taken from the
    queue in this order, and who leaves a node is replaced in it."""
    return changed(given, objects=shuffled(given.objects, order)) if order else given


def shuffled(objects: Sequence[KubeObject], order: int) -> tuple[KubeObject, ...]:
    """The objects of a kind take each other's places."""
    found = list(objects)
    random = Random(order)
    for kind in _COMING:
        places = [place for place, item in enumerate(objects) if type(item) is kind]
        mixed = list(places)
        random.shuffle(mixed)
        for place, other in zip(places, mixed, strict=True):
            found[place] = objects[other]
    return tuple(found)
