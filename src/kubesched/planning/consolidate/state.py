"""The cluster as it is consolidated, step by step: costs, limits, what was tried, and what kept nodes.

Everything happens in a trial around the search, so that the world is as before when it ends.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import CPU, MEMORY, pod_resources
from kubesched.k8s.workloads.pod_states import belongs_to_its_node
from kubesched.planning.catalogue import CAPACITY_TYPE, INSTANCE_TYPE, POOL, ZONE, NodePrices, Option
from kubesched.planning.consolidate.karpenter_pools import BALANCED_SCORE, KarpenterPools, PoolBudgets
from kubesched.planning.consolidate.least_nodes import LeastNodes
from kubesched.planning.consolidate.removal import LaunchedNode, NodeRemover, PodMove, RemovalResult
from kubesched.planning.consolidate.replacements import SPOT, Replacements
from kubesched.planning.consolidate.rules import EvictionRules, KeepReason, eviction_cost, has_to_leave
from kubesched.planning.headroom import is_headroom
from kubesched.planning.node_groups import ALL_NODES, NodeSelection, group_of
from kubesched.simulator.trial import LoadedWorld, WorldTrial

NO_PLACE = "NoPlaceToMovePods"


@dataclass(frozen=True, slots=True)
class ConsolidationStep:
    delete: tuple[str, ...]
    launch: tuple[LaunchedNode, ...]
    cordon: tuple[str, ...]
    """Nodes to cordon before, because their turn comes later and nobody should move there."""
    moves: tuple[PodMove, ...]
    waves: int
    waited: tuple[PodKey, ...]
    lost: tuple[PodKey, ...]
    saving: int
    """An hour, in 10⁻⁹ of the currency."""
    disruption: float
    """Karpenter's measure: 1 for each node, and for each pod by its deletion cost and priority."""

    @property
    def evictions(self) -> int:
        return len(self.moves) + len(self.lost)


