"""Filter: which nodes can the pod go to? Every plugin answers for a whole table of nodes.

Plugins run in their order, and the first to reject a node owns its reasons. Once few nodes are alive, the rest of the
plugins filter those alone; as long as most are, filtering all of them is cheaper than picking them out.

The table answers for all nodes at once, so nothing is saved by stopping early; but which nodes take part in scoring is
part of the decision, so in a large cluster the search is cut where kube-scheduler would cut it (`cut_search`).

Next: `row_check`, for the pods that are nominated to a node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray, NodeTable, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray, Verdicts
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.plugin_call import PluginError, blamed, guarded
from kubesched.scheduler.engine.profile import FilterStep, Profile

_FEW_ALIVE = 0.25
"""Below this share of live nodes, plugins filter the live ones only."""


@dataclass(frozen=True, slots=True)
class PluginVerdicts:
    """What one plugin said, and to which positions it was asked (None: to all)."""

    plugin: str
    verdicts: Verdicts
    asked: RowArray | None
    owned: BoolArray
    """(n_asked,) the nodes that this plugin was the first to reject."""


@dataclass(slots=True)
class FilterOutcome:
    """Every node's verdict, by position in `nodes`."""

    nodes: NodeTable
    fits: BoolArray
    unresolvable: BoolArray
    by_plugin: list[PluginVerdicts] = field(default_factory=list)
    overrides: dict[int, Status] = field(default_factory=dict)
    """Nodes rejected only because of the pods nominated to them."""

    def status(self, position: int) -> Status:
        """Why this node was rejected, with the plugin that did; OK if it fits."""
        if position in self.overrides:
            return self.overrides[position]
        for said in self.by_plugin:
            index = position if said.asked is None else index_of(said.asked, position)
            if index is not None and said.owned[index]:
                return said.verdicts.status(index).by(said.plugin)
        return OK

    def resolvable(self) -> RowArray:
        """The places of nodes that reject the pod, but not for good."""
        return np.flatnonzero(~(self.fits | self.unresolvable))

    def reason_counts(self) -> dict[str, int]:
        """How many nodes were rejected for each reason."""
        counts: dict[str, int] = {}
        for said in self.by_plugin:
            owned = self._owned_by(said)
            totals = np.count_nonzero(said.verdicts.bits & owned, axis=1)
            for reason, total in zip(said.verdicts.reasons, totals, strict=True):
                if total and reason:
                    counts[reason] = counts.get(reason, 0) + int(total)
        for status in self.overrides.values():
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        return counts

    def plugin_counts(self) -> Counter[str]:
        """How many nodes were rejected by each plugin."""
        counts: Counter[str] = Counter()
        for said in self.by_plugin:
            counts[said.plugin] += int(np.count_nonzero(self._owned_by(said)))
        counts.update(status.plugin for status in self.overrides.values())
        return counts

    def kinds(self) -> tuple[IntArray, list[Status]]:
        """(n_nodes,) the number of each node's status, and the statuses by number: mostly, they are few."""
        numbers = np.zeros(len(self.nodes), dtype=np.int64)
        statuses: list[Status] = [OK]
        for said in self.by_plugin:
            places = np.flatnonzero(said.owned)
            if len(places) == 0:
                continue
            kinds, examples = _alike(np.vstack((said.verdicts.bits, said.verdicts.unresolvable))[:, places])
            numbers[places if said.asked is None else said.asked[places]] = kinds + len(statuses)
            statuses.extend(said.verdicts.status(place).by(said.plugin) for place in places[examples].tolist())
        for position, status in self.overrides.items():
            numbers[position] = len(statuses)
            statuses.append(status)
        return numbers, statuses

    def _owned_by(self, said: PluginVerdicts) -> BoolArray:
        """(n_asked,) without the nodes that others were found to reject."""
        owned = said.owned
        if self.overrides:
            owned = owned.copy()
            for position in self.overrides:
                index = position if said.asked is None else index_of(said.asked, position)
                if index is not None:
                    owned[index] = False
        return owned

    def rejecting_plugins(self) -> list[str]:
        """Also where it takes the pods nominated to a node to reject it, only the plugin whose reason that is."""
        return sorted(plugin for plugin, count in self.plugin_counts().items() if count)


