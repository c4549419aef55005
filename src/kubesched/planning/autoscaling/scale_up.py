"""Machines for pods that wait: what Karpenter or Cluster Autoscaler would launch for them now.

Karpenter packs all pods first-fit-decreasing on machines of the heaviest NodePool that has one for them, keeps for each
node every machine that still holds its pods, and launches the cheapest of them. Cluster Autoscaler works out for each
node group how many of its nodes the pods need, and enlarges one group: the one that leaves least unused (the expander
`least-waste`).

Both only propose. The scheduler places the pods on what is proposed, and a machine that none of them goes to is not
launched; where rules between nodes keep pods from all that is proposed (another zone, say), single machines are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.k8s.workloads.pod_states import belongs_to_its_node
from kubesched.planning.catalogue import ZONE, Option
from kubesched.planning.new_nodes import join_as, node_from_offer, node_name
from kubesched.planning.plan.model import PackingModel
from kubesched.planning.plan.packing import Packing, by_first_fit, counts_of, is_within_limits, placed_by, single_type
from kubesched.planning.plan.reading import read_problem
from kubesched.planning.plan.request import PlannedWorld, PlanRequest, limits_of
from kubesched.simulator.trial import LoadedWorld, WorldTrial

MOST_TRIED = 64
"""Single machines, for pods that get no node from what is proposed."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that is on its way, with what comes with it: its node, and what its drivers publish."""

    option: Option
    name: str
    objects: tuple[KubeObject, ...]
    pods: int = 0
    """How many pods it is launched for."""


@dataclass(frozen=True, slots=True)
class Market:
    """What can be launched, and what is on its way."""

    options: tuple[Option, ...]
    daemons: tuple[tuple[Pod, ...], ...]
    """Of a node of each option."""
    on_the_way: Sequence[Machine]
    taken: Collection[str]
    """Names that nodes have had."""

    def daemons_on(self, option: Option) -> tuple[Pod, ...]:
        return next((pods for known, pods in zip(self.options, self.daemons, strict=True) if known == option), ())


Propose = Callable[[PackingModel, Sequence[Option]], Iterator[Packing]]
"""Packings that a policy would launch, the one it likes best first."""


def karpenter(model: PackingModel, _options: Sequence[Option]) -> Iterator[Packing]:
    packing = by_first_fit(model)
    if packing is not None:
        yield packing
        return
    for c in range(len(model.classes)):  # limits allow a part of them, at most
        demand = np.zeros_like(model.demand)
        demand[c] = 1
        alone = by_first_fit(model.with_demand(demand))
        if alone is not None:
            yield alone


def cluster_autoscaler(model: PackingModel, options: Sequence[Option]) -> Iterator[Packing]:
    """Of each group as many nodes as the pods need that may go there."""
    ranked = []
    for number, one in enumerate(model.options):
        packing, _ = single_type(model, number)
        while packing and not is_within_limits(model, counts_of(model, packing)):
            packing = _one_less(packing)
        if packing:
            ranked.append((_waste(model, packing), options[one.members[0]].name, packing))
    yield from (packing for _, _, packing in sorted(ranked, key=lambda entry: entry[:2]))


def _one_less(packing: Packing) -> Packing:
    *first, last = packing
    return (*first, *([type(last)(last.option, last.pattern, last.count - 1)] if last.count > 1 else []))


def _waste(model: PackingModel, packing: Packing) -> float:
    """The share of cpu and of memory that stays unused, added up."""
    counts = np.array(counts_of(model, packing), dtype=np.int64)
    has, asked = counts @ model.capacity, placed_by(model, packing) @ model.requests
    columns = [r for r, name in enumerate(model.resources) if name in (CPU, MEMORY) and has[r] > 0]
    return float(sum(1 - asked[r] / has[r] for r in columns))


PROPOSE: Mapping[str, Propose] = {"karpenter": karpenter, "cluster-autoscaler": cluster_autoscaler}


def machines_for_pending(world: LoadedWorld, market: Market, policy: str) -> list[Machine]:
    """What is launched now; nothing if everybody finds a node on what is there or on its way."""
    with world.trial() as trial:
        for machine in market.on_the_way:
            join_as(trial, machine.objects, market.daemons_on(machine.option))
        trial.settle()
        waiting = [key for key in world.pending if not belongs_to_its_node(world.pod(key).pod)]
        if not waiting or not market.options:
            return []
        search = _Search(world, trial, market, frozenset(waiting))
        problem = read_problem(
            PlannedWorld(world, market.options, market.daemons, (), 0),
            keeps_worse=policy == "cluster-autoscaler",
            counts_preemptible=False,
            follows_weights=policy == "karpenter",
            objective="nodes" if any(one.offer.price is None for one in market.options) else "cost",
        )
        model = problem.model
        if not model.classes or not model.options:
            return []
        limited = model.with_limits(limits_of(model, market.options, PlanRequest()))
        for packing in PROPOSE[policy](limited, market.options):
            if found := search.accepted(search.options_of(limited, packing)):
                return found
        return search.single_machines(limited)


class _Search:
    def __init__(self, world: LoadedWorld, trial: WorldTrial, market: Market, waiting: frozenset[PodKey]) -> None:
        self._world = world
        self._trial = trial
        self._market = market
        self._waiting = waiting

    def options_of(self, model: PackingModel, packing: Packing) -> list[Option]:
        """A machine that is sold in several zones for the same price comes to the one with the fewest nodes."""
        labels = [self._world.node(name).metadata.labels or {} for name in self._world.nodes]
        in_zone = Counter(one.get(ZONE, "") for one in labels)
        found = []
        for option, n in enumerate(counts_of(model, packing)):
            bought = model.options[option]
            for _ in range(n):
                place = min(range(len(bought.members)), key=lambda k: (in_zone[bought.zones[k]], k))
                in_zone[bought.zones[place]] += 1
                found.append(self._market.options[bought.members[place]])
        return found

    def accepted(self, options: Sequence[Option]) -> list[Machine]:
        """Those of them that pods go to."""
        with self._trial.trial() as trial:
            machines = []
            names = set(self._market.taken)
            for option in options:
                number = next(n for n in count(1) if node_name(option, n) not in names)
                objects = tuple(node_from_offer(option, number))
                names.add(objects[0].name)
                join_as(trial, objects, self._market.daemons_on(option))
                machines.append(Machine(option, objects[0].name, objects))
            trial.settle()
            placed = self._world.placed
            pods = Counter(placed[key] for key in self._waiting if key in placed)
        return [
            Machine(machine.option, machine.name, machine.objects, pods[machine.name])
            for machine in machines
            if pods[machine.name]
        ]

    def single_machines(self, model: PackingModel) -> list[Machine]:
        """The first that a pod goes to, for the classes in turn, the cheapest first."""
        one_of_each = np.eye(len(model.options), dtype=np.int64).tolist()
        allowed = [is_within_limits(model, counts) for counts in one_of_each]
        order = [option for option in np.argsort(model.price, kind="stable").tolist() if allowed[option]]
        tried: set[int] = set()
        for c in range(len(model.classes)):
            for option in order:
                for member in model.options[option].members if model.fits[c, option] else ():
                    if member in tried:
                        continue
                    if len(tried) == MOST_TRIED:
                        return []
                    tried.add(member)
                    if found := self.accepted([self._market.options[member]]):
                        return found
        return []
