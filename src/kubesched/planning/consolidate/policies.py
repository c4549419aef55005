"""The policies: ours, and those of Karpenter and Cluster Autoscaler, with the scheduler's own places for the pods.

Ours closes the nodes that go together first, so that pods move to those that stay; then one by one, also against
cheaper machines, and in small groups, until nothing more can be saved. A node that cannot go never ends the walk. One
that could not is tried again once something has changed.

Karpenter (1.15) deletes empty nodes, then searches by bisection for the longest prefix of at most 100 candidates that
can go together, with at most one cheaper machine in their place, then tries single nodes. Cluster Autoscaler (1.37)
looks at nodes that are at most half used, deletes the empty ones, and drains one at a time; it replaces none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, zip_longest

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.catalogue import Option
from kubesched.planning.consolidate.rules import KeepReason
from kubesched.planning.consolidate.state import ConsolidationState
from kubesched.planning.node_groups import group_of
from kubesched.planning.node_pool_budgets import EMPTY, UNDERUTILIZED
from kubesched.scheduler.cluster.view import NodeRow

_SLACK = 0.02
"""How much more room than is asked for the nodes that stay must have for others to be closed at first."""
_GROUP_SIZES = (2, 3, 5, 8)
_FEW = 8
_MOST_REBOUGHT = 20


def from_compaction(state: ConsolidationState) -> None:
    compaction(state)
    _improve(state)


def from_karpenter(state: ConsolidationState) -> None:
    """So never less than Karpenter's policy."""
    karpenter(state)
    if not state.is_over:
        state.on_the_way["karpenter"] = state.saving
    _improve(state)


def from_rebuying(state: ConsolidationState) -> None:
    """All nodes of a small cluster go at once, if other machines hold the same for less."""
    names = state.candidates() if state.replacements else []
    if 0 < len(names) <= _MOST_REBOUGHT and not state.is_over and _exchange(state, names):
        _improve(state)


def _improve(state: ConsolidationState) -> None:
    """Everything is tried until nothing helps any more."""
    while not state.is_over and (
        _one_by_one(state) or _in_groups(state) or several_together(state) or _compacted(state)
    ):
        pass


def _compacted(state: ConsolidationState) -> bool:
    n_before = len(state.steps)
    compaction(state)
    return len(state.steps) > n_before


# -- together ----------------------------------------------------------------------------------------------------------


def compaction(state: ConsolidationState) -> None:
    """Closes all nodes that would not be needed if pods could be cut into parts, and drains one after another. Whoever
    cannot go is opened again, and everything starts over without it."""
    going = _surplus(state)
    while going and not state.is_over:
        failed = _drain_all(state, going)
        if not failed:
            return
        going = [name for name in going if name not in failed]


def _drain_all(state: ConsolidationState, going: Sequence[str]) -> set[str]:
    """All of them go, in steps; or nothing changes, and those are given that could not. Where it is interrupted, the
    steps stay that were made before anybody failed."""
    n_before = n_sound = len(state.steps)
    failed: set[str] = set()
    with state.forked() as trial:
        for name in going:
            trial.cordon(name)
        for name in going:
            if state.is_over:
                trial.uncordon(name)
            elif state.remove([name]) is None:
                failed.add(name)
                trial.uncordon(name)
            elif not failed:
                n_sound = len(state.steps)
        if not failed:
            trial.commit()
    if failed:
        del state.steps[n_sound if state.limits.stopped else n_before :]
    if len(state.steps) > n_before:
        first = state.steps[n_before]
        state.steps[n_before] = replace(first, cordon=tuple(name for name in going if name not in first.delete))
    return failed


def _surplus(state: ConsolidationState) -> list[str]:
    """Those nodes, worth most first, without which the others have room for everything, by amounts alone."""
    table = state.world.cluster.table
    candidates = state.candidates()
    limits = state.limits
    most = len(candidates) if limits.max_steps is None else limits.max_steps
    going: list[str] = []
    n_evictions = 0
    spare = {}
    for resource in (CPU, MEMORY):
        has, asked = table.allocatable.get(resource), table.requested.get(resource)
        if has is not None and asked is not None:
            rows = [table.rows[name] for name in state.world.nodes]
            spare[resource] = int(has.data[rows].sum()) - int(asked.data[rows].sum() * (1 + _SLACK))
    for name in candidates:
        row = table.rows[name]
        needed = {resource: int(table.allocatable[resource].data[row]) for resource in spare}
        n_pods = len(state.pods(name))
        within = limits.max_evictions is None or n_evictions + n_pods <= limits.max_evictions
        if len(going) < most and within and all(spare[resource] >= amount for resource, amount in needed.items()):
            going.append(name)
            n_evictions += n_pods
            for resource, amount in needed.items():
                spare[resource] -= amount
    return going


# -- one by one --------------------------------------------------------------------------------------------------------