@timed_extension_point("Filter")
def run_filters(profile: Profile, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> FilterOutcome:
    """Every filter of the profile, in order, on these nodes as the table has them."""
    n = len(nodes)
    alive = np.ones(n, dtype=np.bool_)
    outcome = FilterOutcome(nodes, alive, np.zeros(n, dtype=np.bool_))
    n_alive = n
    for plugin in profile.filter:
        if plugin.name in cycle.skip_filter:
            continue
        asked = np.flatnonzero(alive) if n_alive < _FEW_ALIVE * n or plugin.node_by_node else None
        verdicts = ask(plugin, cycle, pod, nodes if asked is None else nodes.take(asked))
        if verdicts is ACCEPT_ALL:
            continue
        n_alive = _record(outcome, plugin.name, verdicts, asked)
        if n_alive == 0:
            break
    return outcome


def ask(plugin: FilterStep, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
    """One plugin's verdicts on these nodes."""
    try:
        return plugin.filter(cycle, pod, nodes)
    except Exception as bug:
        raise blamed(bug, plugin.name, 'running "{}" filter plugin') from bug


def change_state(
    profile: Profile, cycle: CycleState, pod: PodInfo, other: PodInfo, cluster: Cluster, row: int, *, adding: bool
) -> None:
    """Tells every plugin that prepared state that a pod is now on, or off, the row."""
    node = cluster.nodes.at(row)
    for plugin in profile.pre_filter_extensions:
        if plugin.name in cycle.skip_filter:
            continue
        with guarded(plugin.name, 'running PreFilter plugin "{}"'):
            change = plugin.add_pod if adding else plugin.remove_pod
            status = change(cycle, pod, other, node)
        if not status.is_success:
            verb = "AddPod" if adding else "RemovePod"
            raise PluginError(plugin.name, f'running {verb} on PreFilter plugin "{plugin.name}": {status.message}')


def _record(outcome: FilterOutcome, plugin: str, verdicts: Verdicts, asked: RowArray | None) -> int:
    """Takes a plugin's verdicts into the outcome; gives the number of nodes still alive."""
    rejected = verdicts.rejected
    alive = outcome.fits
    owned = rejected & alive if asked is None else rejected
    for index, message in verdicts.errors.items():
        if owned[index]:
            raise PluginError(plugin, f'running "{plugin}" filter plugin: {message}')
    positions = np.flatnonzero(owned) if asked is None else asked[owned]
    alive[positions] = False
    outcome.unresolvable[positions] = verdicts.unresolvable[owned]
    outcome.by_plugin.append(PluginVerdicts(plugin, verdicts, asked, owned))
    return int(np.count_nonzero(alive))


def index_of(values: RowArray, wanted: int) -> int | None:
    found = np.flatnonzero(values == wanted)
    return int(found[0]) if len(found) else None


_FEW_BITS = 10


def _alike(bits: BoolArray) -> tuple[IntArray, RowArray]:
    """Columns that are the same have the same number; and one column of each number."""
    if len(bits) > _FEW_BITS:
        _, examples, numbers = np.unique(bits, axis=1, return_index=True, return_inverse=True)
        return numbers.reshape(-1), examples
    codes = (1 << np.arange(len(bits))) @ bits
    examples = np.full(1 << len(bits), -1)
    examples[codes] = np.arange(len(codes))
    is_there = examples >= 0
    return (np.cumsum(is_there) - 1)[codes], examples[is_there]


_ENOUGH_NODES = 100
_LOWEST_PERCENTAGE = 5

NEAR = 2
"""Among so many times the rows that would be enough a search mostly finds them: there it looks first."""


@lru_cache(maxsize=64)  # asked for every pod, and the number of nodes changes seldom
def feasible_nodes_to_find(percentage: int, n_nodes: int) -> int:
    """0 percent stands for a share that shrinks as the cluster grows."""
    if n_nodes < _ENOUGH_NODES:
        return n_nodes
    if percentage == 0:
        percentage = max(50 - n_nodes // 125, _LOWEST_PERCENTAGE)
    return max(n_nodes * percentage // 100, _ENOUGH_NODES)


def going_round(order: RowArray, start: int, n: int) -> RowArray:
    """So many rows of a search that begins at `start`; all of them, if there are no more."""
    stop = start + n
    if stop <= len(order):
        return order[start:stop]
    return np.concatenate((order[start:], order[: min(stop - len(order), start)])) if start else order


def cut_search(order: RowArray, fits: BoolArray, start: int, enough: int) -> tuple[RowArray, int]:
    """The first `enough` feasible rows in the order of the search that begins at `start`, and how many rows it took:
    all of them, unless there is one more feasible row.

    `order` are the rows in search order, `fits` says by row whether it is feasible.
    """
    n = len(order)
    start %= max(n, 1)  # nodes may have left since
    for n_rows in (NEAR * enough, n) if NEAR * enough < n else (n,):
        rows = going_round(order, start, n_rows)
        feasible = fits.take(rows).nonzero()[0]
        if len(feasible) > enough:
            return rows.take(feasible[:enough]), feasible.item(enough - 1) + 1
    return rows.take(feasible), n
