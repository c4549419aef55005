"""The verdict of the scheduler on a set of nodes: it is given them, and places every pod, or does not.

Nodes are there before the pods, daemons come first, then the pods in the order of the queue; with `arrival="later"`
the pods wait and the nodes join one after another, in the order of the catalogue or in one that is given; with
`rest-later` so many of them are there before. A yes is a yes for every seed and order that was asked for, and,
if the plan is to survive failures, after every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from msgspec.structs import replace

from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import PodKey, controller_of
from kubesched.k8s.model.quantity import from_milli, parse
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.new_nodes import daemon_on, node_from_offer, sample_node
from kubesched.planning.plan.request import LATER, PlannedWorld
from kubesched.planning.spare_one import homeless, losses
from kubesched.simulator.many_runs import StayingWorkers
from kubesched.simulator.settling import Settled
from kubesched.simulator.trial import LoadedWorld, WorldTrial

Mix = tuple[int, ...]
"""How many nodes of each of the catalogue's options."""


@dataclass(frozen=True, slots=True)
class Joining:
    """How the nodes of a mix come."""

    options: tuple[int, ...]
    """Of each node, in the order in which they join."""
    n_first: int
    """How many are there before the pods."""


@dataclass(frozen=True, slots=True)
class MixVerdict:
    mix: Mix
    is_yes: bool
    placed: dict[PodKey, str]
    """Where pods went that had no node before."""
    pending: dict[PodKey, str]
    """Who found no node, and kube-scheduler's message."""
    nodes: dict[str, int]
    """The new nodes by name, each with its option, in the order in which they join."""
    n_first: int
    """How many of the nodes are there before the pods."""
    failure: str = ""
    """The failed zone or node after which it is a no; empty if it is one from the beginning."""
    seed: int = 0
    order: int = 0