def _one_by_one(state: ConsolidationState) -> bool:
    """Whether anything was saved."""
    n_before = len(state.steps)
    for name in state.candidates():
        if state.is_over:
            break
        tried = state.kept.get(name)
        if tried is not None and tried[0] == len(state.steps):
            continue  # nothing has changed since
        if state.remove([name]) is None and state.replacements:
            _exchange(state, [name])
    return len(state.steps) > n_before


def _exchange(state: ConsolidationState, names: Sequence[str]) -> bool:
    """Machines that cost less take the place of the nodes, for those pods that find none elsewhere."""
    price = sum(map(state.price, names))
    pods = [info for name in names for info in state.pods(name)]
    if len(names) > 1 and not state.replacements.could_save(pods, price):
        return False
    homeless = state.homeless(names)
    if not homeless:
        return state.remove(names) is not None
    for options in state.proposals(names, homeless, most_nodes=max(2, len(names) + 1)):
        if state.is_over:
            return False
        if any(state.remove(*change) is not None for change in _without_detours(state, names, options)):
            return True
    return False


def _without_detours(
    state: ConsolidationState, names: Sequence[str], options: Sequence[Option]
) -> Iterator[tuple[list[str], list[Option]]]:
    """First, without the nodes that would only be exchanged for one of their kind; then, as it was proposed."""
    staying, coming = list(names), list(options)
    for option in options:
        same = next((name for name in staying if state.is_of(name, option)), None)
        if same is not None:
            staying.remove(same)
            coming.remove(option)
    if staying and len(staying) < len(names):
        yield staying, coming
    yield list(names), list(options)


# -- in groups ---------------------------------------------------------------------------------------------------------


def _in_groups(state: ConsolidationState) -> bool:
    """Whether the machines of a catalogue could take the place of a few nodes together; ends with the first that do."""
    if not state.replacements:
        return False
    for names in _groups(state):
        if state.is_over:
            return False
        if _exchange(state, names):
            return True
    return False


