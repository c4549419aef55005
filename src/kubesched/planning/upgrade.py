"""`kubesched upgrade`: whether a rolling upgrade of nodes finishes, what blocks it, what it costs in moves and time.

Plays the upgrade in virtual time, and others beside it to find a smaller surge or a better order.

Next: `rolling_upgrade` for the upgrade itself on the simulated cluster, `upgrade_report` for the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kubesched.framework.handle import Registry
from kubesched.k8s.loaded_cluster import Document, Objects
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.times import Span, span_s
from kubesched.k8s.workloads.pod_states import belongs_to_its_node
from kubesched.older.config import Emulation
from kubesched.planning.catalogue import Catalogue, MachineOffer, NodePrices, Option, Pool
from kubesched.planning.catalogue_files import GivenCatalogue
from kubesched.planning.catalogue_files import catalogue as read_machines
from kubesched.planning.headroom import headroom_sets, is_headroom
from kubesched.planning.new_nodes import node_from_offer
from kubesched.planning.node_groups import ALL_NODES, NodeSelection, group_of, nodes_of
from kubesched.planning.provenance import Provenance
from kubesched.planning.rolling_upgrade import (
    BEGINS_AT_S,
    FORCED,
    HOSTNAME,
    ORDERS,
    RollingUpgrade,
    UpgradeError,
    UpgradeStrategy,
    ordered,
    same_shape,
    strategy_of,
)
from kubesched.planning.several_runs import Run, Runs, in_order
from kubesched.planning.upgrade_report import KeptRoom, UpgradeOutcome, UpgradeReport, UpgradeRun
from kubesched.planning.waits import is_of_its_node, waited_s, waiting_over_time
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.guesses import extender_guess
from kubesched.simulator.ledger import PodRecord
from kubesched.simulator.library import fresh_cluster
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.options import SimulationOptions, several
from kubesched.simulator.run import run_simulation
from kubesched.simulator.trial import LoadedWorld
from kubesched.simulator.virtual.cluster import VirtualCluster

MOST_SURGE = 10
"""Larger surges are not tried."""
PLAYED_FOR_S = 14 * 24 * 3600.0
"""How long an upgrade is played where workloads would never end by themselves."""


def upgrade(
    objects: LoadedWorld | Objects,
    *,
    pool: str | None = None,
    preset: str | None = None,
    max_surge: int | str | None = None,
    max_unavailable: int | str | None = None,
    drain_timeout: Span | None = None,
    on_timeout: str | None = None,
    boot: Span | None = None,
    soak: Span | None = None,
    order: str | None = None,
    to_shape: str | None = None,
    catalogue: GivenCatalogue | None = None,
    find_surge: bool = False,
    find_order: bool = False,
    nodes: str = "",
    exclude_nodes: str = "",
    keep: Sequence[str] = (),
    seeds: int = 1,
    orders: int = 1,
    jobs: int = 1,
    config: Document = None,
    plugins: Iterable[type] = (),
    tie_break: str = "random",
    seed: int = 0,
) -> UpgradeReport:
    """Whether a rolling upgrade of the nodes of a `pool` (without one, of all) finishes, what blocks it, how often pods
    are moved and how long they wait.

    `preset` is gke, aks, eks, capi, karpenter-drift or reboot; what is given besides counts more. New nodes are like
    the old ones, or of the `catalogue`'s shape `to_shape`. With `find_surge`, the smallest surge that finishes is
    looked for; with `find_order`, the order with the fewest moves. `nodes` and `exclude_nodes` are label selectors of
    nodes that are, or are not, upgraded. `keep` is room that is to be there in the end, too: `20x500m/1Gi`, also with
    `@zone`, or a file with CapacityBuffers. With several `seeds` and `orders` of arrival, the upgrade is played in each
    of these runs; it finishes if it does in all.
    """
    strategy = strategy_of(
        preset,
        max_surge=max_surge,
        max_unavailable=max_unavailable,
        drain_timeout_s=None if drain_timeout is None else span_s(drain_timeout),
        on_timeout=on_timeout,
        boot_s=None if boot is None else span_s(boot),
        soak_s=None if soak is None else span_s(soak),
        order=order,
    )
    asked = fresh_cluster(objects, config, plugins)
    options = SimulationOptions(seed=seed, tie_break=tie_break)
    machines = None if catalogue is None else read_machines(catalogue)
    player = UpgradePlayer(
        asked.given,
        asked.config,
        options,
        asked.registry,
        None,
        machines,
        to_shape,
        pool,
        jobs=jobs,
        selection=NodeSelection(nodes, exclude_nodes),
        keep=several("keep", keep),
        runs=Runs(seed, seeds, orders),
    )
    return player.report(strategy, preset, find_surge=find_surge, find_order=find_order)


def _unheard(n_done: int, n_nodes: int) -> None:
    """Nobody looks."""


def _never() -> str:
    return ""


@dataclass(frozen=True)
class UpgradePlayer:
    """Plays upgrades of one cluster, each from the same beginning."""

    given: SimulationInput
    config: KubeSchedulerConfiguration
    options: SimulationOptions
    registry: Registry | None = None
    emulation: Emulation | None = None
    catalogue: Catalogue | None = None
    to_shape: str | None = None
    pool: str | None = None
    progress: Callable[[int, int], None] = _unheard
    """Hears how many nodes are upgraded, of how many."""
    stopped: Callable[[], str] = _never
    """Once it says why (`time`, `interrupted`), what was played so far is the report."""
    jobs: int = 1
    """Runs, other orders and surges in so many processes; the report is the same."""
    selection: NodeSelection = ALL_NODES
    """The nodes to upgrade."""
    keep: Sequence[str] = ()
    """Room that is to be there in the end, too."""
    runs: Runs | None = None
    """With which seeds and orders of arrival; None: with the seed of the options."""

    def report(
        self,
        strategy: UpgradeStrategy,
        preset: str | None = None,
        *,
        find_surge: bool = False,
        find_order: bool = False,
    ) -> UpgradeReport:
        """Raises UpgradeError, CatalogueError and NoSuchGroupError."""
        nodes = self._nodes()
        if find_surge and strategy.reboots:
            raise UpgradeError("no surge can be looked for: with preset reboot the same nodes come back, and no others")
        if self.to_shape is not None:
            if self.catalogue is None:
                raise UpgradeError("a shape is of a catalogue, and none was given")
            self.catalogue[self.to_shape]
        prices = NodePrices(nodes, self.catalogue)
        (outcome,) = self._all_played([strategy])
        others = [replace(strategy, order=one) for one in ORDERS if one != strategy.order] if find_order else []
        orders = [one for one in self._all_played(others) if not one.is_stopped]
        surges = list(self._surges(nodes, strategy)) if find_surge else []
        rate = sum(map(prices.of, nodes)) // len(nodes)
        return UpgradeReport(
            pool=self.pool,
            preset=preset,
            outcome=outcome,
            orders=tuple(orders),
            surges=tuple(surges),
            extra_cost=None if prices.are_counted else round(rate * outcome.extra_node_hours),
            currency=prices.currency,
            assumptions=tuple(self._assumptions(strategy)),
            stopped=self.stopped(),
            asked=Provenance(
                self.given.objects,
                self.config,
                self.catalogue,
                (strategy, self.pool, self.to_shape, find_surge, find_order, self.options, self.selection, self.keep),
                runs=self.asked_runs,
            ),
        )

    def _nodes(self) -> list[Node]:
        nodes = [item for item in self.given.objects if isinstance(item, Node)]
        if self.pool is not None:
            nodes = nodes_of(nodes, "pool", self.pool)
        nodes = self.selection.of(nodes)
        if not nodes:
            raise UpgradeError("there are no nodes")
        return nodes

    def _surges(self, nodes: Sequence[Node], strategy: UpgradeStrategy) -> Iterator[UpgradeOutcome]:
        """From 0 on, until one finishes."""
        least_lacking = [strategy.max_unavailable or 1, *[strategy.max_unavailable] * MOST_SURGE]
        tries = [
            replace(strategy, max_surge=surge, max_unavailable=least_lacking[surge])
            for surge in range(min(MOST_SURGE, len(nodes)) + 1)
        ]
        for outcome in self._all_played(tries):
            if outcome.is_stopped:
                return
            yield outcome
            if outcome.finishes:
                return

    @property
    def asked_runs(self) -> Runs:
        return self.runs or Runs(self.options.seed)

    def _all_played(self, strategies: Sequence[UpgradeStrategy]) -> Iterator[UpgradeOutcome]:
        """One after another as they are asked for, each in all runs; in several processes, as many at a time."""
        runs = self.asked_runs.all
        if self.jobs == 1 or len(strategies) * len(runs) == 1:
            yield from (_of_all_runs([self.played(one, run) for run in runs]) for one in strategies)
            return
        unheard = replace(self, progress=_unheard, stopped=_never)
        at_a_time = max(1, self.jobs // len(runs))
        for begin in range(0, len(strategies), at_a_time):
            if begin and self.stopped():
                return
            asked = [(one, run) for one in strategies[begin : begin + at_a_time] for run in runs]
            found = list(spread_over(_play, unheard, asked, jobs=self.jobs))
            yield from (_of_all_runs(found[place : place + len(runs)]) for place in range(0, len(found), len(runs)))

    def _begun(self, run: Run) -> tuple[KubeObject, ...]:
        """With sets whose pods stand for the room to keep: controllers make them anew, as they do others."""
        return (*in_order(self.given, run.order).objects, *headroom_sets(self.keep, self.given.objects))

    def played(self, strategy: UpgradeStrategy, run: Run) -> UpgradeOutcome:
        nodes = self._nodes()
        n_pods = Counter(
            item.spec.node_name
            for item in self.given.objects
            if isinstance(item, Pod) and not belongs_to_its_node(item)
        )
        names = ordered(nodes, strategy.order, n_pods)
        strategy.numbers(len(names))
        started: list[RollingUpgrade] = []
        shape = self._successor

        def begin(cluster: VirtualCluster) -> None:
            rolling = RollingUpgrade(cluster, names, strategy, shape)
            rolling.remember()
            self.progress(0, len(names))
            started.append(rolling)

        def look(cluster: VirtualCluster) -> None:
            self.progress(len(started[0].done), len(names))
            cluster.is_stopped = bool(self.stopped())

        until_s = None if self.given.ends_by_itself else BEGINS_AT_S + PLAYED_FOR_S
        cluster = run_simulation(
            SimulationInput(self._begun(run), ()),
            self.config,
            replace(self.options, seed=run.seed, until_s=self.options.until_s or until_s),
            registry=self.registry,
            emulation=self.emulation,
            before=begin,
            progress=look,
        )
        if not cluster.is_stopped:
            started[0].end()
        return _outcome(cluster, started[0], names)

    def _successor(self, old: Node) -> Node:
        if self.to_shape is None:
            return same_shape(old)
        assert self.catalogue is not None
        shape = self.catalogue[self.to_shape]
        zone = group_of(old, "zone") or ""
        offers = [offer for offer in shape.offers if offer.zone == zone] or list(shape.offers) or [MachineOffer()]
        labels = dict(old.metadata.labels or {})
        made = node_from_offer(Option(shape, offers[0], Pool(labels={})), 1)[0]
        assert isinstance(made, Node)
        like = same_shape(old)
        kept = {**labels, **(made.metadata.labels or {}), HOSTNAME: like.name}
        return Node(_relabelled(like, kept).metadata, like.spec, made.status)

    def _assumptions(self, strategy: UpgradeStrategy) -> Iterator[str]:
        if len(self.asked_runs) > 1:
            yield self.asked_runs.told
        yield from self.selection.told("Only {} are upgraded.")
        if self.keep:
            yield "Room to keep stands for pods of the lowest priority: it moves as they do, and counts in the end."
        if self.given.steps:
            yield "The scenario in the files is not played."
        yield "Pods end when their grace period is over, and run as soon as they are placed."
        if not strategy.reboots and self.to_shape is None:
            yield "New nodes are like those they replace, in the same zone."
        yield "Nobody else adds or removes nodes meanwhile; autoscalers and webhooks are not simulated."
        yield from (*self.given.guesses, *extender_guess(self.config))


def _play(player: UpgradePlayer, asked: tuple[UpgradeStrategy, Run]) -> UpgradeOutcome:
    return player.played(*asked)


def _of_all_runs(found: Sequence[UpgradeOutcome]) -> UpgradeOutcome:
    """The worst of them: one that does not finish, or the longest; with what came of the others."""
    if len(found) == 1:
        return found[0]
    worst = min(found, key=lambda one: (not one.is_stopped, one.finishes, -(one.duration_s or 0.0), -one.moves))
    return replace(worst, by_run=tuple(UpgradeRun(one.finishes, one.duration_s, one.moves) for one in found))


def _relabelled(node: Node, labels: dict[str, str]) -> Node:
    from msgspec.structs import replace as changed

    return changed(node, metadata=changed(node.metadata, labels=labels))


def _outcome(cluster: VirtualCluster, rolling: RollingUpgrade, names: Sequence[str]) -> UpgradeOutcome:
    everybody = list(cluster.ledger.pods.values())
    records = [one for one in everybody if not is_headroom(one.key)]
    there = set(names)
    drained = [one for one in records if one.cause.startswith("drained from ") or one.cause == FORCED]
    n_pods = sum(1 for one in records if _was_on(one, there) and not is_of_its_node(one))
    later = [one for one in records if one.created_s > BEGINS_AT_S and not is_of_its_node(one)]
    end_s = cluster.clock.elapsed_s
    waiting = [one for one in later if one.scheduled_s is None and not one.is_gone]
    finished_s = rolling.finished_s
    pending = [(at_s - BEGINS_AT_S, n) for at_s, n in waiting_over_time(later, end_s)]
    return UpgradeOutcome(
        strategy=rolling.strategy,
        n_nodes=len(names),
        n_upgraded=len(rolling.done),
        skipped=tuple(rolling.skipped),
        stuck=tuple(rolling.stuck),
        duration_s=None if finished_s is None else round(finished_s - BEGINS_AT_S, 3),
        n_pods=n_pods,
        moves=len(drained),
        forced=sum(one.cause == FORCED for one in drained),
        most_pending=max((n for _, n in pending), default=0),
        longest_wait_s=round(max((waited_s(one, end_s) for one in later), default=0.0), 3),
        waiting=tuple(sorted(one.key for one in waiting)),
        peak_nodes=rolling.peak_nodes,
        extra_node_hours=round(rolling.extra_node_s / 3600, 6),
        timeline=_timeline(rolling.levels, pending),
        stopped_s=round(max(0.0, end_s - BEGINS_AT_S), 3) if cluster.is_stopped else None,
        room=_room([one for one in everybody if is_headroom(one.key)]) if len(records) < len(everybody) else None,
    )


def _room(records: Sequence[PodRecord]) -> KeptRoom:
    """How many of the pods that stand for it had a node before, at the worst moment, and in the end."""
    changes: Counter[float] = Counter()
    for one in records:
        placed_s = 0.0 if one.was_there else one.scheduled_s
        if placed_s is not None:
            changes[max(placed_s, BEGINS_AT_S)] += 1
            if one.ended_s is not None or one.is_gone:
                changes[max(one.ended_s or 0.0, BEGINS_AT_S)] -= 1
    n_there = changes.pop(BEGINS_AT_S, 0)
    levels = [n_there]
    for at_s in sorted(changes):
        levels.append(levels[-1] + changes[at_s])
    return KeptRoom(n_there, min(levels), levels[-1])


def _was_on(record: PodRecord, names: set[str]) -> bool:
    placed_s = 0.0 if record.was_there else record.scheduled_s
    return record.node in names and placed_s is not None and placed_s <= BEGINS_AT_S


def _timeline(
    levels: Sequence[tuple[float, int, int]], pending: Sequence[tuple[float, int]]
) -> tuple[tuple[float, int, int, int], ...]:
    """One row for each instant at which a number changes."""
    upgraded = {at_s: numbers for at_s, *numbers in levels}
    waiting = dict(pending)
    rows: list[tuple[float, int, int, int]] = []
    numbers, n_waiting = [0, levels[0][2] if levels else 0], 0
    for at_s in sorted({*upgraded, *waiting}):
        numbers, n_waiting = upgraded.get(at_s, numbers), waiting.get(at_s, n_waiting)
        rows.append((round(at_s, 3), numbers[0], numbers[1], n_waiting))
    return tuple(rows)
