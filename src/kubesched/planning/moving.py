"""The fewest moves to the placement that holds most pods by priority, in an order that can be carried out.

An integer program says how many pods of a kind each node holds: the most of the highest priority, then of the next; and
of all such placements one with the fewest pods that leave their node. It knows amounts, and what the scheduler's
filters say of a kind on a node by itself. Rules between pods it does not know: so the scheduler's filters are asked
about the whole placement, and about every single step. What they refuse is ruled out, and the program asked again.

Next: `optimal`, which tells of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod, PodStatus
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import PODS
from kubesched.k8s.workloads.pod_states import belongs_to_its_node
from kubesched.planning.solving import integer_program
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.simulator.settling import Settling
from kubesched.simulator.trial import LoadedWorld, WorldTrial

MOST_UNKNOWNS = 20_000
"""Kinds of pods times nodes; larger questions are not asked."""
_MOST_REFUSALS = 25


@dataclass(frozen=True, slots=True)
class PlacementStep:
    """A pod goes from a node to another; without a source it had none, without a target it has to wait."""

    pod: PodKey
    priority: int
    source: str
    target: str
    is_detour: bool = False
    """It goes out of the way of another, and on in a later step."""

    @property
    def kind(self) -> str:
        """`move`, `detour`, `place` or `wait`."""
        if not self.target:
            return "wait"
        if self.is_detour:
            return "detour"
        return "move" if self.source else "place"


@dataclass(frozen=True, slots=True)
class MovePlan:
    steps: tuple[PlacementStep, ...]
    placed: tuple[tuple[int, int], ...]
    """By priority, the highest first: how many pods of it or more have a node in the end."""
    is_fewest: bool
    """No placement that holds as many pods by priority needs fewer moves, and none holds more."""

    @property
    def n_moved(self) -> int:
        return sum(1 for step in self.steps if step.source)


@dataclass(slots=True)
class _Kind:
    """Pods that are alike for the scheduler, and of one priority."""

    pods: list[PodInfo]
    amounts: dict[str, int]
    on: Counter[str]
    most: dict[str, int]
    """Nodes that could hold some, and at most how many."""

    @property
    def priority(self) -> int:
        return self.pods[0].priority


Placement = list[Counter[str]]
"""Of each kind, how many are on which node."""
Room = dict[str, dict[str, int]]
"""Of each node, by resource."""


def fewest_moves(world: LoadedWorld, limit_s: float) -> MovePlan | None:
    """None if it would take too long to find."""
    until_s = time.monotonic() + limit_s
    kinds = _kinds(world)
    free = _ask_for_room(world, kinds)
    if not 0 < sum(len(kind.most) for kind in kinds) <= MOST_UNKNOWNS:
        return None
    for n_refusals in range(_MOST_REFUSALS):
        solved = _solve(kinds, free, until_s)
        if solved is None:
            return None
        placement, is_proven = solved
        changes = [one for kind, wanted in zip(kinds, placement, strict=True) for one in _changes(kind, wanted)]
        refused = _refused(world, changes)
        if not refused:
            steps = tuple(_in_order(world, changes))
            return MovePlan(steps, tuple(_placed(kinds, placement)), is_proven and not n_refusals)
        _rule_out(kinds, placement, refused)
    return None


def _placed(kinds: Sequence[_Kind], placement: Placement) -> list[tuple[int, int]]:
    priorities = sorted({kind.priority for kind in kinds}, reverse=True)
    pairs = list(zip(kinds, placement, strict=True))
    return [(one, sum(on.total() for kind, on in pairs if kind.priority >= one)) for one in priorities]


# -- what may be where -------------------------------------------------------------------------------------------------


def _kinds(world: LoadedWorld) -> list[_Kind]:
    """Of the pods that may move; those that belong to their node stay there."""
    found: dict[tuple[int, int], _Kind] = {}
    for info in (*world.cluster.placed.values(), *world.cluster.pending.values()):
        if info.pin or belongs_to_its_node(info.pod) or info.pod.is_terminating or world.scheduler_of(info) is None:
            continue
        key = id(info.signature), info.priority
        kind = found.setdefault(key, _Kind([], {**info.resources.wanted, PODS: 1}, Counter(), {}))
        kind.pods.append(info)
        if info.spec.node_name:
            kind.on[info.spec.node_name] += 1
    return sorted(found.values(), key=lambda kind: (-kind.priority, kind.pods[0].key))


def _ask_for_room(world: LoadedWorld, kinds: Sequence[_Kind]) -> Room:
    """What each node has for these pods; each kind hears on which nodes the scheduler would let it, and how many."""
    with world.trial() as trial:
        for kind in kinds:
            for info in kind.pods:
                trial.delete_pod(info.key)
        names = {name for kind in kinds for name in kind.amounts}
        free: Room = {}
        for name in world.nodes:
            row = NodeRow(world.cluster.table, world.cluster.table.rows[name])
            free[name] = {one: row.allocatable(one) - row.requested(one) for one in names if one != PODS}
            free[name][PODS] = row.allowed_pods - row.pod_count
        for kind in kinds:
            first = trial.add_admitted(_unplaced(kind.pods[0]))
            for name in Settling(trial).nodes_for(world.pod(first)):
                amounts = [free[name][one] // asked for one, asked in kind.amounts.items() if asked]
                kind.most[name] = min([len(kind.pods), *amounts])
            _ask_for_a_second(trial, kind, first)
            trial.delete_pod(first)
    for kind in kinds:
        for name, n in kind.on.items():
            kind.most[name] = max(n, kind.most.get(name, 0))
    return free


def _ask_for_a_second(trial: WorldTrial, kind: _Kind, first: PodKey) -> None:
    """Where one of a kind keeps the next one out, a node holds one."""
    name = next((name for name, most in kind.most.items() if most > 1), None)
    if name is None:
        return
    with trial.trial() as inner:
        settling = Settling(inner)
        if settling.place_on(inner.world.pod(first), name):
            second = inner.add_admitted(_unplaced(kind.pods[1]))
            if name not in settling.nodes_for(inner.world.pod(second)):
                kind.most.update((one, min(1, most)) for one, most in kind.most.items())


def _unplaced(info: PodInfo) -> Pod:
    status = PodStatus(phase="Pending", resource_claim_statuses=info.pod.status.resource_claim_statuses)
    return replace(info.pod, spec=replace(info.spec, node_name=""), status=status)


# -- how many where ----------------------------------------------------------------------------------------------------


def _solve(kinds: Sequence[_Kind], free: Room, until_s: float) -> tuple[Placement, bool] | None:
    """The most pods by priority, with the fewest that leave their node; and whether that is proven."""
    from scipy.optimize import Bounds, LinearConstraint
    from scipy.sparse import csr_array, vstack

    places = [(k, name) for k, kind in enumerate(kinds) for name in kind.most]
    stays = [(k, name) for k, kind in enumerate(kinds) for name in kind.on]
    n_places, n_all = len(places), len(places) + len(stays)
    column = {place: number for number, place in enumerate(places)}
    rows: list[dict[int, float]] = []
    limits: list[float] = []
    for name, room in free.items():
        here = [(number, kinds[k]) for number, (k, other) in enumerate(places) if other == name]
        for resource, amount in room.items():
            scale = max(1, abs(amount))
            asked = {number: kind.amounts.get(resource, 0) / scale for number, kind in here}
            if any(asked.values()):
                rows.append(asked)
                limits.append(max(amount, 0) / scale)
    for k, kind in enumerate(kinds):
        rows.append({column[k, name]: 1.0 for name in kind.most})
        limits.append(len(kind.pods))
    for number, (k, name) in enumerate(stays):
        rows.append({column[k, name]: -1.0, n_places + number: -1.0})
        limits.append(-kinds[k].on[name])

    def matrix(lines: Sequence[Mapping[int, float]]) -> Any:
        cells = [(i, j, value) for i, line in enumerate(lines) for j, value in line.items()]
        i, j, values = zip(*cells, strict=True)
        return csr_array((values, (i, j)), shape=(len(lines), n_all))

    whole = matrix(rows)
    upper = np.array([float(kinds[k].most[name]) for k, name in places] + [np.inf] * len(stays))
    is_whole = np.array([1] * n_places + [0] * len(stays))
    tiers = sorted({kind.priority for kind in kinds}, reverse=True)
    goals = [{n: -1.0 for n, (k, _) in enumerate(places) if kinds[k].priority == tier} for tier in tiers]
    goals.append({n_places + n: 1.0 for n in range(len(stays))})
    is_proven, answer = True, None
    for goal in filter(None, goals):
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return None
        line = matrix([goal])
        answer = integer_program(
            line.toarray()[0],
            constraints=LinearConstraint(whole, ub=np.array(limits)),
            bounds=Bounds(0, upper),
            integrality=is_whole,
            options={"time_limit": left_s},
        )
        if answer.x is None:
            return None
        is_proven &= answer.status == 0
        whole = vstack([whole, line], format="csr")
        limits.append(round(answer.fun))
    assert answer is not None
    placement: Placement = [Counter() for _ in kinds]
    for (k, name), value in zip(places, answer.x, strict=False):
        if round(value):
            placement[k][name] = round(value)
    return placement, is_proven


def _rule_out(kinds: Sequence[_Kind], placement: Placement, refused: Sequence[_Change]) -> None:
    """So many on these nodes are too many."""
    counts = Counter((id(one.info.signature), one.info.priority, one.target) for one in refused)
    for kind, wanted in zip(kinds, placement, strict=True):
        signature = id(kind.pods[0].signature)
        for name in wanted:
            n = counts[signature, kind.priority, name]
            if n:
                kind.most[name] = wanted[name] - n


# -- which pod goes where ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Change:
    info: PodInfo
    source: str
    target: str
    """Empty: it has to wait."""
    had_detour: bool = False


def _changes(kind: _Kind, wanted: Counter[str]) -> Iterator[_Change]:
    """Pods stay where they are as far as they may; who leaves goes first to where more are wanted."""
    leaving, waiting = [], []
    staying: Counter[str] = Counter()
    for info in kind.pods:
        name = info.spec.node_name
        if not name:
            waiting.append(info)
        elif staying[name] < wanted[name]:
            staying[name] += 1
        else:
            leaving.append(info)
    targets = [name for name, n in wanted.items() for _ in range(n - staying[name])]
    targets += [""] * (len(leaving) - len(targets))
    for info, target in zip((*leaving, *waiting), targets, strict=False):
        yield _Change(info, info.spec.node_name, target)


def _refused(world: LoadedWorld, changes: Sequence[_Change]) -> list[_Change]:
    """Those that the scheduler's filters do not let to their node once everybody has left who leaves."""
    with world.trial() as trial:
        settling = Settling(trial)
        waiting = []
        for change in changes:
            trial.delete_pod(change.info.key)
            if change.target:
                trial.add_admitted(_unplaced(change.info))
                waiting.append(change)
        while waiting:
            left = [one for one in waiting if not settling.place_on(world.pod(one.info.key), one.target)]
            if len(left) == len(waiting):
                return left
            waiting = left
    return []


