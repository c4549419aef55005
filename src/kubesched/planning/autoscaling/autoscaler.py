"""An autoscaler at work in a simulation: it sees pods that find no node and nodes that are not needed, and acts.

Pods that the scheduler could not place make it look for machines (`scale_up`); these are ready after the time that a
machine takes to boot, and the scheduler does the rest. Once nothing waits and nothing is on its way, it looks for nodes
that can go (`scale_down`), drains them as disruption budgets allow, and deletes them when they are empty.

When it looks is each policy's own (`Timing`). It looks only when something has changed: a cluster at rest stays so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kubesched.explanation.layout import counted
from kubesched.framework.handle import Registry
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.storage import CSINode
from kubesched.k8s.model.times import Span, span_s
from kubesched.k8s.workloads.pod_states import belongs_to_its_node, condition_of
from kubesched.planning.autoscaling.scale_down import Removal, next_disruption, unneeded_nodes
from kubesched.planning.autoscaling.scale_up import Machine, Market, machines_for_pending
from kubesched.planning.autoscaling.snapshot import snapshot
from kubesched.planning.catalogue import INSTANCE_TYPE, NANOS, POOL, Catalogue, NodePrices, Option
from kubesched.planning.catalogue_files import GivenCatalogue
from kubesched.planning.catalogue_files import catalogue as read_machines
from kubesched.planning.consolidate.karpenter_pools import KarpenterPools
from kubesched.planning.consolidate.least_nodes import LeastNodes
from kubesched.planning.consolidate.policies import MOST_EMPTY_AT_ONCE
from kubesched.planning.new_nodes import daemons_of, node_from_offer, node_name
from kubesched.planning.node_pool_budgets import PoolDisruption
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.autoscaling import DRAINED, LAUNCHED, READY, REMOVED, AutoscalerChange, AutoscalingRecord
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.trial import LoadedWorld
from kubesched.simulator.virtual.cluster import VirtualCluster

POD_SCHEDULED, UNSCHEDULABLE = "PodScheduled", "Unschedulable"
_SECONDS_AN_HOUR = 3600
_POD_EVENTS_APART_S = 10.0


class AutoscalerError(KubeschedError, ValueError):
    """There is no such autoscaler, or nothing that it could launch."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The defaults of the autoscaler's flags."""

    quiet_s: float
    """It acts once no further pod has come to wait for so long …"""
    at_most_s: float
    """… or the first one waits for so long."""
    looks_down_every_s: float
    after_launch_s: float
    """It removes nothing for so long after a launch."""
    unneeded_s: float
    """So long a node must be found to be unneeded."""


TIMINGS: Mapping[str, Timing] = {
    "karpenter": Timing(quiet_s=1, at_most_s=10, looks_down_every_s=10, after_launch_s=0, unneeded_s=15),
    "cluster-autoscaler": Timing(quiet_s=10, at_most_s=10, looks_down_every_s=60, after_launch_s=600, unneeded_s=600),
}
"""Karpenter 1.15: batches of pods (`--batch-idle-duration`, `--batch-max-duration`), and 15 s after which it looks at a
disruption again. Cluster Autoscaler 1.37: `--scan-interval`, `--scale-down-delay-after-add` and
`--scale-down-unneeded-time`; what could go is looked for once a minute here."""
POLICIES = tuple(TIMINGS)


@dataclass(frozen=True, slots=True, repr=False)
class SimulatedAutoscaler:
    """`karpenter` or `cluster-autoscaler`, with the machines that it may launch."""

    policy: str
    catalogue: Catalogue
    boot_s: float = 60.0
    """From the launch of a machine until its node is ready."""
    spot_to_spot: bool = False
    """Karpenter's feature gate SpotToSpotConsolidation is on."""

    def __post_init__(self) -> None:
        if self.policy not in TIMINGS:
            raise AutoscalerError(f'there is no autoscaler "{self.policy}": {" and ".join(POLICIES)} are known')
        if self.boot_s < 0:
            raise AutoscalerError(f"boot: {self.boot_s:g} s is negative")
        if not self._launched():
            raise AutoscalerError(f"{self.catalogue.source or 'the catalogue'}: no machine that could be launched")
        if self.policy == "karpenter" and any(one.offer.price is None for one in self._launched()):
            source = self.catalogue.source or "the catalogue"
            raise AutoscalerError(f"{source}: karpenter launches the cheapest machine, and not all have a price")

    def _launched(self) -> tuple[Option, ...]:
        return tuple(option for option in self.catalogue.options() if not option.pool.is_static)

    def __repr__(self) -> str:
        return f"<autoscaler {self.policy}: {self.catalogue!r}>"

    def run(
        self, config: KubeSchedulerConfiguration, options: SimulationOptions, registry: Registry | None = None
    ) -> AutoscaledCluster:
        return AutoscaledCluster(self, config, options, registry)