def _groups(state: ConsolidationState) -> Iterator[list[str]]:
    """Neighbours in the order of how full they are, the emptiest first; of few nodes, all pairs and triples, and the
    whole."""
    names = sorted(state.candidates(), key=lambda name: (state.utilisation(name), name))
    if 1 < len(names) <= _FEW:
        for size in (2, 3):
            yield from map(list, combinations(names, size))
        yield names
    for size in _GROUP_SIZES:
        for start in range(0, len(names) - size + 1, max(1, size // 2)):
            yield names[start : start + size]


# -- as peers search ---------------------------------------------------------------------------------------------------

MOST_TOGETHER = 100
FEWEST_SPOT_TYPES = 15
"""So many cheaper types there must be for a spot machine to take the place of another: else a machine that was launched
for its availability would be replaced again and again."""
UTILISATION_THRESHOLD = 0.5
MOST_EMPTY_AT_ONCE = 10
GPU = "nvidia.com/gpu"
NO_SPOT_TO_SPOT = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
FEW_SPOT_TYPES = f"SpotToSpotConsolidation requires {FEWEST_SPOT_TYPES} cheaper instance type options"
NOTHING_CHEAPER = "Can't replace with a cheaper node"
REJECTED = "Balanced score is below its threshold"


def karpenter(state: ConsolidationState) -> None:
    while not state.is_over and karpenter_once(state):
        pass


def karpenter_once(state: ConsolidationState) -> bool:
    """The next disruption. Whether there was one."""
    return _delete_empty(state) or several_together(state) or _single(state)


def _delete_empty(state: ConsolidationState) -> bool:
    empty = state.together([name for name in state.candidates() if state.is_empty(name)])
    names = state.within_budgets(empty, EMPTY)
    bare = [name for name in names if not state.pods(name)]
    if bare and state.remove(bare) is not None:
        return True
    return any(state.remove([name]) is not None for name in names if name not in bare and not state.is_over)


def several_together(state: ConsolidationState) -> bool:
    """The longest prefix of the candidates that bisection finds. Whether there is one."""
    candidates = state.within_budgets([name for name in state.candidates() if not state.is_empty(name)], UNDERUTILIZED)
    most = state.limits.max_steps
    high = min(MOST_TOGETHER, len(candidates) - 1, *(() if most is None else (most - len(state.steps) - 1,)))
    if high < 1:
        return False
    low = 1
    found: tuple[list[str], tuple[Option, ...]] | None = None
    middle = high  # where bisection would end if all can go
    while low <= high and not state.limits.stopped:
        names = candidates[: middle + 1]
        options = _way_out(state, names)
        if isinstance(options, KeepReason):
            high = middle - 1
        else:
            found, low = (names, options), middle + 1
        middle = (low + high) // 2
    return found is not None and state.remove(*found) is not None


def _single(state: ConsolidationState) -> bool:
    candidates = [name for name in _interleaved(state) if not state.is_empty(name)]
    budgets = state.budgets()
    allowed = {name for name in candidates if budgets.within([state.node(name)], UNDERUTILIZED)}
    for name in candidates:
        if state.is_over:
            return False
        tried = state.kept.get(name)
        if name not in allowed or (tried is not None and tried[0] == len(state.steps)):
            continue
        options = _way_out(state, [name])
        if isinstance(options, KeepReason):
            if options.identifier != NOTHING_CHEAPER or name not in state.kept:  # else it says what finds no place
                state.kept[name] = len(state.steps), options
        elif state.remove([name], options) is not None:
            return True
    return False


def _way_out(state: ConsolidationState, names: Sequence[str]) -> tuple[Option, ...] | KeepReason:
    """With what the nodes could go: nothing, or one machine that costs less than they do; or why with neither. Nothing
    is changed."""
    price = sum(map(state.price, names))
    if _could_go(state, names, ()):
        return () if state.is_worth_it(names, price) else _rejected(names)
    if not state.replacements:
        return KeepReason(NOTHING_CHEAPER, "no machine is cheaper")
    homeless = state.homeless(names)
    options = _cheaper(state, names, homeless, price - state.limits.min_saving)
    if isinstance(options, KeepReason):
        return options
    reason = KeepReason(NOTHING_CHEAPER, "no machine is cheaper")
    for option in options[:_MOST_MACHINES]:
        if not state.is_worth_it(names, price - (option.offer.price or 0)):
            return _rejected(names)
        if _could_go(state, names, (option,)):
            return (option,)
    return reason


def _could_go(state: ConsolidationState, names: Sequence[str], options: Sequence[Option]) -> bool:
    n_steps = len(state.steps)
    with state.forked():
        can_go = state.remove(names, options) is not None
    del state.steps[n_steps:]
    return can_go


def _rejected(names: Sequence[str]) -> KeepReason:
    text = f"{'it saves' if len(names) == 1 else 'they save'} too little for the disruption"
    return KeepReason(REJECTED, text)


def _cheaper(
    state: ConsolidationState, names: Sequence[str], homeless: Sequence[PodInfo], price: int
) -> list[Option] | KeepReason:
    """Machines that could take the place of all of them, one at a time."""
    zones = state.zones(names)

    def machines(below: int, *, only_spot: bool = False) -> list[Option]:
        return state.replacements.in_place_of(homeless, below, zones, only_spot=only_spot)

    is_spot_to_spot = state.are_spot(names) and bool(machines(_ANY_PRICE, only_spot=True))
    if is_spot_to_spot and not state.replaces_spot_by_spot:
        return KeepReason(NO_SPOT_TO_SPOT, "a feature gate of Karpenter allows it (--spot-to-spot)")
    found = machines(price, only_spot=is_spot_to_spot)
    if is_spot_to_spot and found and len(names) == 1:
        n_types = len({one.shape.name for one in found})
        if n_types < FEWEST_SPOT_TYPES:
            return KeepReason(FEW_SPOT_TYPES, f"{n_types} cost less")
    if len(names) > 1:
        # A machine of a type that goes must cost less than the cheapest of that type: else that one could stay.
        offered = {one.shape.name for one in found}
        prices = [state.price(name) for name in names if state.instance_type(name) in offered]
        return machines(min(prices), only_spot=is_spot_to_spot) if prices else found
    return found


_ANY_PRICE = 10**18
_MOST_MACHINES = 6


def _interleaved(state: ConsolidationState) -> list[str]:
    """One of each pool in turn."""
    pools: dict[str, list[str]] = {}
    for name in state.candidates():
        pools.setdefault(group_of(state.node(name), "pool") or "", []).append(name)
    return [name for turn in zip_longest(*pools.values()) for name in turn if name is not None]


def _used_share(state: ConsolidationState, name: str) -> float:
    """Of a node with GPUs, only those count."""
    table = state.world.cluster.table
    gpus = NodeRow(table, table.rows[name])
    n_gpus = gpus.allocatable(GPU)
    return gpus.requested(GPU) / n_gpus if n_gpus else state.utilisation(name)


def cluster_autoscaler(state: ConsolidationState) -> None:
    while not state.is_over:
        unneeded = []
        for name in sorted(state.candidates()):
            if _used_share(state, name) <= UTILISATION_THRESHOLD:
                unneeded.append(name)
            else:
                state.kept[name] = len(state.steps), KeepReason("NotUnderutilized", "more than half of it is asked for")
        empty = [name for name in unneeded if not state.pods(name)]
        going = state.together(empty)[:MOST_EMPTY_AT_ONCE]
        if going and state.remove(going) is not None:
            continue
        if not any(state.remove([name]) is not None for name in unneeded if not state.is_over):
            return