class MixJudge:
    """Asks the scheduler, and remembers what it said."""

    def __init__(
        self,
        planned: PlannedWorld,
        *,
        excused: Iterable[PodKey] = (),
        seeds: Sequence[int] = (0,),
        orders: int = 1,
        survive: str = "",
        priority_at_least: int | None = None,
        arrival: str = "together",
        headroom_percent: int = 0,
        ghosts: Iterable[int] = (),
        jobs: int = 1,
    ) -> None:
        """`ghosts` are options of which a cordoned node stands by: empty, and a domain of every spread constraint. In
        `jobs` processes, other seeds and orders are tried at a time; what is said is the same."""
        excused, ghosts = tuple(excused), tuple(ghosts)
        self._asked = {
            "excused": excused,
            "seeds": tuple(seeds),
            "orders": orders,
            "survive": survive,
            "priority_at_least": priority_at_least,
            "arrival": arrival,
            "headroom_percent": headroom_percent,
            "ghosts": ghosts,
        }
        self._workers = StayingWorkers(_tried_elsewhere, self, jobs) if jobs > 1 else None
        self._planned = planned
        self._world = planned.world
        self._waiting = frozenset(planned.world.pending)
        self._excused = frozenset(excused)
        self._waves = _waves(planned.world)
        self._seeds = tuple(seeds)
        self.circumstances = [(seed, order) for seed in seeds for order in range(max(1, orders))]
        """Seeds and orders of arrival under which a mix must do."""
        self._asked_in_turn = list(self.circumstances)
        self._survive = survive
        self._priority_at_least = priority_at_least
        self._arrival = arrival
        self._headroom_percent = headroom_percent
        self._ghosts = tuple(ghosts)
        self._known: dict[Mix, MixVerdict] = {}
        self._joining: dict[Mix, Joining] = {}
        self.n_trials = 0
        self.watch: Callable[[], None] = lambda: None
        """Called before every trial; what it raises ends the search."""

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, where it remembers nothing."""
        return _judge_of, (self._planned, self._asked)

    def close(self) -> None:
        """The other processes end."""
        if self._workers is not None:
            self._workers.close()

    def verdict(self, mix: Mix) -> MixVerdict:
        known = self._known.get(mix)
        if known is None:
            known = self._known[mix] = self._ask(mix)
        return known

    def let_join(self, mix: Mix, joining: Joining) -> None:
        """From now on the nodes of this mix come like this."""
        if self._joining.get(mix) != joining:
            self._joining[mix] = joining
            self._known.pop(mix, None)

    def has_order(self, mix: Mix) -> bool:
        """Whether the order in which the nodes join was chosen."""
        return mix in self._joining

    def queue(self, order: int) -> list[PodKey]:
        """The pods that wait, as the scheduler takes them from its queue if they come in this order."""
        found = self.arrivals(order)
        return sorted(found, key=lambda key: -self._world.pod(key).priority)

    def _joins(self, mix: Mix, arrival: str) -> Joining:
        if arrival == self._arrival and mix in self._joining:
            return self._joining[mix]
        options = tuple(option for option, n in enumerate(mix) for _ in range(n))
        return Joining(options, 0 if arrival == LATER else len(options))

    @property
    def yes_verdicts(self) -> list[MixVerdict]:
        return [verdict for verdict in self._known.values() if verdict.is_yes]

    @property
    def no_verdicts(self) -> list[MixVerdict]:
        return [verdict for verdict in self._known.values() if not verdict.is_yes]

    def quietly(self, mix: Mix, arrival: str = "", seed: int | None = None, order: int = 0) -> MixVerdict:
        """What would come of a mix under other circumstances, whatever the time."""
        watch, self.watch = self.watch, lambda: None
        try:
            return self.try_once(mix, arrival or self._arrival, seed, order)
        finally:
            self.watch = watch

    def arrivals(self, order: int) -> list[PodKey]:
        """The pods that wait, as they come: in the order of the files, or in another one that the number stands for."""
        arrived = list(self._world.pending)
        if order:
            Random(order).shuffle(arrived)
        return sorted(arrived, key=lambda key: self._waves.get(key, 0))

    def _ask(self, mix: Mix) -> MixVerdict:
        """The circumstances that refused a mix last are the first to be asked about the next one."""
        found: dict[tuple[int, int], MixVerdict] = {}
        in_turn = list(self._asked_in_turn)
        for circumstances, verdict in zip(in_turn, self._tried(mix, in_turn), strict=True):
            found[circumstances] = verdict
            if not verdict.is_yes:
                self._asked_in_turn.remove(circumstances)
                self._asked_in_turn.insert(0, circumstances)
                return verdict
        return found[self._seeds[0], 0]

    def _tried(self, mix: Mix, circumstances: Sequence[tuple[int, int]]) -> Iterator[MixVerdict]:
        """The first here, which mostly says no if any does; the others in other processes, if there are some."""
        for place, (seed, order) in enumerate(circumstances):
            if place and self._workers is not None:
                break
            yield self.try_once(mix, self._arrival, seed, order)
        else:
            return
        joining = self._joins(mix, self._arrival)
        for verdict in self._workers.each([(mix, joining, seed, order) for seed, order in circumstances[1:]]):
            self.watch()
            self.n_trials += 1
            yield verdict

    def try_once(self, mix: Mix, arrival: str, seed: int | None = None, order: int = 0) -> MixVerdict:
        self.watch()
        self.n_trials += 1
        return self.try_joining(mix, self._joins(mix, arrival), self._seeds[0] if seed is None else seed, order)

    def try_joining(self, mix: Mix, joining: Joining, seed: int, order: int) -> MixVerdict:
        with self._world.trial() as trial:
            trial.reseed(seed)
            trial.reorder_pending(self.arrivals(order))
            for number, option in enumerate(self._ghosts):
                trial.cordon(trial.add_node(sample_node(self._planned.options[option], number)[0]))
            nodes: dict[str, int] = {}
            preempted: list[PodKey] = []
            n_first = joining.n_first
            for option, number in self._planned.numbered(joining.options):
                nodes[self._add_node(trial, option, number)] = option
                if len(nodes) >= n_first:
                    waiting = self._world.pending
                    trial.reorder_pending(sorted(waiting, key=lambda key: key in self._waiting))
                    if len(nodes) < len(joining.options):
                        preempted += trial.settle().preempted
            last = trial.settle()
            pending = self._left(last, (*preempted, *last.preempted))
            placed = {key: info.spec.node_name for key, info in self._world.cluster.placed.items()}
            landed = {key: name for key, name in placed.items() if key in self._waiting or name in nodes}
            if pending or not self._survive:
                return MixVerdict(mix, not pending, landed, pending, nodes, n_first, "", seed, order)
            failure, pending = self._after_failures(trial)
            return MixVerdict(mix, not failure, landed, pending, nodes, n_first, failure, seed, order)

    def _add_node(self, trial: WorldTrial, option: int, number: int) -> str:
        node, *others = node_from_offer(self._planned.options[option], number)
        assert isinstance(node, Node)
        name = trial.add_node(with_headroom(node, self._headroom_percent))
        for item in others:
            trial.put_object(item)
        for n, daemon in enumerate(self._planned.daemons[option]):
            trial.add_admitted(daemon_on(daemon, name, f"{option}-{number}-{n}"))
        return name

    def _left(self, settled: Settled, preempted: Iterable[PodKey]) -> dict[PodKey, str]:
        found = homeless(self._world, settled, preempted)
        return {key: text for key, text in found.items() if key not in self._excused}

    def _after_failures(self, trial: WorldTrial) -> tuple[str, dict[PodKey, str]]:
        """The first failure that leaves pods without a node, and these."""

        def left_of(settled: Settled) -> dict[PodKey, str]:
            return {key: text for key, text in self._left(settled, settled.preempted).items() if self._counts(key)}

        found = losses(trial, self._survive, left_of, self.watch)
        return next(((one.name, one.left) for one in found if one.left), ("", {}))

    def _counts(self, key: PodKey) -> bool:
        info = self._world.cluster.find_pod(key)
        least = self._priority_at_least
        return least is None or info is None or info.priority >= least


def _judge_of(planned: PlannedWorld, asked: Mapping[str, Any]) -> MixJudge:
    return MixJudge(planned, **asked)


def _tried_elsewhere(judge: MixJudge, case: tuple[Mix, Joining, int, int]) -> MixVerdict:
    return judge.try_joining(*case)


def _waves(world: LoadedWorld) -> dict[PodKey, int]:
    """Pods of stateful sets that start one after another come after all others, each after the one before it."""
    found: dict[PodKey, int] = {}
    for key, info in world.cluster.pending.items():
        owner = controller_of(info.pod.metadata)
        if owner is None or owner.kind != "StatefulSet":
            continue
        stateful_set = world.cluster.objects.stateful_sets.get(f"{info.namespace}/{owner.name}")
        ordinal = info.name.rpartition("-")[2]
        if stateful_set is not None and ordinal.isdigit():
            is_parallel = stateful_set.spec.pod_management_policy == "Parallel"
            found[key] = 0 if is_parallel else int(ordinal)
    return found


def with_headroom(node: Node, percent: int) -> Node:
    """The node with so much less cpu and memory to give to pods."""
    if not percent:
        return node
    amounts = dict(node.status.allocatable or {})
    for name in (CPU, MEMORY):
        if name in amounts:
            given = parse(amounts[name])
            amounts[name] = (
                str(from_milli(given.milli_value * (100 - percent) // 100))
                if name == CPU
                else str(given.value * (100 - percent) // 100)
            )
    return replace(node, status=replace(node.status, allocatable=amounts))
