"""One attempt to remove nodes: cordoned, drained as budgets allow, deleted; what the scheduler makes of it.

*During* the drain the nodes are still there and count as topology domains, though nobody may come to them; *after* it
they are gone. A removal counts if every pod finds a node during the drain, or, where waiting is allowed, after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubesched.framework.nodes import IntArray
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey, controller_of
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.model.taints import UNSCHEDULABLE_TAINT, is_tolerated
from kubesched.planning.catalogue import Option
from kubesched.planning.consolidate.rules import RestingBudgets, has_to_leave
from kubesched.planning.headroom import is_headroom
from kubesched.planning.new_nodes import daemon_makers, daemons_of, join_with_daemons
from kubesched.planning.resting_workloads import PodOwners
from kubesched.simulator.settling import PendingPod, Settled
from kubesched.simulator.trial import LoadedWorld, WorldTrial


@dataclass(frozen=True, slots=True)
class PodMove:
    pod: PodKey
    workload: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class LaunchedNode:
    name: str
    option: Option
    price: int
    amounts: Mapping[str, int]
    """What it has."""
    daemons: Mapping[str, int]
    """What its daemons ask for."""


def node_amounts(world: LoadedWorld, name: str) -> tuple[dict[str, int], dict[str, int]]:
    """What a node has of cpu and memory, and what is asked of it, but for the room to keep."""
    table = world.cluster.table
    row = table.rows[name]
    has, asked = (
        {resource: int(columns.get(resource, table.zeros).data[row]) for resource in (CPU, MEMORY)}
        for columns in (table.allocatable, table.requested)
    )
    for info in world.pods_on(name):
        if is_headroom(info.key):
            asked = {resource: n - info.resources.requests.get(resource, 0) for resource, n in asked.items()}
    return has, asked


@dataclass(frozen=True, slots=True)
class RemovalResult:
    nodes: tuple[str, ...]
    moves: tuple[PodMove, ...] = ()
    waves: tuple[int, ...] = ()
    """Of each node, in how many waves its pods leave: budgets make them wait until those that left run again."""
    waited: tuple[PodKey, ...] = ()
    """Pods that found a node only when the drained ones were gone."""
    lost: tuple[PodKey, ...] = ()
    """Pods that nobody makes anew."""
    stuck: tuple[PendingPod, ...] = ()
    """Pods that found no node; the removal does not count if there are any."""

    @property
    def is_possible(self) -> bool:
        return not self.stuck


def _is_drained(info: PodInfo) -> bool:
    return has_to_leave(info) or is_headroom(info.key)


class NodeRemover:
    """Makes attempts within a trial that the caller commits or takes back."""

    def __init__(
        self, world: LoadedWorld, owners: PodOwners, budgets: RestingBudgets, *, allows_waiting: bool = False
    ) -> None:
        self._world = world
        self._owners = owners
        self._budgets = budgets
        self._allows_waiting = allows_waiting
        self._daemons: dict[str, tuple[Pod, ...]] = {}

    def leaving(self, names: Iterable[str]) -> list[PodInfo]:
        """The pods that a drain of these nodes moves."""
        return [info for name in names for info in self._world.pods_on(name) if _is_drained(info)]

    def attempt(
        self, trial: WorldTrial, names: Sequence[str], *, at_once: bool = False, tells_all: bool = False
    ) -> RemovalResult:
        """All are cordoned, then drained and deleted one after another, or all at once. With `tells_all`, everybody who
        finds no node is in the result, not only the first."""
        for name in names:
            trial.cordon(name)
        pods = self.leaving(names)
        lost = tuple(info.key for info in pods if controller_of(info.pod.metadata) is None)
        sources = {info.key: (info.spec.node_name, self._owners.workload_of(info.pod)) for info in pods}
        drain = _Drain(trial, frozenset(names), goes_on=tells_all or self._allows_waiting)
        hopeless = None if tells_all else self._without_room(pods)
        if hopeless is not None:
            drain.evict([hopeless])
            if drain.stuck:
                return RemovalResult(tuple(names), stuck=tuple(drain.stuck.values()))
        n_waves: list[int] = []
        for group in (names,) if at_once else [(name,) for name in names]:
            waves = self._budgets.waves(self.leaving(group))
            n_waves += [len(waves)] * len(group)
            if not all(drain.evict(wave) for wave in waves):
                return RemovalResult(tuple(names), stuck=tuple(drain.stuck.values()))
            for name in group:
                trial.delete_node(name)
            if drain.stuck and self._allows_waiting:
                drain.place_late()
        moves = tuple(
            PodMove(key, workload, source, drain.targets[key])
            for key, (source, workload) in sources.items()
            if key in drain.targets and not is_headroom(key)
        )
        return RemovalResult(
            tuple(names), moves, tuple(n_waves), tuple(drain.waited), lost, tuple(drain.stuck.values())
        )

    def _without_room(self, pods: Iterable[PodInfo]) -> PodInfo | None:
        """A pod that asks for more than any open node has left. It is asked first, so that nobody else is moved in
        vain; that the scheduler refuses it is not taken for granted."""
        table = self._world.cluster.table
        n = table.n
        is_open = ~table.unschedulable.data[:n]
        has_place = is_open & (table.pod_counts.data[:n] < table.allowed_pods.data[:n])
        free: dict[str, IntArray] = {}
        for one_of_them in {id(info.signature): info for info in pods}.values():
            if is_tolerated(UNSCHEDULABLE_TAINT, one_of_them.tolerations):
                continue
            fitting = has_place
            for name, amount in one_of_them.resources.requests.items():
                if amount and name != PODS:
                    if name not in free:
                        free[name] = self._left_of(name)
                    fitting = fitting & (free[name] >= amount)
            if not fitting.any():
                return one_of_them
        return None

    def _left_of(self, resource: str) -> IntArray:
        table = self._world.cluster.table
        has, asked = (one.get(resource, table.zeros).data[: table.n] for one in (table.allocatable, table.requested))
        left: IntArray = has - asked
        return left

    def launch(self, trial: WorldTrial, option: Option) -> LaunchedNode:
        """A new node of this option, with its daemons."""
        node = join_with_daemons(trial, option, self._daemons_of(option))
        trial.settle(to_first_failure=True)
        return LaunchedNode(node.name, option, option.offer.price or 0, *node_amounts(self._world, node.name))

    def _daemons_of(self, option: Option) -> tuple[Pod, ...]:
        known = self._daemons.get(option.name)
        if known is None:
            known = self._daemons[option.name] = daemons_of(daemon_makers(self._world), [option])[0]
        return known


class _Drain:
    """What becomes of the pods of one attempt."""

    def __init__(self, trial: WorldTrial, leaving: frozenset[str], *, goes_on: bool) -> None:
        self._trial = trial
        self._leaving = leaving
        self._goes_on = goes_on
        self.targets: dict[PodKey, str] = {}
        self.stuck: dict[PodKey, PendingPod] = {}
        self.waited: list[PodKey] = []

    def evict(self, wave: Iterable[PodInfo]) -> bool:
        """False if the attempt has failed, and nobody wants to know more."""
        self._trial.evict(*(info.key for info in wave))
        settled = self._trial.settle(to_first_failure=True)
        self._note(settled)
        if not self.stuck:
            return True
        if not self._goes_on:
            return False
        if settled.pending:
            self._note(self._trial.settle())
        return True

    def _note(self, settled: Settled) -> None:
        for key, name in settled.placed.items():
            if name in self._leaving:
                self.stuck[key] = PendingPod(key, f"it tolerates the cordon, and comes back to {name}")
            else:
                self.targets[key] = name
        self.stuck.update((one.pod, one) for one in settled.pending)

    def place_late(self) -> None:
        """The drained node is gone, and no domain any more."""
        settled = self._trial.settle(to_first_failure=True)
        self.targets.update(settled.placed)
        for key in [key for key in self.stuck if key in settled.placed]:
            del self.stuck[key]
            self.waited.append(key)
