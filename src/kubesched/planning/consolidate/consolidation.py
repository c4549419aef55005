"""`kubesched.consolidate`: prepares the cluster, lets a policy search, and tells what it found.

`best` searches from what closing all surplus nodes at once gives, from what Karpenter would do and, with a catalogue,
from a small cluster bought again; it takes what saves most. So it never saves less than Karpenter's policy.

Steps that the scheduler has judged one after another are carried out together, as many nodes at a time as asked for and
as a pool's budget allows, if the scheduler finds a place for all their pods then, too (`rounds`). Beside the answer
stands what no policy could go below (`cheapest_possible`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from os import PathLike
from typing import Any

from kubesched.explanation.layout import counted
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import Document, LoadedCluster
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.k8s.model.times import Span, instant_s, span_s
from kubesched.planning.catalogue import NANOS, POOL, Catalogue, NodePrices
from kubesched.planning.catalogue_files import GivenCatalogue
from kubesched.planning.catalogue_files import catalogue as read_machines
from kubesched.planning.consolidate.in_every_run import (
    CarriedOut,
    HeldSteps,
    carried_out,
    held_in_all,
    needed_after_loss,
)
from kubesched.planning.consolidate.karpenter_pools import KarpenterPools, pools_of
from kubesched.planning.consolidate.least_nodes import LeastNodes
from kubesched.planning.consolidate.policies import (
    cluster_autoscaler,
    from_compaction,
    from_karpenter,
    from_rebuying,
    karpenter,
)
from kubesched.planning.consolidate.removal import NodeRemover, node_amounts
from kubesched.planning.consolidate.replacements import Replacements
from kubesched.planning.consolidate.report import ConsolidationReport, KeptNode, NodeBeforeAfter
from kubesched.planning.consolidate.rounds import in_rounds
from kubesched.planning.consolidate.rules import RULES, DrainFlags, EvictionRules, KeepReason, RestingBudgets, seen_at_s
from kubesched.planning.consolidate.state import ConsolidationState, ConsolidationStep, SearchLimits
from kubesched.planning.consolidate.timeline import played
from kubesched.planning.headroom import keep_free, told
from kubesched.planning.new_nodes import daemon_makers
from kubesched.planning.node_groups import ALL_NODES, NodeSelection, group_of, nodes_of
from kubesched.planning.node_pools import beside_cluster
from kubesched.planning.provenance import Provenance
from kubesched.planning.resting_workloads import PodOwners
from kubesched.planning.several_runs import ONE_RUN, Run, Runs, shuffled
from kubesched.planning.spare_one import spared_by
from kubesched.simulator.guesses import Guess
from kubesched.simulator.library import fresh_cluster
from kubesched.simulator.library import world as load_world
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.options import SimulationOptions, several
from kubesched.simulator.trial import LoadedWorld

Search = Callable[[ConsolidationState], None]
_SEARCHES: Mapping[str, tuple[Search, ...]] = {
    "best": (from_compaction, from_karpenter, from_rebuying),
    "karpenter": (karpenter,),
    "cluster-autoscaler": (cluster_autoscaler,),
}
POLICIES = tuple(_SEARCHES)


class ConsolidationError(KubeschedError, ValueError):
    """What is asked for makes no sense."""


@dataclass(frozen=True, slots=True)
class ConsolidationRequest:
    policies: tuple[str, ...] = ("best",)
    """The first is reported, the others are compared with it."""
    rules: str = "drain"
    flags: DrainFlags | None = None
    pool: str | None = None
    replaces: bool = True
    max_evictions: int | None = None
    max_steps: int | None = None
    min_saving_share: float = 0.0
    parallel: int = 1
    budget: str = ""
    """How many nodes of a pool may be disrupted at a time, `10%` or a number; empty: any."""
    allows_waiting: bool = False
    time_limit_s: float | None = None
    keep: tuple[str, ...] = ()
    """Room that stays free: `20x500m/1Gi`, also with `@zone`, or a file with CapacityBuffers; `n-1:zone` is as much as
    any one zone needs."""
    spot_to_spot: bool = False
    """With policy `karpenter`, its feature gate SpotToSpotConsolidation is on."""
    at_s: float | None = None
    """What time it is, for the schedules of NodePools and for ages; None: the latest time that the cluster tells."""
    selection: NodeSelection = ALL_NODES
    """The nodes that may go."""
    runs: Runs = ONE_RUN
    """With these seeds and orders of arrival the steps must hold."""

    def __post_init__(self) -> None:
        spared_by(self.keep)
        for name in self.policies:
            if name not in POLICIES:
                raise ConsolidationError(f'there is no policy "{name}": {", ".join(POLICIES)} are known')
        if self.rules not in RULES:
            raise ConsolidationError(f'there are no rules "{self.rules}": {", ".join(RULES)} are known')


@dataclass
class _Found:
    steps: list[ConsolidationStep]
    kept: list[KeptNode]
    stopped: str
    """As of the limits."""
    on_the_way: Mapping[str, int]

    @property
    def saving(self) -> int:
        return sum(step.saving for step in self.steps)


def consolidate(
    world: LoadedWorld | LoadedCluster | str | PathLike[str] | Mapping[str, Any] | Iterable[Any],
    catalogue: GivenCatalogue | None = None,
    *,
    policy: str | Sequence[str] = "best",
    rules: str = "drain",
    pool: str | None = None,
    replaces: bool = True,
    max_evictions: int | None = None,
    max_steps: int | None = None,
    min_saving: float = 0.0,
    parallel: int = 1,
    budget: str = "",
    allow_wait: bool = False,
    force: bool = False,
    delete_emptydir_data: bool = False,
    time_limit_s: float | None = None,
    nodes: str = "",
    exclude_nodes: str = "",
    keep: Sequence[str] = (),
    spot_to_spot: bool = False,
    at: str | float | datetime | None = None,
    seeds: int = 1,
    orders: int = 1,
    jobs: int = 1,
    timeline: bool = False,
    boot: Span = 60.0,
    config: Document = None,
    seed: int = 0,
    tie_break: str = "random",
    plugins: Iterable[type] = (),
) -> ConsolidationReport:
    """Which nodes can go, in which order, and what that saves.

    `world` is what `kubesched.world` gave, or what it takes; it is not changed. With a `catalogue`, cheaper machines
    may take the place of nodes, unless `replaces` is False. `policy` is `best`, `karpenter` or `cluster-autoscaler`; of
    several, the first is reported and the others are compared with it. `rules` say which pods keep their node: `drain`
    (kubectl's, with its `force` and `delete_emptydir_data`), `karpenter` or `cluster-autoscaler`.

    A step must save at least the share `min_saving` of all costs. `parallel` nodes are drained at a time, no more of a
    pool than `budget` allows. With `allow_wait`, a pod may wait until the drained node is gone. `spot_to_spot` is
    Karpenter's feature gate of that name. `at` says what time it is, for the schedules of NodePools and how old pods
    are; without it, it is the latest time that the cluster tells.

    `nodes` and `exclude_nodes` are label selectors of nodes that may, or may not, go. `keep` is room that stays free:
    `20x500m/1Gi`, also with `@zone`, or a file with CapacityBuffers; with `n-1:zone`, any one zone can still be lost.
    With several `seeds` and `orders` of arrival, the steps hold in each of these runs. `jobs` is a number of processes.
    With `timeline`, the steps are played in virtual time, with machines that are ready `boot` after their launch.
    """
    if not isinstance(world, LoadedWorld):
        world = load_world(world, config=config, seed=seed, tie_break=tie_break, plugins=plugins, class_cache=None)
    request = ConsolidationRequest(
        (policy,) if isinstance(policy, str) else tuple(policy),
        rules,
        DrainFlags(force, delete_emptydir_data),
        pool,
        replaces,
        max_evictions,
        max_steps,
        min_saving,
        parallel,
        budget,
        allow_wait,
        time_limit_s,
        several("keep", keep),
        spot_to_spot,
        None if at is None else instant_s(at),
        NodeSelection(nodes, exclude_nodes),
        Runs(seed, seeds, orders),
    )
    machines = None if catalogue is None else beside_cluster(read_machines(catalogue), world.node_makers)
    report = Consolidation(world, machines, request, jobs=jobs).report()
    if not timeline:
        return report
    asked, options = fresh_cluster(world), SimulationOptions(seed=world.seed, tie_break=world.tie_break)
    return replace(
        report,
        timeline=played(
            asked.given,
            report.steps,
            report.rounds,
            asked.config,
            options,
            registry=asked.registry,
            boot_s=span_s(boot),
            keep=request.keep,
        ),
    )


class Consolidation:
    def __init__(
        self,
        world: LoadedWorld,
        catalogue: Catalogue | None,
        request: ConsolidationRequest,
        *,
        is_interrupted: Callable[[], bool] = lambda: False,
        told: Callable[[str], None] = lambda _text: None,
        pools: KarpenterPools | None = None,
        least: LeastNodes | None = None,
        jobs: int = 1,
    ) -> None:
        """Once it `is_interrupted`, the best so far is the answer; `told` hears how it goes. `pools` are the NodePools,
        if they are not those of the cluster and the catalogue, and `least` is what pools must have, if it is not what
        the catalogue says. Runs and searches are spread over so many processes (`jobs`). Raises CatalogueError and
        NoSuchGroupError."""
        self._jobs = jobs
        self.spared, self._keep = spared_by(request.keep)
        self._others_by_order: dict[int, Consolidation] = {}
        self._is_interrupted = is_interrupted
        self._told = told
        self._world = world
        self._request = request
        self._catalogue = catalogue
        self._owners = PodOwners(world.workloads)
        nodes = [world.node(name) for name in world.nodes]
        if not nodes:
            raise ConsolidationError("there are no nodes")
        if request.pool is not None:
            nodes_of(nodes, "pool", request.pool)
        request.selection.of(nodes)
        self._prices = NodePrices(nodes, catalogue)
        self._knows_no_price = self._prices.are_counted and catalogue is not None
        can_replace = request.replaces and not self._prices.are_counted  # a machine's price is no number of nodes
        self._replacements = Replacements(catalogue if can_replace else None, daemon_makers(world))
        self._now_s = seen_at_s(world) if request.at_s is None else request.at_s
        if pools is None and request.rules == "karpenter":
            pools = pools_of(world, catalogue, self._now_s)
        self._pools = pools or KarpenterPools()
        self._least = LeastNodes.of(() if catalogue is None else catalogue.pools) if least is None else least
        started_s = time.monotonic()
        self._until_s = None if request.time_limit_s is None else started_s + request.time_limit_s

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, which are not interrupted, and tell nothing."""
        asked = self._world, self._catalogue, self._request
        return Consolidation, asked, {"_until_s": self._until_s, "_pools": self._pools, "_least": self._least}

    def of_order(self, order: int) -> Consolidation:
        """The same with pods that came in another order."""
        if not order:
            return self
        if order not in self._others_by_order:
            world = self._world.again(lambda objects: shuffled(objects, order))
            made = Consolidation(
                world,
                self._catalogue,
                self._request,
                is_interrupted=self._is_interrupted,
                told=self._told,
                pools=self._pools,
                least=self._least,
            )
            made._until_s = self._until_s
            self._others_by_order = {order: made}
        return self._others_by_order[order]

    def report(self) -> ConsolidationReport:
        request, runs = self._request, self._request.runs.all
        asked = self.provenance(request)
        with self.at_rest() as n_left_out:
            state = self.state()
            cost, n_nodes = state.cost(), len(self._world.nodes)
            whole = state.disruption(self._world.nodes)
            bound = cheapest_possible(state)
        by_run = self._searched(request.policies[0], runs)
        first = max(by_run, key=lambda one: one.saving)
        held = self._held(first.steps) if len(runs) > 1 or self.spared else HeldSteps(first.steps, {})
        first = replace(
            first, steps=held.steps, kept=sorted([*first.kept, *self._left_out(held)], key=lambda k: k.node)
        )
        others = dict(self._others(first))
        with self.at_rest():
            steps, rounds = in_rounds(self.state(), first.steps, request.parallel, request.budget)
            nodes = self._node_changes(steps)
        return ConsolidationReport(
            policy=request.policies[0],
            rules=request.rules,
            steps=tuple(steps),
            rounds=tuple(rounds),
            kept=tuple(first.kept),
            n_nodes=n_nodes,
            cost=cost,
            bound=min(bound, cost - first.saving),
            disruption=whole,
            currency=self._prices.currency,
            others=others,
            stopped=first.stopped or ("limit" if self._is_limited(first) else "fixed point"),
            assumptions=tuple(self.assumptions(n_left_out)),
            nodes=tuple(nodes),
            savings_by_run=tuple(one.saving for one in by_run) if len(runs) > 1 else (),
            asked=asked,
        )

    def _held(self, steps: Sequence[ConsolidationStep]) -> HeldSteps:
        runs = self._request.runs.all

        def carry_out(steps: Sequence[ConsolidationStep]) -> list[CarriedOut]:
            return list(spread_over(_carried_out_in, self, [(run, tuple(steps)) for run in runs], jobs=self._jobs))

        return held_in_all(steps, carry_out)

    def carried_out_in(self, run: Run, steps: Sequence[ConsolidationStep]) -> CarriedOut:
        with self.at_rest(run.seed):
            return carried_out(self.state(), steps, self.spared)

    def _left_out(self, held: HeldSteps) -> Iterator[KeptNode]:
        n_runs = len(self._request.runs)
        for name, n in held.left_out.items():
            if n_runs == 1:
                yield KeptNode(name, needed_after_loss(self.spared))
            else:
                yield KeptNode(name, KeepReason("DependsOnChance", f"its step holds in {n} of {n_runs} runs"))

    @property
    def runs(self) -> Runs:
        return self._request.runs

    def provenance(self, question: object) -> Provenance:
        return Provenance.of_world(self._world, question, self._catalogue, runs=self._request.runs)

    @contextmanager
    def at_rest(self, seed: int | None = None) -> Iterator[int]:
        """What waits is placed first; what finds no place is left out. Gives how many those are. Afterwards the world
        is as it was."""
        with self._world.trial() as trial:
            if seed not in (None, self._request.runs.seed):
                trial.reseed(seed)
            settled = trial.settle()
            for key in self._world.pending:
                trial.delete_pod(key)
            self._budgets = RestingBudgets(self._world, self._owners)
            self._kept_free = keep_free(trial, self._keep)
            yield len(settled.pending)

    def state(self, cost: int = 0) -> ConsolidationState:
        request = self._request
        return ConsolidationState(
            self._world,
            EvictionRules(
                request.rules,
                self._budgets,
                request.flags,
                self._now_s,
                self._owners,
                any(POOL in (node.metadata.labels or {}) for node in self._world.cluster.table.nodes),
                self._pools.budgets(self._world.cluster.table.nodes),
            ),
            NodeRemover(self._world, self._owners, self._budgets, allows_waiting=request.allows_waiting),
            self._prices,
            self._replacements,
            SearchLimits(
                request.max_evictions,
                int(cost * request.min_saving_share),
                request.max_steps,
                self._until_s,
                self._is_interrupted,
            ),
            request.pool,
            self._pools,
            request.spot_to_spot,
            request.selection,
            least=self._least,
        )

    def _searched(self, policy: str, runs: Sequence[Run]) -> list[_Found]:
        """The best of all searches, in each run."""
        n_searches = len(_SEARCHES[policy])
        asked = [(policy, number, run) for run in runs for number in range(n_searches)]
        found = list(spread_over(_searched_in, self, asked, jobs=self._jobs))
        return [_best(found[place : place + n_searches]) for place in range(0, len(found), n_searches)]

    def searched_in(self, run: Run, policy: str, number: int) -> _Found:
        searches = _SEARCHES[policy]
        with self.at_rest(run.seed):
            cost = self.state().cost()
            state = self.state(cost)
            state.told = partial(self._tell, policy, f"{number + 1} of {len(searches)}", cost)
            with self._world.trial():
                searches[number](state)
                return _Found(state.steps, self._kept(state), state.limits.stopped, state.on_the_way)

    def _others(self, first: _Found) -> Iterator[tuple[str, int]]:
        """What the other policies would save, as far as there was time to find out."""
        for policy in self._request.policies[1:]:
            if policy in first.on_the_way:
                yield policy, first.on_the_way[policy]
            else:
                (found,) = self._searched(policy, self._request.runs.all[:1])
                if not found.stopped:
                    yield policy, found.saving

    def _tell(self, policy: str, number: str, cost: int, state: ConsolidationState) -> None:
        n_gone, share = sum(len(step.delete) for step in state.steps), state.saving / (cost or 1)
        self._told(f"{policy}, search {number}: {counted(n_gone, 'node')} can go, {share:.1%} saved")

    def _kept(self, state: ConsolidationState) -> list[KeptNode]:
        gone = {name for step in state.steps for name in step.delete}
        there = [name for name in self._world.nodes if name in state.kept and name not in gone]
        return [KeptNode(name, state.kept[name][1]) for name in sorted(there)]

    def _node_changes(self, steps: Sequence[ConsolidationStep]) -> list[NodeBeforeAfter]:
        """By what each pod that moves asks for."""
        world = self._world
        before = {name: node_amounts(world, name) for name in world.nodes}
        launched = [one for step in steps for one in step.launch]
        after = {name: Counter(asked) for name, (_, asked) in before.items()}
        after |= {one.name: Counter(one.daemons) for one in launched}
        for move in (move for step in steps for move in step.moves):
            asked = {name: n for name, n in world.pod(move.pod).resources.requests.items() if name in (CPU, MEMORY)}
            after[move.source].subtract(asked)
            after[move.target].update(asked)
        gone = {name for step in steps for name in step.delete}
        found = []
        for name, (has, asked) in before.items():
            zone, pool = (group_of(world.node(name), by) or "" for by in ("zone", "pool"))
            fate = "goes" if name in gone else "stays"
            found.append(NodeBeforeAfter(name, zone, pool, fate, has, asked, {} if name in gone else after[name]))
        for one in launched:
            if one.name not in gone:
                where = one.option.offer.zone, one.option.pool.name
                found.append(NodeBeforeAfter(one.name, *where, "comes", one.amounts, {}, after[one.name]))
        return found

    def _is_limited(self, found: _Found) -> bool:
        request = self._request
        n_evictions = sum(step.evictions for step in found.steps)
        is_full = request.max_steps is not None and len(found.steps) >= request.max_steps
        return is_full or (
            request.max_evictions is not None
            and any(one.reason.identifier == "TooManyEvictions" for one in found.kept)
            and n_evictions <= request.max_evictions
        )

    def assumptions(self, n_left_out: int) -> Iterator[str]:
        request = self._request
        if len(request.runs) > 1:
            yield request.runs.told
        yield from request.selection.told("Only {} may go.")
        if self.spared:
            yield f"After the loss of any one {self.spared}, no more pods may be without a node than now."
        if n_left_out:
            yield f"{counted(n_left_out, 'pod')} found no node before, and stay out of it."
        if self._knows_no_price:
            yield Guess("The catalogue knows no node's instance type, so each counts as one, and none is replaced.")
        elif self._prices.are_counted:
            yield "No prices are known, so each node counts as one (--catalogue sets them)."
        elif self._prices.unknown:
            n = len(self._prices.unknown)
            count = "counts" if n == 1 else "count"
            yield Guess(f"{counted(n, 'node')} without a known price {count} as free of charge.")
        if self._pools.ignores_schedules:
            yield Guess("Nothing says what time it is, so budgets of NodePools with a schedule do not count.")
        yield from told(*self._kept_free)
        yield "Pods run again once they are placed; each eviction is tried in the order of the pods on the node."
        yield "A node that is drained is still a topology domain, and is deleted when it is empty."
        yield "Nobody else adds or removes nodes and pods meanwhile; autoscalers and webhooks are not simulated."
        yield from self._world.guesses


def _searched_in(consolidation: Consolidation, asked: tuple[str, int, Run]) -> _Found:
    policy, number, run = asked
    return consolidation.of_order(run.order).searched_in(run, policy, number)


def _carried_out_in(consolidation: Consolidation, asked: tuple[Run, tuple[ConsolidationStep, ...]]) -> CarriedOut:
    run, steps = asked
    return consolidation.of_order(run.order).carried_out_in(run, steps)


def _best(found: Sequence[_Found]) -> _Found:
    best = max(found, key=lambda one: (one.saving, -sum(step.evictions for step in one.steps)))
    on_the_way = {name: saving for one in found for name, saving in one.on_the_way.items()}
    return replace(best, stopped=found[-1].stopped, on_the_way=on_the_way)


_RESOURCES = (CPU, MEMORY)


def cheapest_possible(state: ConsolidationState) -> int:
    """An hour, in 10⁻⁹ of the currency; the best of a bound for each resource."""
    table = state.world.cluster.table
    movable = set(state.candidates())
    pinned = [name for name in state.world.nodes if name not in movable]
    fixed = sum(map(state.price, pinned))
    best = fixed
    for resource in _RESOURCES:
        has, asked = table.allocatable.get(resource), table.requested.get(resource)
        if has is None or asked is None:
            continue
        rows = [table.rows[name] for name in state.world.nodes]
        kept_rows = [table.rows[name] for name in pinned]
        needed = int(asked.data[rows].sum()) - int(has.data[kept_rows].sum())
        for name in movable:
            needed -= state.asked_by_daemons(name, resource)
        offers = [(state.price(name), int(has.data[table.rows[name]])) for name in movable]
        best = max(best, fixed + _fractional(offers, state.replacements.best_rate(resource), needed))
    return -(-best // NANOS) * NANOS if state.prices.are_counted else best


def _fractional(offers: list[tuple[int, int]], rate: float, needed: int) -> int:
    """The least that so much of a resource costs, from nodes of which a part may be taken and, at `rate`, machines."""
    cost = 0.0
    for price, amount in sorted((one for one in offers if one[1] > 0), key=lambda one: one[0] / one[1]):
        if needed <= 0 or price / amount >= rate:
            break
        taken = min(amount, needed)
        cost += price * taken / amount
        needed -= taken
    return int(cost + (max(0, needed) * rate if needed > 0 and rate != float("inf") else 0.0))
