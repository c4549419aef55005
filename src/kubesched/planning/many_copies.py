"""How many copies of a pod fit where that is the same in whatever order nodes fill up: counted, not placed one by one.

So it is for pods whose filters look at the amounts of one node, beside at most one spread constraint. What each node
has room for is a division; then the scheduler's filters judge. With one copy less than that on each node, every one of
these nodes has to let another in; with as many, none may. If they do not agree, or the order matters, there is no
answer here, and the copies have to be placed.

Next: `copies`, which places them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

import numpy as np

from kubesched.framework.caching import Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import MISSING, IntArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.build import is_in_tree
from kubesched.scheduler.cluster.table import Table
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.filter import FilterOutcome
from kubesched.scheduler.engine.postfilter import Diagnosis, for_event
from kubesched.scheduler.engine.prefilter import PreFilterOutcome, run_pre_filter
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.filtering import ConstraintDomains, SpreadFilterState
from kubesched.simulator.trial import LoadedWorld

_ONE_NODE_AT_A_TIME = (Scope.NODE, Scope.AMOUNTS)


@dataclass(frozen=True, slots=True)
class CountedCopies:
    """`per_node` is None if the order in which nodes fill up decides on which nodes of a domain the copies are."""

    n: int
    per_node: dict[str, int] | None
    message: str = ""
    """To the next copy; empty if no more were asked for."""
    plugins: tuple[str, ...] = ()


def count_copies(world: LoadedWorld, pod: Pod, most: int) -> CountedCopies | None:
    """Of a pod that an API server has completed; None if copies have to be placed to know."""
    info = world.cluster.signatures.info(pod, pod.pod_key)
    scheduler = world.scheduler_of(info)
    if scheduler is None or not _may_count(world, scheduler, info):
        return None
    cycle, table = CycleState(), world.cluster.table
    before = run_pre_filter(scheduler.profile, cycle, info, world.cluster.nodes)
    if not before.status.is_success or before.node_names is not None or not _looks_at_amounts(scheduler, cycle, info):
        return None
    with _Alike(table, info) as copies:
        spread = cycle.find(SpreadFilterState)
        room = _room_by_node(world, scheduler, cycle, copies)
        if room is None or spread is None:
            return None if room is None else _judged(world, scheduler, copies, room, most, has_places=True)
        domains = spread.only_domains
        if domains is None:
            return None
        room = np.where(domains.codes == MISSING, 0, room)
        taken = domains.taken(room)
        if taken is None:
            return None
        share, has_places = _shared_out(domains, room, taken)
        return _judged(world, scheduler, copies, share, most, has_places=has_places)


class _Alike:
    """Copies of a pod that count, and are not there."""

    def __init__(self, table: Table, info: PodInfo) -> None:
        self._table = table
        self.info = info
        self._now: IntArray = np.zeros(table.n, dtype=np.int64)

    def __enter__(self) -> _Alike:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.be(np.zeros(self._table.n, dtype=np.int64))

    def be(self, by_row: IntArray) -> None:
        self._table.count_alike(self.info, self._now, by_row)
        self._now = by_row


def _may_count(world: LoadedWorld, scheduler: ProfileScheduler, info: PodInfo) -> bool:
    cluster, signature = world.cluster, info.signature
    return (
        is_in_tree(scheduler)
        and len(cluster.nodes) > 0
        and not info.pin
        and not signature.claim_names
        and not signature.host_ports
        and not signature.affinity.required
        and not signature.affinity.required_anti
        and not signature.affinity.errors
        and info.spec.scheduling_group is None
        and not cluster.table.has_absurd_amounts
        and not any(cluster.nominations.node_names())
        and checked_pre_enqueue(scheduler.profile, info).is_success
    )


def _looks_at_amounts(scheduler: ProfileScheduler, cycle: CycleState, info: PodInfo) -> bool:
    """Whether filters that look at more than one node's amounts are content, or spread the copies. Affinity of other
    pods is against the same nodes however many copies there are."""
    return all(
        step.name in cycle.skip_filter
        or step.name in (PodTopologySpread.name, InterPodAffinity.name)
        or step.scope_for(info) in _ONE_NODE_AT_A_TIME
        for step in scheduler.profile.filter
    )


def _room_by_node(
    world: LoadedWorld, scheduler: ProfileScheduler, cycle: CycleState, copies: _Alike
) -> IntArray | None:
    """How many copies each node has room for, whatever the spread."""
    table, info = world.cluster.table, copies.info
    skipped = cycle.skip_filter
    cycle.skip_filter = skipped | {PodTopologySpread.name}

    def let_in() -> BoolArray:
        return scheduler.filter_nodes(cycle, info, world.cluster.nodes).fits

    n = table.n
    room: IntArray = table.allowed_pods.data[:n] - table.pod_counts.data[:n]
    for name, units in info.signature.resources.requests.items():
        if units > 0:
            free = table.allocatable.get(name, table.zeros).data[:n] - table.requested.get(name, table.zeros).data[:n]
            room = np.minimum(room, free // units)
    fits = let_in()
    room = np.where(fits, np.maximum(room, 0), 0)
    has_room = room > 0
    copies.be(room - has_room)
    agrees = np.array_equal(let_in(), has_room)
    copies.be(room)
    agrees = agrees and not let_in().any()
    cycle.skip_filter = skipped
    return room if agrees else None


def _shared_out(domains: ConstraintDomains, room: IntArray, taken: IntArray) -> tuple[IntArray, bool]:
    """What a domain takes, evenly over its nodes; and whether it could not be otherwise."""
    codes = domains.codes
    whole = np.zeros(len(taken), dtype=np.int64)
    np.add.at(whole, codes, room)
    share: IntArray = np.where(room > 0, room * taken[codes] // np.maximum(whole[codes], 1), 0)
    n_nodes = np.bincount(codes[room > 0], minlength=len(taken))
    is_partial = (taken > 0) & (taken < whole)
    for code in np.flatnonzero(is_partial).tolist():
        rows = np.flatnonzero((codes == code) & (share < room))
        share[rows[: taken[code] - share[codes == code].sum()]] += 1
    return share, not bool((is_partial & (n_nodes > 1)).any())


def _asked(world: LoadedWorld, scheduler: ProfileScheduler, info: PodInfo) -> tuple[PreFilterOutcome, FilterOutcome]:
    cycle = CycleState()
    before = run_pre_filter(scheduler.profile, cycle, info, world.cluster.nodes)
    return before, scheduler.filter_nodes(cycle, info, world.cluster.nodes)


def _judged(
    world: LoadedWorld, scheduler: ProfileScheduler, copies: _Alike, by_row: IntArray, most: int, *, has_places: bool
) -> CountedCopies | None:
    """The scheduler lets the last copy in, and no other."""
    total, names = int(by_row.sum()), world.cluster.table.names
    taking = np.flatnonzero(by_row)
    if total > most:
        return CountedCopies(most, None)
    if len(taking):
        last = by_row.copy()
        last[taking[-1]] -= 1
        copies.be(last)
        if not _asked(world, scheduler, copies.info)[1].fits[taking[-1]]:
            return None
    per_node = {names[row]: int(by_row[row]) for row in taking.tolist()} if has_places else None
    if total == most:
        return CountedCopies(total, per_node)
    copies.be(by_row)
    found, filtered = _asked(world, scheduler, copies.info)
    if filtered.fits.any():
        return None
    diagnosis = Diagnosis(world.cluster.nodes, found, filtered)
    return CountedCopies(
        total, per_node, for_event(diagnosis.message()), tuple(sorted(diagnosis.unschedulable_plugins()))
    )