@dataclass(frozen=True, slots=True)
class SearchLimits:
    max_evictions: int | None = None
    min_saving: int = 0
    """A step that saves less is not worth it."""
    max_steps: int | None = None
    until_s: float | None = None
    """On the clock of `time.monotonic`."""
    is_interrupted: Callable[[], bool] = lambda: False

    @property
    def stopped(self) -> str:
        """`time`, `interrupted`, or nothing."""
        if self.is_interrupted():
            return "interrupted"
        return "time" if self.until_s is not None and time.monotonic() > self.until_s else ""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A node as it was judged."""

    node: Node
    pods: list[PodInfo]
    reason: KeepReason | None
    """The reasons against draining it, whatever room there is elsewhere."""
    disruption: float
    worth: float
    """What going saves for each unit of disruption."""


@dataclass
class ConsolidationState:
    world: LoadedWorld
    rules: EvictionRules
    remover: NodeRemover
    prices: NodePrices
    replacements: Replacements
    limits: SearchLimits
    pool: str | None = None
    karpenter: KarpenterPools = field(default_factory=KarpenterPools)
    """What NodePools allow, where they count."""
    replaces_spot_by_spot: bool = False
    """As Karpenter does with its feature gate SpotToSpotConsolidation."""
    selection: NodeSelection = ALL_NODES
    """The nodes that may go."""
    least: LeastNodes = field(default_factory=LeastNodes)
    told: Callable[[ConsolidationState], None] = lambda _state: None
    """Hears of each step."""
    steps: list[ConsolidationStep] = field(default_factory=list)
    kept: dict[str, tuple[int, KeepReason]] = field(default_factory=dict)
    """Why a node could not go, and after how many steps that was found."""
    on_the_way: dict[str, int] = field(default_factory=dict)
    """What another policy saves, where the search came by there."""
    _judged: dict[str, _Judged] = field(default_factory=dict)

    # -- what there is -------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Node:
        return self.world.node(name)

    def price(self, name: str) -> int:
        return self.prices.of(self.node(name))

    def cost(self) -> int:
        return sum(self.prices.of(self.node(name)) for name in self.world.nodes)

    @property
    def saving(self) -> int:
        return sum(step.saving for step in self.steps)

    @property
    def evictions(self) -> int:
        return sum(step.evictions for step in self.steps)

    def pods(self, name: str) -> list[PodInfo]:
        """Those that would have to move."""
        return [info for info in self.world.pods_on(name) if has_to_leave(info)]

    def is_empty(self, name: str) -> bool:
        """As Karpenter has it: pods whose eviction costs nothing do not count."""
        return self._judge(name).disruption <= 1

    def disruption(self, names: Iterable[str]) -> float:
        return sum(1.0 + sum(eviction_cost(info) for info in self.pods(name)) for name in names)

    def utilisation(self, name: str) -> float:
        """The larger share of cpu and memory that is asked for."""
        table = self.world.cluster.table
        row = table.rows[name]
        shares = []
        for resource in (CPU, MEMORY):
            has, asked = table.allocatable.get(resource), table.requested.get(resource)
            amount = 0 if has is None else int(has.data[row])
            shares.append(0.0 if asked is None or not amount else int(asked.data[row]) / amount)
        return max(shares)

    def asked_by_daemons(self, name: str, resource: str) -> int:
        """What goes with the node."""
        infos = [info for info in self.world.pods_on(name) if belongs_to_its_node(info.pod)]
        return sum(pod_resources(info.pod).requests.get(resource, 0) for info in infos)

    def candidates(self) -> list[str]:
        """The nodes that may be drained, in the order of what that is worth."""
        worth: dict[str, float] = {}
        blocked = {} if self.replacements else self.least.blocked(self._there())  # else one may be exchanged
        for name in filter(self._is_in_scope, self.world.nodes):
            judged = self._judge(name)
            reason = judged.reason or blocked.get(name)
            if reason is None:
                worth[name] = judged.worth
            else:
                self.kept[name] = len(self.steps), reason
        return sorted(worth, key=lambda name: (-worth[name], name))

    def _judge(self, name: str) -> _Judged:
        """Anew only if the node or its pods have changed."""
        node, pods = self.node(name), self.world.pods_on(name)
        known = self._judged.get(name)
        if known is None or known.node is not node or known.pods != pods:
            reason, disruption = self.rules.what_keeps(node, pods), self.disruption([name])
            known = self._judged[name] = _Judged(node, pods, reason, disruption, self.prices.of(node) / disruption)
        return known

    def _is_in_scope(self, name: str) -> bool:
        if self.pool is not None and group_of(self.node(name), "pool") != self.pool:
            self.kept[name] = len(self.steps), KeepReason("NotInPool", f"it is not in pool {self.pool}")
            return False
        if not self.selection.has(self.node(name)):
            self.kept[name] = len(self.steps), KeepReason("NotSelected", f"it is not among the nodes {self.selection}")
            return False
        return True

    def within_budgets(self, names: Sequence[str], reason: str) -> list[str]:
        """Those that budgets of NodePools let go together, in their order."""
        return self.budgets().within(map(self.node, names), reason) if self.karpenter else list(names)

    def budgets(self) -> PoolBudgets:
        """Of NodePools, with the nodes that are there now."""
        return self.karpenter.budgets(map(self.node, self.world.nodes if self.karpenter else ()))

    def together(self, names: Sequence[str]) -> list[str]:
        """Those that may go at once without a pool having fewer nodes than it must have."""
        return self.least.together(self._there(), names)

    def _there(self) -> list[Node]:
        names = self.world.nodes if self.least.pools else ()
        return [self.node(name) for name in names if name not in self.karpenter.disrupted]

    def is_worth_it(self, names: Sequence[str], saving: int) -> bool:
        """Whether each pool that is `Balanced` would take part: its share of the saving, of what its nodes cost, must
        be half of the share of its disruption at least."""
        going: dict[str, list[str]] = {}
        for name in names:
            node = self.node(name)
            if self.karpenter.is_balanced(node):
                going.setdefault((node.metadata.labels or {}).get(POOL, ""), []).append(name)
        whole = sum(map(self.price, names))
        return all(self._scores(pool, of_pool, saving, whole) for pool, of_pool in going.items())

    def _scores(self, pool: str, names: Sequence[str], saving: int, whole: int) -> bool:
        nodes = [name for name in self.world.nodes if (self.node(name).metadata.labels or {}).get(POOL) == pool]
        cost, disruption = sum(map(self.price, nodes)), self.disruption(nodes)
        if cost <= 0 or saving <= 0:
            return False
        mine = saving * sum(map(self.price, names)) / whole
        return (mine / cost) / (self.disruption(names) / disruption) >= BALANCED_SCORE

    @property
    def is_over(self) -> bool:
        most = self.limits.max_steps
        return bool(self.limits.stopped) or (most is not None and len(self.steps) >= most)

    # -- attempts ------------------------------------------------------------------------------------------------------

    def remove(
        self,
        names: Sequence[str],
        options: Sequence[Option] = (),
    ) -> ConsolidationStep | None:
        """The nodes go and machines of these options come, if the scheduler then places everything; else nothing
        changes, and `kept` has the reason. Nodes for which nothing comes are a step each; gives the last."""
        saving = sum(map(self.price, names)) - sum(option.offer.price or 0 for option in options)
        reason = self._not_worth_it(names, saving) or self.least.what_keeps(self._there(), names, options)
        if reason is not None:
            self._keep(names, reason)
            return None
        disruptions = {name: self.disruption([name]) for name in names}
        with self.world.trial() as trial:
            savings = {name: self.price(name) for name in names}
            launched = tuple(self.remover.launch(trial, option) for option in options)
            result = self.remover.attempt(trial, names)
            if not result.is_possible:
                if not options:
                    self._keep(names, _no_place(result))
                return None
            trial.commit()
        groups = [tuple(names)] if options else [(name,) for name in names]
        for number, group in enumerate(groups):
            moves = tuple(move for move in result.moves if move.source in group)
            left = {move.pod for move in moves}
            step = ConsolidationStep(
                group,
                launched,
                tuple(name for later in groups[1:] for name in later) if number == 0 else (),
                moves,
                sum(n for name, n in zip(names, result.waves, strict=True) if name in group),
                tuple(key for key in result.waited if key in left),
                result.lost if number == 0 else (),
                sum(savings[name] for name in group) - sum(one.price for one in launched),
                sum(disruptions[name] for name in group),
            )
            self.steps.append(step)
        self.told(self)
        return step

    def homeless(self, names: Sequence[str]) -> list[PodInfo]:
        """The pods that would find no node if these went and nothing came."""
        with self.world.trial() as trial:
            result = self.remover.attempt(trial, names, tells_all=True)
            return [self.world.pod(one.pod) for one in result.stuck]

    def proposals(self, names: Sequence[str], pods: Sequence[PodInfo], *, most_nodes: int) -> list[tuple[Option, ...]]:
        """Machines for the pods that cost less than the nodes."""
        price = sum(map(self.price, names)) - self.limits.min_saving
        return self.replacements.proposals(pods, price, self.zones(names), most_nodes=most_nodes)

    def zones(self, names: Sequence[str]) -> list[str]:
        """Of these nodes, the one with most of them first."""
        counts = Counter((self.node(name).metadata.labels or {}).get(ZONE, "") for name in names)
        return [zone for zone, _ in counts.most_common()]

    def are_spot(self, names: Sequence[str]) -> bool:
        return all((self.node(name).metadata.labels or {}).get(CAPACITY_TYPE) == SPOT for name in names)

    def instance_type(self, name: str) -> str:
        return (self.node(name).metadata.labels or {}).get(INSTANCE_TYPE, "")

    def is_of(self, name: str, option: Option) -> bool:
        """Whether the node is such a machine: by its type, zone and price."""
        zone = (self.node(name).metadata.labels or {}).get(ZONE, "")
        wanted = (option.shape.name, option.offer.zone, option.offer.price)
        return (self.instance_type(name), zone, self.price(name)) == wanted

    def forked(self) -> WorldTrial:
        return self.world.trial()

    def _not_worth_it(self, names: Sequence[str], saving: int) -> KeepReason | None:
        if saving < self.limits.min_saving or saving < 0 or (saving == 0 and not self._is_free_to_go(names)):
            return KeepReason("SavingTooSmall", "that would save too little")
        if self.limits.max_steps is not None and len(self.steps) + len(names) > max(1, self.limits.max_steps):
            return KeepReason("TooManySteps", f"there are {self.limits.max_steps} steps already")
        most = self.limits.max_evictions
        if most is not None and self.evictions + sum(len(self.pods(name)) for name in names) > most:
            return KeepReason("TooManyEvictions", f"with it, more than {most} pods would be evicted")
        return None

    def _is_free_to_go(self, names: Sequence[str]) -> bool:
        """Whether they have no price, so that nothing says what it would save."""
        return all(self.price(name) == 0 for name in names)

    def _keep(self, names: Sequence[str], reason: KeepReason) -> None:
        if len(names) == 1:
            self.kept[names[0]] = len(self.steps), reason


def _no_place(result: RemovalResult) -> KeepReason:
    first = result.stuck[0]
    if is_headroom(first.pod):
        return KeepReason(NO_PLACE, f"the room to keep would lack a pod's place: {first.message}")
    return KeepReason(NO_PLACE, first.message, first.pod)