def _in_order(world: LoadedWorld, changes: Iterable[_Change]) -> Iterator[PlacementStep]:
    """Each step leaves every node with room for what it holds. Where pods wait for each other's room, one of them makes
    a detour; where there is no room for that, one has to wait until its turn comes. Pods that had no node come last."""
    left = sorted(changes, key=lambda one: (-one.info.priority, one.info.key))
    with world.trial() as trial:
        while left:
            movers = [one for one in left if one.source and one.target]
            given_up = [one for one in left if not one.target]
            waiting = [one for one in left if not one.source]
            done = next((one for one in movers if _moved(trial, one, one.target)), None)
            if done is None and given_up:
                wanted = {one.target for one in left}
                done = max(given_up, key=lambda one: (one.source in wanted, -one.info.priority))
                trial.delete_pod(done.info.key)
            if done is None and movers:
                step = _detour(trial, movers)
                if step is not None:
                    yield step
                    continue
            if done is None:
                done = next((one for one in waiting if _moved(trial, one, one.target)), None)
            if done is None:
                yield _made_to_wait(trial, movers[-1])
                continue
            left.remove(done)
            yield PlacementStep(done.info.key, done.info.priority, done.source, done.target)


def _detour(trial: WorldTrial, movers: Sequence[_Change]) -> PlacementStep | None:
    """To any node that lets it; nobody makes two."""
    for one in movers:
        for name in () if one.had_detour else trial.world.nodes:
            if name not in (one.source, one.target) and _moved(trial, one, name):
                step = PlacementStep(one.info.key, one.info.priority, one.source, name, is_detour=True)
                one.source, one.had_detour = name, True
                return step
    return None


def _made_to_wait(trial: WorldTrial, one: _Change) -> PlacementStep:
    trial.delete_pod(one.info.key)
    trial.add_admitted(_unplaced(one.info))
    step = PlacementStep(one.info.key, one.info.priority, one.source, "", is_detour=True)
    one.source = ""
    return step


def _moved(trial: WorldTrial, change: _Change, target: str) -> bool:
    """Whether the scheduler's filters let it there; then it is."""
    with trial.trial() as inner:
        if change.source:
            inner.delete_pod(change.info.key)
            inner.add_admitted(_unplaced(change.info))
        if not Settling(inner).place_on(inner.world.pod(change.info.key), target):
            return False
        inner.commit()
    return True