def autoscaler(
    policy: str, catalogue: GivenCatalogue, *, boot: Span = 60.0, spot_to_spot: bool = False
) -> SimulatedAutoscaler:
    """Karpenter (`karpenter`) or Cluster Autoscaler (`cluster-autoscaler`) for `kubesched.simulate`.

    It launches machines of the `catalogue` (a file, a document, or what `kubesched.catalogue` gave); one is ready
    `boot` after its launch. `spot_to_spot` is Karpenter's feature gate of that name.
    """
    return SimulatedAutoscaler(policy, read_machines(catalogue), span_s(boot), spot_to_spot)


@dataclass
class AutoscaledCluster:
    """The autoscaler in one run."""

    autoscaler: SimulatedAutoscaler
    config: KubeSchedulerConfiguration
    options: SimulationOptions
    registry: Registry | None = None
    changes: list[AutoscalerChange] = field(default_factory=list)

    def start(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster
        self._clock, self._store = cluster.clock, cluster.store
        self._timing = TIMINGS[self.autoscaler.policy]
        nodes = list(self._store.of(Node).values())
        self._catalogue = self.autoscaler.catalogue
        has_prices = any(option.offer.price is not None for option in self._catalogue.options())
        self._priced = self._catalogue if has_prices else None
        self._prices = NodePrices(nodes, self._priced)
        self._managed = {node.name for node in nodes if self._is_ours(node)}
        self._n_foreign = len(nodes) - len(self._managed)
        self._names = {node.name for node in nodes}
        self._machines: dict[str, Machine] = {}
        """All that were launched, by name."""
        self._on_the_way: dict[str, Machine] = {}
        self._draining: dict[str, str] = {}
        """Nodes that are being drained, and why."""
        self._unneeded_since_s: dict[str, float] = {}
        self._touched_s: dict[str, float] = {}
        """When a pod last came to a node or left it."""
        self._pools = {one.name: one.disruption for one in self._catalogue.pools if one.disruption is not None}
        self._least = LeastNodes.of(self._catalogue.pools)
        self._looks_later_at_s = math.inf
        self._chosen: tuple[Removal, float] | None = None
        """A disruption that Karpenter will look at once more, and since when it is planned."""
        self._waiting: set[PodKey] = {pod.pod_key for pod in self._store.of(Pod).values() if _waits(pod)}
        self._first_came_s = self._last_came_s = self._clock.elapsed_s
        self._looks_up = self._looks_down = False
        self._looked_up_at = -1
        """How many changes there had been when no machine helped."""
        self._launched_s: float | None = None
        self._node_nanos = 0.0
        self._node_s = 0.0
        self._paid: dict[str, tuple[float, int]] = {node.name: (0.0, self._price_of(node)) for node in nodes}
        """Machines that are paid for: since when, and how much an hour."""
        self._n_ready = self._fewest = self._most = len(nodes)
        self._store.listen(self._on_pod, Pod)
        self._store.listen(self._on_node, Node)
        self._launch_least()
        if self._waiting:
            self._plan_up()
        self._plan_down()

    # -- what it hears -------------------------------------------------------------------------------------------------

    def _on_pod(self, before: KubeObject | None, after: KubeObject | None) -> None:
        pod = before if after is None else after
        assert isinstance(pod, Pod)
        if pod.spec.node_name and _is_pod_event(before, after):
            self._note_pod_event(pod.spec.node_name)
        if after is not None and _waits(pod):
            if pod.pod_key not in self._waiting:
                self._waiting.add(pod.pod_key)
                self._last_came_s = self._clock.elapsed_s
                self._plan_up()
            return
        self._waiting.discard(pod.pod_key)
        is_new_there = not isinstance(before, Pod) or not before.spec.node_name
        if pod.spec.node_name and (is_new_there or after is None or pod.is_terminal):
            self._plan_down()
        if pod.spec.node_name in self._draining:
            self._clock.after(0.0, lambda: self._delete_if_empty(pod.spec.node_name))

    def _note_pod_event(self, node_name: str) -> None:
        """As a NodeClaim notes it: not again within a few seconds."""
        now_s = self._clock.elapsed_s
        if now_s - self._touched_s.get(node_name, -math.inf) >= _POD_EVENTS_APART_S:
            self._touched_s[node_name] = now_s

    def _on_node(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if before is None or after is None:
            self._n_ready += 1 if before is None else -1
            self._fewest, self._most = min(self._fewest, self._n_ready), max(self._most, self._n_ready)
            gone = before if after is None else None
            if gone is not None:
                self._stop_paying(gone.name)
            elif after is not None and after.name not in self._paid:
                assert isinstance(after, Node)
                self._paid[after.name] = self._clock.elapsed_s, self._price_of(after)
            if before is None and after is not None:
                self._touched_s[after.name] = self._clock.elapsed_s
            if self._waiting:
                self._plan_up()
            self._plan_down()

    # -- more machines -------------------------------------------------------------------------------------------------

    def _plan_up(self) -> None:
        if not self._looks_up:
            self._looks_up = True
            self._first_came_s = self._clock.elapsed_s
            self._clock.after(self._timing.quiet_s, self._look_up)

    def _look_up(self) -> None:
        now_s, timing = self._clock.elapsed_s, self._timing
        until_s = min(self._last_came_s + timing.quiet_s, self._first_came_s + timing.at_most_s)
        if now_s < until_s:
            self._clock.after(until_s - now_s, self._look_up)
            return
        self._looks_up = False
        if not self._waiting or self._looked_up_at == self._store.n_changes:
            return
        machines = machines_for_pending(self._snapshot(), self._market(), self.autoscaler.policy)
        for machine in machines:
            self._launch(machine, f"for {machine.pods} pod{'s' if machine.pods != 1 else ''}")
        if machines:
            self._plan_up()  # one group at a time
        else:
            self._looked_up_at = self._store.n_changes

    def _launch(self, machine: Machine, why: str) -> None:
        self._names.add(machine.name)
        self._managed.add(machine.name)
        self._machines[machine.name] = machine
        self._on_the_way[machine.name] = machine
        self._launched_s = self._clock.elapsed_s
        self._paid[machine.name] = self._clock.elapsed_s, machine.option.offer.price or 0
        self._note(LAUNCHED, machine.name, machine.option.name, why)
        self._clock.after(self.autoscaler.boot_s, lambda: self._join(machine))

    def _join(self, machine: Machine) -> None:
        del self._on_the_way[machine.name]
        for item in machine.objects:
            self._cluster.admission.apply(item)
        self._note(READY, machine.name, machine.option.name, "")

    def _launch_least(self) -> None:
        """What pools have at least, whatever pods there are."""
        missing = self._catalogue.beside(self._store.of(Node).values())
        for pool in missing.pools:
            mine = sorted(
                (option for option in missing.options() if option.pool == pool),
                key=lambda option: (option.offer.price or 0, option.name),
            )
            wanted = [(zone, n) for zone, n in pool.least_by_zone.items()] or [("", pool.least_nodes)]
            for zone, n in wanted:
                option = next((one for one in mine if zone in ("", one.offer.zone)), None)
                for _ in range(n if option is not None else 0):
                    assert option is not None
                    self._launch(self._machine(option), f"pool {pool.name} has at least so many")

    def _machine(self, option: Option) -> Machine:
        number = next(n for n in range(1, len(self._names) + 2) if node_name(option, n) not in self._names)
        objects = tuple(node_from_offer(option, number))
        return Machine(option, objects[0].name, objects)

    def _market(self) -> Market:
        """What pools and offers still allow."""
        nodes = [*self._store.of(Node).values(), *(one.objects[0] for one in self._on_the_way.values())]
        left = self._catalogue.beside(node for node in nodes if isinstance(node, Node))
        running = Counter(self._machines[name].option.name for name in self._paid if name in self._machines)
        options = []
        for option in left.options():
            most = option.offer.available
            n_left = None if most is None else most - running[option.name]
            if not option.pool.is_static and (n_left is None or n_left > 0):
                options.append(replace(option, offer=replace(option.offer, available=n_left)))
        daemons = daemons_of(self._store, options)
        return Market(tuple(options), daemons, tuple(self._on_the_way.values()), self._names)

    # -- fewer machines ------------------------------------------------------------------------------------------------

    def _plan_down(self, after_s: float | None = None) -> None:
        if not self._looks_down:
            self._looks_down = True
            self._clock.after(self._timing.looks_down_every_s if after_s is None else after_s, self._look_down)

    def _look_down(self) -> None:
        self._looks_down = False
        if self._waiting or self._on_the_way or not self._managed:
            return  # whatever ends that makes it look again
        now_s, timing = self._clock.elapsed_s, self._timing
        if self._launched_s is not None and now_s < self._launched_s + timing.after_launch_s:
            self._plan_down(self._launched_s + timing.after_launch_s - now_s)
        elif self.autoscaler.policy == "karpenter":
            self._disrupt(now_s)
        elif not self._draining:
            self._remove_unneeded(now_s)

    def _disrupt(self, now_s: float) -> None:
        """What was chosen is looked at again after a while, and done if it still holds."""
        found, later_s = next_disruption(
            self._snapshot(),
            self._priced,
            self._karpenter_pools(),
            self._least,
            spot_to_spot=self.autoscaler.spot_to_spot,
        )
        if found is None:
            self._chosen = None
            if later_s is not None:
                self._look_down_at(later_s - self._clock.start_s)
        elif self._chosen is None or self._chosen[0] != found:
            self._chosen = found, now_s
            self._plan_down(self._timing.unneeded_s)
        elif now_s < self._chosen[1] + self._timing.unneeded_s:
            self._plan_down(self._chosen[1] + self._timing.unneeded_s - now_s)
        else:
            self._chosen = None
            self._replace(found)

    def _karpenter_pools(self) -> KarpenterPools:
        start_s = self._clock.start_s
        return KarpenterPools(
            self._pools,
            start_s + self._clock.elapsed_s,
            {name: start_s + at_s for name, at_s in self._touched_s.items()},
            disrupted=frozenset(self._draining),
            default=PoolDisruption(),
        )

    def _look_down_at(self, at_s: float) -> None:
        """Beside whatever makes it look before."""
        if at_s < self._looks_later_at_s:
            self._looks_later_at_s = at_s
            self._clock.after(max(0.0, at_s - self._clock.elapsed_s), self._look_down_late)

    def _look_down_late(self) -> None:
        self._looks_later_at_s = math.inf
        self._plan_down(0.0)

    def _replace(self, removal: Removal) -> None:
        """What comes in the place of the nodes is ready before they are drained."""
        for option in removal.launch:
            self._launch(self._machine(option), f"in the place of {', '.join(removal.nodes)}")
        self._clock.after(self.autoscaler.boot_s if removal.launch else 0.0, lambda: self._drain(removal))

    def _remove_unneeded(self, now_s: float) -> None:
        found = unneeded_nodes(self._snapshot(), self._priced, self._least)
        since_s = {name: self._unneeded_since_s.get(name, now_s) for one in found for name in one.nodes}
        self._unneeded_since_s = since_s
        due = [one for one in found if all(now_s >= since_s[n] + self._timing.unneeded_s for n in one.nodes)]
        empty = [one for one in due if not one.n_moves][:MOST_EMPTY_AT_ONCE]
        for one in empty or due[:1]:
            self._drain(one)
        if since_s and not due:
            self._plan_down(min(since_s.values()) + self._timing.unneeded_s - now_s)

    def _drain(self, removal: Removal) -> None:
        for name in removal.nodes:
            if self._cluster.has_node(name):
                self._draining[name] = removal.why
                self._unneeded_since_s.pop(name, None)
                if removal.n_moves:
                    self._note(DRAINED, name, self._machine_name(name), removal.why)
                self._cluster.drains.start(name)
                self._clock.after(0.0, lambda name=name: self._delete_if_empty(name))  # type: ignore[misc]

    def _delete_if_empty(self, name: str) -> None:
        if name not in self._draining or not all(map(belongs_to_its_node, self._store.pods_on(name))):
            return
        why = self._draining.pop(name)
        self._managed.discard(name)
        self._note(REMOVED, name, self._machine_name(name), why)
        for item in (self._store.find(CSINode, name), self._store.find(Node, name)):
            if item is not None:
                self._cluster.deletions.delete(item)

    # -- what it knows -------------------------------------------------------------------------------------------------

    def _snapshot(self) -> LoadedWorld:
        kept = {name for name in self._store.of(Node) if name not in self._managed or name in self._draining}
        return snapshot(
            self._cluster,
            self.config,
            self.registry,
            tie_break=self.options.tie_break,
            seed=self.options.seed,
            kept=kept,
        )

    def _is_ours(self, node: Node) -> bool:
        """Whether it is a machine of the catalogue, of a pool that the catalogue knows."""
        labels = node.metadata.labels or {}
        names = {pool.name for pool in self._catalogue.pools} - {""}
        if names and labels.get(POOL) not in names:
            return False
        return any(shape.name == labels.get(INSTANCE_TYPE) for shape in self._catalogue.shapes)

    def _machine_name(self, node_name: str) -> str:
        if node_name in self._machines:
            return self._machines[node_name].option.name
        node = self._store.find(Node, node_name)
        return "" if node is None else (node.metadata.labels or {}).get(INSTANCE_TYPE, "")

    def _price_of(self, node: Node) -> int:
        return 0 if self._prices.are_counted else self._prices.of(node)

    def _stop_paying(self, name: str) -> None:
        since_s, price = self._paid.pop(name, (0.0, 0))
        self._add_up(self._clock.elapsed_s - since_s, price)

    def _add_up(self, for_s: float, price: int) -> None:
        self._node_s += for_s
        self._node_nanos += for_s * price / _SECONDS_AN_HOUR

    def _note(self, change: str, node: str, machine: str, why: str) -> None:
        self.changes.append(AutoscalerChange(self._clock.elapsed_s, change, node, machine, why))

    def record(self) -> AutoscalingRecord:
        end_s = self._cluster.ended_at_s - self._clock.start_s
        for since_s, price in self._paid.values():
            self._add_up(max(0.0, end_s - since_s), price)
        self._paid.clear()
        return AutoscalingRecord(
            self.autoscaler.policy,
            tuple(self.changes),
            self._fewest,
            self._most,
            self._n_ready,
            round(self._node_s / _SECONDS_AN_HOUR, 6),
            None if self._priced is None else round(self._node_nanos / NANOS, 6),
            self._catalogue.currency,
            tuple(self._assumptions()),
        )

    def _assumptions(self) -> Sequence[str]:
        told: list[str] = []
        if self._n_foreign:
            verb = "is no machine" if self._n_foreign == 1 else "are no machines"
            told.append(
                f"{counted(self._n_foreign, 'node')} {verb} of the catalogue, and the autoscaler does not touch them."
            )
        if self._priced is not None and self._prices.unknown:
            told.append(f"{counted(len(self._prices.unknown), 'node')} without a price: free of charge here.")
        told.append(f"A machine takes {self.autoscaler.boot_s:g} s to boot, and is paid for from its launch on.")
        return told


def _is_pod_event(before: KubeObject | None, after: KubeObject | None) -> bool:
    """Whether a pod came to its node, ended, or began to leave; those that belong to it do not count."""
    if not isinstance(after, Pod) or belongs_to_its_node(after):
        return False
    if not isinstance(before, Pod):
        return True
    return (
        not before.spec.node_name
        or (after.is_terminal and not before.is_terminal)
        or (after.is_terminating and not before.is_terminating)
    )


def _waits(pod: Pod) -> bool:
    """Whether the scheduler has found no node for it."""
    if pod.spec.node_name or pod.is_terminal or pod.is_terminating:
        return False
    said = condition_of(pod, POD_SCHEDULED)
    return said is not None and said.status == "False" and said.reason == UNSCHEDULABLE
